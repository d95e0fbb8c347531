package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"viad/drivers/robot"
	"viad/interface/operator"
	"viad/interface/record"
	"viad/interface/stage"
	"viad/interface/tool/door"
	"viad/interface/web"
	"viad/safety"
)

// desk is what people may ask: over the operator's socket and, those with an operator's token, on the page. No tool
// leads here.
type desk struct{ s *System }

// Status is the state of everything, for a person.
func (d desk) Status() operator.Status { return d.s.status() }

// Stop stops the robot and measures standstill.
func (d desk) Stop(ctx context.Context, who string) (string, error) { return d.s.stop(ctx, who) }

// EStop stops and latches.
func (d desk) EStop(ctx context.Context, who string) (string, error) {
	err := inTime(ctx, func(ctx context.Context) error { return d.s.guard.EStop(ctx, who) })
	d.note("estop", who, "stop and latch")
	if err != nil {
		return "", fmt.Errorf("latched, but %s: %w", robot.StopNotConfirmed, err)
	}
	return robot.StopConfirmed.String() + ", and latched: nothing moves until clear and arm", nil
}

// Clear clears the latch, and a twin's runstop; the robot stays disarmed.
func (d desk) Clear(_ context.Context, who string) (string, error) {
	why, stopped := d.s.guard.Latched(), d.s.guard.State().Mode == robot.ModeRunstopped
	d.s.guard.ClearLatch(who)
	if d.s.rig.release != nil {
		d.s.rig.release()
		if stopped {
			why = strings.TrimPrefix(why+"; the twin's runstop", "; ")
		}
	}
	if why == "" {
		return "nothing was latched", nil
	}
	d.note("clear", who, "cleared: "+why)
	if d.s.guard.Status().Armed {
		return fmt.Sprintf("cleared (%s)", why), nil
	}
	return fmt.Sprintf("cleared (%s); nothing moves until arm", why), nil
}

// Arm allows motion; not while latched.
func (d desk) Arm(_ context.Context, who string) (string, error) {
	if err := d.s.guard.Arm(who); err != nil {
		return "", err
	}
	d.note("arm", who, "armed by an operator")
	switch s := d.s.guard.State(); {
	case s.Mode == robot.ModeReady || s.Mode == robot.ModeMoving:
		return "armed", nil
	case s.Fault == "":
		return fmt.Sprintf("armed, but it may not move: it is %s", s.Mode), nil
	default:
		return fmt.Sprintf("armed, but it may not move: it is %s: %s", s.Mode, s.Fault), nil
	}
}

// Disarm stops and allows no motion.
func (d desk) Disarm(ctx context.Context, who string) (string, error) {
	err := inTime(ctx, func(ctx context.Context) error { return d.s.guard.Disarm(ctx, who) })
	d.note("disarm", who, "asked by an operator")
	if err != nil {
		return "", fmt.Errorf("disarmed, but %s: %w", robot.StopNotConfirmed, err)
	}
	return "disarmed: nothing moves until arm", nil
}

// TakeOver seats a name instead of whoever drives, and stops what the old driver set going. Without a name it is
// a place that no token fits: nobody drives until the seat is freed.
func (d desk) TakeOver(ctx context.Context, who, name string) (string, error) {
	if name == "" {
		name = operatorSeat
	} else if err := d.s.mayDrive(name); err != nil {
		return "", err
	}
	from := d.s.seat.TakeOver(name)
	if from == "" {
		from = "nobody"
	}
	d.note("seat", who, fmt.Sprintf("taken over for %s from %s", name, from))
	stopped, err := d.s.stop(ctx, "the take-over by "+who)
	if err != nil {
		return "", fmt.Errorf("%s has the seat, taken from %s, but %w", name, from, err)
	}
	return fmt.Sprintf("%s has the seat, taken from %s; %s", name, from, stopped), nil
}

// Free gives the seat free.
func (d desk) Free(_ context.Context, who string) (string, error) {
	from := d.s.seat.Release(who)
	if from == "" {
		return "the seat was free", nil
	}
	d.note("seat", who, "freed from "+from)
	return "the seat is free; " + from + " had it", nil
}

// Health is what the driver says of its machine.
func (d desk) Health() operator.Health {
	var h operator.Health
	for _, part := range d.s.rig.examined() {
		for _, f := range part.Facts() {
			h.Facts = append(h.Facts, operator.Fact{Name: f.Name, Value: f.Value, Bad: f.Bad, Warn: f.Warn})
		}
	}
	if t, ok := d.s.rig.body.(robot.Tended); ok {
		for _, t := range t.Tasks() {
			h.Tasks = append(h.Tasks, operator.Task{Name: t.Name, What: t.What})
		}
	}
	return h
}

// Do carries out what only an operator may ask for. The robot must be disarmed: no agent's motion may begin beside it.
func (d desk) Do(ctx context.Context, who, task string) (string, error) {
	t, ok := d.s.rig.body.(robot.Tended)
	if !ok {
		return "", errors.New("this robot has no such tasks")
	}
	if d.s.guard.Status().Armed {
		return "", fmt.Errorf("%s moves the robot by itself and is refused while it is armed: viactl disarm first", task)
	}
	d.note("task", who, "began: "+task)
	if err := t.Do(ctx, task); err != nil {
		d.note("task", who, "failed: "+task+": "+err.Error())
		return "", err
	}
	d.note("task", who, "done: "+task)
	return task + ": done; nothing moves until arm", nil
}

func (d desk) note(kind, who, text string) {
	d.s.rec.Decide(record.Decision{Kind: kind, Who: who, Text: text})
}

// operatorSeat has the seat after a take-over from the operator's tool. No token's name has brackets.
const operatorSeat = "(operator)"

// mayDrive refuses names that no token with a driver's rights has.
func (s *System) mayDrive(name string) error {
	var names []string
	for _, t := range s.tokens {
		if t.Role < door.Driver {
			continue
		}
		if t.Name == name {
			return nil
		}
		names = append(names, t.Name)
	}
	return fmt.Errorf("no driver is called %q; the launch file knows: %s", name, strings.Join(names, ", "))
}

// room is what the page looks into.
type room struct{ desk }

// Stop stops the robot and measures standstill.
func (r room) Stop(ctx context.Context, who string) (string, error) {
	return r.desk.Stop(ctx, who+" on the page")
}

// EStop stops and latches.
func (r room) EStop(ctx context.Context, who string) (string, error) {
	return r.desk.EStop(ctx, who+" on the page")
}

// Live paints the newest scene.
func (r room) Live(context.Context) ([]web.Picture, error) {
	return paint(r.s.stage.Snapshot(), r.s.painter)
}

// Shown is what the seat was last sent.
func (r room) Shown() (uint64, []web.Picture) { return r.s.watch.Shown() }

// Calls are the last calls.
func (r room) Calls() []web.Call { return r.s.watch.Calls() }

// stop is every stop that is not a tool's.
func (s *System) stop(ctx context.Context, who string) (string, error) {
	s.log.Info("stop asked for", "who", who)
	err := inTime(robot.By(ctx, who), s.mover.Stop)
	s.rec.Decide(record.Decision{Kind: "stop", Who: who, Text: "asked for a stop"})
	if err != nil {
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
		Armed: g.Armed, Latched: g.Latched, Moving: moves(g, st), Mode: st.Mode.String(), Fault: st.Fault,
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
		o.MCP, o.Refused = s.MCP(), s.door.Failed()
		if s.pair != nil {
			shown := s.pair.shown()
			o.TLS = "SHA-256 " + shown.finger + ", " + shown.path
		}
		if s.cfg.Page.Enabled {
			o.Page = s.cfg.base(s.Addr()) + "/"
		}
	}
	if rec.Warning != "" {
		o.Warnings = append(o.Warnings, rec.Warning)
	}
	if g.Unkept != "" && g.Latched != "" {
		o.Warnings = append(o.Warnings, "a daemon that is started anew would not know that it is latched: "+g.Unkept)
	} else if g.Unkept != "" {
		o.Warnings = append(o.Warnings, "a daemon that is started anew would come up latched: "+g.Unkept)
	}
	if g.Unknown {
		o.Warnings = append(o.Warnings, "the outcome of the last motion is unknown: nothing moves until the joints are read again")
	}
	return o
}

// moves says whether the robot moves or is about to. An execute that only waits for its pictures does not: whoever
// has just read "stopped, confirmed" must not read "moving".
func moves(g safety.Status, st robot.State) bool { return g.Moving || st.Mode == robot.ModeMoving }

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
