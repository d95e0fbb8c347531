package launch

import (
	"context"
	"fmt"
	"time"

	"viad/drivers/robot"
	"viad/interface/operator"
	"viad/interface/record"
	"viad/interface/stage"
	"viad/interface/web"
)

// desk is what the operator's socket may ask.
type desk struct{ s *System }

// Status is the state of everything, for a person.
func (d desk) Status() operator.Status { return d.s.status() }

// Stop stops the robot and measures standstill.
func (d desk) Stop(ctx context.Context) (string, error) { return d.s.stop(ctx, "viactl") }

// EStop stops and latches.
func (d desk) EStop(ctx context.Context) (string, error) {
	d.s.rec.Decide(record.Decision{Kind: "estop", Who: "viactl", Text: "asked by an operator"})
	if err := inTime(ctx, func(ctx context.Context) error { return d.s.guard.EStop(ctx, "viactl") }); err != nil {
		return "", fmt.Errorf("latched, but %s: %w", robot.StopNotConfirmed, err)
	}
	return robot.StopConfirmed.String() + ", and latched: nothing moves until viactl arm", nil
}

// Arm clears a latch, releases a twin's runstop and allows motion. The operator's hand is on it.
func (d desk) Arm(context.Context) (string, error) {
	if why := d.s.guard.Latched(); why != "" {
		d.s.guard.ClearLatch("viactl")
	}
	if d.s.rig.release != nil {
		d.s.rig.release()
	}
	if err := d.s.guard.Arm("viactl"); err != nil {
		return "", err
	}
	d.s.rec.Decide(record.Decision{Kind: "arm", Who: "viactl", Text: "armed by an operator"})
	return "armed", nil
}

// Disarm stops and allows no motion.
func (d desk) Disarm(ctx context.Context) (string, error) {
	d.s.rec.Decide(record.Decision{Kind: "disarm", Who: "viactl", Text: "asked by an operator"})
	if err := inTime(ctx, func(ctx context.Context) error { return d.s.guard.Disarm(ctx, "viactl") }); err != nil {
		return "", fmt.Errorf("disarmed, but %s: %w", robot.StopNotConfirmed, err)
	}
	return "disarmed: nothing moves until viactl arm", nil
}

// room is what the page looks into.
type room struct{ s *System }

// Status is the state of everything, for a person.
func (r room) Status() operator.Status { return r.s.status() }

// Live paints the newest scene.
func (r room) Live(context.Context) ([]web.Picture, error) {
	return paint(r.s.stage.Snapshot(), r.s.painter)
}

// Shown is what the seat was last sent.
func (r room) Shown() (uint64, []web.Picture) { return r.s.watch.Shown() }

// Calls are the last calls.
func (r room) Calls() []web.Call { return r.s.watch.Calls() }

// Stop stops the robot and measures standstill.
func (r room) Stop(ctx context.Context) (string, error) { return r.s.stop(ctx, "page") }

// stop is every stop that is not a tool's.
func (s *System) stop(ctx context.Context, who string) (string, error) {
	s.rec.Decide(record.Decision{Kind: "stop", Who: who, Text: "asked for a stop"})
	if err := inTime(ctx, s.mover.Stop); err != nil {
		return "", fmt.Errorf("%s: %w", robot.StopNotConfirmed, err)
	}
	return robot.StopConfirmed.String(), nil
}

// status gathers from all rooms; it waits for none.
func (s *System) status() operator.Status {
	g, sn, rec := s.guard.Status(), s.stage.Snapshot(), s.rec.Status()
	st := sn.State
	o := operator.Status{
		Name: s.cfg.Name, Robot: s.cfg.robotName(), Face: s.cfg.Face, Version: Version(), UptimeS: time.Since(s.began).Seconds(),
		Armed: g.Armed, Latched: g.Latched, Moving: g.Moving || sn.Moving, Mode: st.Mode.String(), Fault: st.Fault,
		StateAge: -1, SceneAge: -1, Staged: stagedWords(sn), Episode: sn.Episode + 1, Record: rec.Folder,
	}
	if !st.Received.IsZero() {
		o.StateAge = max(0, sn.Now.Sub(st.Received).Seconds())
	}
	if sn.Scene != nil {
		o.SceneSeq, o.SceneAge = sn.Scene.Seq, max(0, sn.Now.Sub(sn.Scene.At).Seconds())
	}
	o.Seat, _, _ = s.seat.Holder()
	if sn.Last != nil {
		o.Last = lastWords(sn.Last)
	}
	if s.listener != nil {
		o.MCP = s.MCP()
		if s.cfg.Page.Enabled {
			o.Page = s.cfg.base(s.Addr()) + "/"
		}
	}
	if rec.Warning != "" {
		o.Warnings = append(o.Warnings, rec.Warning)
	}
	if g.Unknown {
		o.Warnings = append(o.Warnings, "the outcome of the last motion is unknown: nothing moves until the joints are read again")
	}
	return o
}

func stagedWords(sn *stage.Snapshot) string {
	if !sn.Check.Staged {
		return "nothing"
	}
	what := map[stage.Mode]string{stage.ModeNav: "a base motion", stage.ModeGripper: "the jaws", stage.ModePose: "a gripper pose", stage.ModeNone: "a gripper target"}[sn.Mode]
	switch {
	case !sn.Check.Reachable:
		return what + ", out of reach"
	case !sn.Check.Clear:
		return what + ", the way is blocked"
	}
	return what + ", reachable, way clear"
}

func lastWords(r *stage.Report) string {
	s := fmt.Sprintf("%s in %.1f s, %s", r.Outcome.Result, r.Outcome.Took.Seconds(), r.Outcome.Stop)
	if r.Outcome.Why != "" {
		s += ": " + r.Outcome.Why
	}
	return s
}
