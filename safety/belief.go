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
// echoes what it is sent is told from a robot by what is seen. A picture in which the motion was due and does not show
// makes the outcome unknown, and no measured speed confirms a stop. Where there is no such picture, because none came
// in time or no camera could see the motion, evidence is missing, which is not evidence of an echo: what was measured
// stands, nothing is latched, and the outcome and the log say that it was not borne out.
func (g *Guard) believe(m *motion, out *robot.Outcome) {
	f := out.Followed
	if !f.Echo() || out.Result == robot.ResultUnknown {
		return
	}
	attrs := []any{slog.Int("readings", f.Readings), slog.Duration("lag", f.Lag), slog.Float64("apart", f.Apart)}
	ctx, cancel := g.within(context.WithoutCancel(m.ctx), witnessTime)
	defer cancel()
	after, err := g.scenes.Refresh(ctx, g.clock.Now())
	if err != nil {
		g.log.Warn("readings without noise, and no picture", append(attrs, slog.Any("err", err))...)
		unconfirmed(out, "no picture came that could confirm it: "+err.Error())
		return
	}
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
		unconfirmed(out, "no camera could see the motion to confirm it")
		return
	}
	why := fmt.Sprintf("all %d joint readings of the motion were the commands themselves, without noise, and the picture of %s shows no motion: the driver echoes",
		f.Readings, missed[0].Source)
	g.log.Error("driver echoes", append(attrs, slog.String("why", why))...)
	out.Result, out.Stop = robot.ResultUnknown, robot.StopNotConfirmed
	also(out, why)
	g.setLatch("the driver echoes its commands: where the robot is, is not known")
}

// unconfirmed says in the outcome that it rests on the joint readings alone.
func unconfirmed(out *robot.Outcome, why string) {
	also(out, "the joint readings had no noise, and "+why+"; look at the robot in the next picture")
}

// also adds to what is said of an outcome.
func also(out *robot.Outcome, why string) {
	if out.Why != "" {
		why = out.Why + "; " + why
	}
	out.Why = why
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
