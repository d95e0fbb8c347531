package safety

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"viad/drivers/robot"
	"viad/perception"
)

// witnessTime bounds how long a picture is waited for that says whether the robot moved.
const witnessTime = 2 * time.Second

// believe asks the cameras when the joints followed their commands without any noise, as no motor does: a driver that
// echoes what it is sent is told from a robot by what is seen. An echo makes the outcome unknown, and no measured
// speed of it confirms a stop. Where no camera could see the motion the outcome stays as it is, and the log says so.
func (g *Guard) believe(m *motion, out *robot.Outcome) {
	f := out.Followed
	if !f.Echo() || out.Result == robot.ResultUnknown {
		return
	}
	attrs := []any{slog.Int("readings", f.Readings), slog.Duration("lag", f.Lag), slog.Float64("apart", f.Apart)}
	ctx, cancel := g.within(context.WithoutCancel(m.ctx), witnessTime)
	defer cancel()
	after, err := g.scenes.Refresh(ctx, g.clock.Now())
	var why string
	if err != nil {
		why = "no picture says that it moved: " + err.Error()
	} else {
		due, missed := g.witness(m.scene, after, out.After)
		for _, s := range append(due, missed...) {
			attrs = append(attrs, slog.Group(s.Source, slog.Float64("due", s.Due), slog.Float64("changed", s.Changed)))
		}
		switch {
		case len(due) > 0:
			g.log.Info("readings without noise, and a picture that bears them out", attrs...)
			return
		case len(missed) == 0:
			g.log.Warn("readings without noise, and no camera that could see the motion", attrs...)
			return
		}
		why = fmt.Sprintf("the picture of %s shows no motion", missed[0].Source)
	}
	why = fmt.Sprintf("all %d joint readings of the motion were the commands themselves, without noise, and %s: the driver echoes", f.Readings, why)
	g.log.Error("driver echoes", append(attrs, slog.String("why", why))...)
	out.Result, out.Stop = robot.ResultUnknown, robot.StopNotConfirmed
	if out.Why != "" {
		why = out.Why + "; " + why
	}
	out.Why = why
	g.setLatch("the driver echoes its commands: where the robot is, is not known")
}

// witness is what the cameras say of a motion: in which it was due and shows, and in which it was due and does not.
func (g *Guard) witness(before, after *perception.Scene, now robot.State) (shows, missed []perception.Sight) {
	if before == nil || !before.State.Complete(g.model) || !now.Complete(g.model) {
		return nil, nil
	}
	at := func(s robot.State) []robot.LinkCapsule { return g.kin.Capsules(s.Base, s.Q, s.Jaw.Aperture) }
	for _, s := range perception.Witness(before, after, at(before.State), at(now)) {
		switch {
		case s.Missed():
			missed = append(missed, s)
		case s.Due > 0:
			shows = append(shows, s)
		}
	}
	return shows, missed
}
