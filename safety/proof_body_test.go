package safety_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/control"
	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/interface/stage"
	"viad/safety"
)

// slowly makes motions long enough to do something in their middle.
func slowly(scale float64) func(*control.Settings) {
	return func(s *control.Settings) { s.SpeedScale = scale }
}

var (
	aside = r3.Vec{Y: 0.25, Z: -0.1}
	near  = r3.Vec{Y: 0.08}
	half  = 500 * time.Millisecond
)

// spoilt are readings that must never move a robot, or stop one that moves. held gives the reading of the moment when
// the trouble began.
func spoilt() map[string]func(held func() robot.State) func(robot.State) robot.State {
	nan := math.NaN()
	each := func(f func(s *robot.State)) func(func() robot.State) func(robot.State) robot.State {
		return func(func() robot.State) func(robot.State) robot.State {
			return func(s robot.State) robot.State { f(&s); return s }
		}
	}
	return map[string]func(func() robot.State) func(robot.State) robot.State{
		"no state":        each(func(s *robot.State) { *s = robot.State{} }),
		"no joints":       each(func(s *robot.State) { s.Q, s.QD = nil, nil }),
		"half the joints": each(func(s *robot.State) { s.Q, s.QD = s.Q[:3], s.QD[:3] }),
		"half a state":    each(func(s *robot.State) { s.Jaw = robot.Jaw{} }),
		"no speeds":       each(func(s *robot.State) { s.QD = nil }),
		"no base":         each(func(s *robot.State) { s.HasBase = false }),
		"NaN position":    each(func(s *robot.State) { s.Q[2] = nan }),
		"NaN speed":       each(func(s *robot.State) { s.QD[2] = nan }),
		"infinite":        each(func(s *robot.State) { s.Q[2] = math.Inf(1) }),
		"old":             each(func(s *robot.State) { s.Received = s.Received.Add(-300 * time.Millisecond) }),
		"of the future":   each(func(s *robot.State) { s.Received = s.Received.Add(time.Minute) }),
		"frozen": func(held func() robot.State) func(robot.State) robot.State {
			last := held()
			return func(robot.State) robot.State { return last }
		},
		"joints shifted by one": each(func(s *robot.State) {
			s.Q, s.QD = append(s.Q[1:], s.Q[0]), append(s.QD[1:], s.QD[0])
		}),
		"in degrees": each(func(s *robot.State) {
			for i := range s.Q {
				s.Q[i] *= 180 / math.Pi
			}
		}),
	}
}

// Readings that are missing, partial, old, frozen, not numbers or of another robot never move anything.
func TestSpoiltReadingsNeverMove(t *testing.T) {
	for name, spoil := range spoilt() {
		prove(t, name, build{}, func(r *rig) {
			r.move(near)
			bad := spoil(r.machine.State)
			r.body.set(func() { r.body.state = bad })
			<-r.clock.After(300 * time.Millisecond)
			before := r.machine.Machine()
			if _, err := r.execute(); err == nil {
				r.Error("it went")
			}
			r.stays(before)
			if r.guard.Ready() == nil {
				r.Error("the guard is ready")
			}
			r.body.heal()
			<-r.clock.After(20 * time.Millisecond)
			r.look()
			if rep := r.runs(); rep.Outcome.Result != robot.ResultReached {
				r.Errorf("good readings again: %s", rep.Message)
			}
		})
	}
}

// The same in mid-motion: the machine is stopped, and what is said of it is no more than what can be known.
func TestSpoiltReadingsInMidMotion(t *testing.T) {
	for name, spoil := range spoilt() {
		prove(t, name, build{set: slowly(0.1)}, func(r *rig) {
			r.move(aside)
			begun := r.clock.Now()
			rep := r.meanwhile(half, func() {
				bad := spoil(r.machine.State)
				r.body.set(func() { r.body.state = bad })
			})
			if d := r.clock.Now().Sub(begun); d > 7*time.Second {
				r.Errorf("it took %v to end a motion that nobody can watch", d)
			}
			if !r.still() {
				r.Errorf("the machine moves: %v", r.machine.Machine().QD)
			}
			r.came(rep, robot.ResultUnknown, robot.StopNotConfirmed, "")
			r.body.heal()
			<-r.clock.After(20 * time.Millisecond)
			r.look()
			r.refused(safety.RuleLatch, "NOT confirmed")
			r.guard.ClearLatch("anna")
			r.look()
			r.refused(safety.RuleArmed, "")
			must(r.T, r.guard.Arm("anna"))
			r.goesOn()
		})
	}
}

// Joints in an order that looks possible: the machine itself refuses what does not begin where it is.
func TestJointsSwapped(t *testing.T) {
	prove(t, "before", build{}, func(r *rig) {
		r.body.set(func() {
			r.body.state = func(s robot.State) robot.State {
				s.Q[0], s.Q[6], s.QD[0], s.QD[6] = s.Q[6], s.Q[0], s.QD[6], s.QD[0]
				return s
			}
		})
		r.move(near)
		r.refused(stage.RuleNotMoved, "measured")
	})
	prove(t, "in mid-motion", build{set: slowly(0.1)}, func(r *rig) {
		r.move(aside)
		rep := r.meanwhile(half, func() {
			r.body.set(func() {
				r.body.state = func(s robot.State) robot.State {
					s.Q[0], s.Q[6] = s.Q[6], s.Q[0]
					return s
				}
			})
		})
		r.came(rep, robot.ResultStoppedShort, robot.StopConfirmed, "from where the plan has it")
	})
}

// A stamp is diagnostic only: readings whose stamps stand still while their values move are readings, and readings
// with fresh stamps whose values stand still are none.
func TestStampsAreNoEvidence(t *testing.T) {
	prove(t, "frozen stamps", build{}, func(r *rig) {
		r.move(near)
		stamp := r.body.State().Stamp
		r.body.set(func() { r.body.state = func(s robot.State) robot.State { s.Stamp = stamp; return s } })
		r.came(r.runs(), robot.ResultReached, robot.StopConfirmed, "")
	})
	prove(t, "fresh stamps on frozen values", build{set: slowly(0.1)}, func(r *rig) {
		r.move(aside)
		rep := r.meanwhile(half, func() {
			last := r.body.State()
			r.body.set(func() {
				r.body.state = func(s robot.State) robot.State {
					s.Q, s.QD, s.Changed = slices.Clone(last.Q), slices.Clone(last.QD), last.Changed
					return s
				}
			})
		})
		r.came(rep, robot.ResultUnknown, robot.StopNotConfirmed, "not changed")
	})
}

// A motion that goes on, arrives late or not at all is judged by where the machine is.
func TestSlowArrivals(t *testing.T) {
	prove(t, "2.0 s that take 2.2", build{set: slowly(0.26)}, func(r *rig) {
		r.move(r3.Vec{Y: 0.1})
		r.machine.Break(robottest.Faults{Slow: 1.1})
		rep := r.runs()
		r.came(rep, robot.ResultReached, robot.StopConfirmed, "")
		o := rep.Outcome
		if p := o.Planned.Seconds(); math.Abs(p-2) > 0.2 || o.Took.Seconds() < 1.1*p {
			r.Errorf("took %v of %v", o.Took, o.Planned)
		}
	})
	prove(t, "stall", build{set: slowly(0.1)}, func(r *rig) {
		r.move(aside)
		r.machine.Break(robottest.Faults{BlockAfter: time.Second})
		rep := r.runs()
		r.came(rep, robot.ResultStoppedShort, robot.StopConfirmed, "no progress for 1.5s")
		if rep.Outcome.Took > 4*time.Second {
			r.Errorf("a stall took %v", rep.Outcome.Took)
		}
		r.goesOn()
	})
	prove(t, "31 s", build{set: slowly(0.03)}, func(r *rig) {
		r.move(aside)
		called := r.clock.Now()
		<-r.clock.After(5 * time.Second) // it waited for its turn: the cap counts from the call
		r.look()
		rep, err := r.stage.Execute(r.Context(), called, 1)
		must(r.T, err)
		if rep.Outcome.Planned < 31*time.Second {
			r.Fatalf("the plan takes only %v", rep.Outcome.Planned)
		}
		r.came(rep, robot.ResultStoppedShort, robot.StopConfirmed, "cap on motions")
		if took := r.clock.Now().Sub(called); took < 30*time.Second || took > 31*time.Second {
			r.Errorf("it ended %v after the call", took)
		}
		r.goesOn()
	})
}

// Success that a driver reports is no evidence.
func TestDriverReportsSuccess(t *testing.T) {
	prove(t, "at once, and does nothing", build{}, func(r *rig) {
		r.move(aside)
		r.body.set(func() { r.body.follow = func(context.Context, robot.Trajectory) error { return nil } })
		r.came(r.runs(), robot.ResultStoppedShort, robot.StopConfirmed, "not at the goal")
		r.goesOn()
	})
	prove(t, "in the middle", build{set: slowly(0.1)}, func(r *rig) {
		r.move(aside)
		r.machine.Break(robottest.Faults{LieAfter: half})
		r.came(r.runs(), robot.ResultStoppedShort, robot.StopConfirmed, "not at the goal")
		r.goesOn()
	})
	prove(t, "at once, and goes on by itself", build{set: slowly(0.1)}, func(r *rig) {
		r.move(aside)
		r.body.set(func() {
			r.body.follow = func(_ context.Context, tr robot.Trajectory) error {
				go func() { _ = r.machine.Follow(context.Background(), tr) }()
				return nil
			}
		})
		r.came(r.runs(), robot.ResultStoppedShort, robot.StopConfirmed, "not at the goal")
	})
	prove(t, "and its readings jump to the goal", build{exact: true}, func(r *rig) {
		r.move(aside)
		r.body.set(func() {
			r.body.follow = func(_ context.Context, tr robot.Trajectory) error {
				end := tr.Points[len(tr.Points)-1]
				r.body.set(func() {
					r.body.state = func(s robot.State) robot.State { s.Q = slices.Clone(end.Q); return s }
				})
				return nil
			}
		})
		r.came(r.runs(), robot.ResultUnknown, robot.StopNotConfirmed, "echoes")
	})
}

// echo makes the body answer with its commands, late by lag, while the machine stands.
func (r *rig) echo(lag time.Duration) {
	r.body.set(func() {
		r.body.follow = func(ctx context.Context, tr robot.Trajectory) error {
			start := r.clock.Inner.Now().Add(lag)
			r.body.set(func() {
				r.body.state = func(s robot.State) robot.State {
					p := tr.At(s.Received.Add(-r.clock.offset()).Sub(start))
					s.Q, s.QD, s.Base, s.BaseV, s.Changed = p.Q, p.QD, p.Base, p.BaseV, s.Received
					return s
				}
			})
			select {
			case <-r.clock.After(tr.Duration() + lag):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// A driver that echoes its commands has followed to perfection and moved nothing. The camera knows.
func TestEchoingDriver(t *testing.T) {
	for _, lag := range []time.Duration{0, 15 * time.Millisecond, 120 * time.Millisecond} {
		prove(t, "late by "+lag.String(), build{exact: true}, func(r *rig) {
			r.move(aside)
			r.echo(lag)
			before := r.machine.Machine()
			rep := r.runs()
			r.stays(before)
			r.came(rep, robot.ResultUnknown, robot.StopNotConfirmed, "the picture of third_person shows no motion: the driver echoes")
			if n := r.log.count("driver echoes"); n != 1 {
				r.Errorf("%d lines about the echo", n)
			}
			if rule := r.guard.Ready(); rule == nil || rule.Rule != safety.RuleLatch {
				r.Errorf("after an echo the guard says %v", rule)
			}
		})
	}
	turn := build{robot: control.Stretch4(), q: []float64{0.6, 0.1, 0.1, 0.2, 0}, exact: true}
	prove(t, "of one coordinate", turn, func(r *rig) {
		must(r.T, r.stage.NavRotate(0.5))
		r.look()
		r.echo(25 * time.Millisecond)
		rep := r.runs()
		r.came(rep, robot.ResultUnknown, robot.StopNotConfirmed, "shows no motion: the driver echoes")
	})
	prove(t, "and no camera", build{exact: true}, func(r *rig) { // no evidence, of neither: it is said, and nothing is latched
		r.move(aside)
		r.echo(0)
		rep := r.meanwhileCommanded(func() { r.seen.bend(dead) })
		r.came(rep, robot.ResultReached, robot.StopConfirmed, "no picture came that could confirm it")
		if r.log.count("readings without noise, and no picture") != 1 || r.log.count("driver echoes") != 0 {
			r.Errorf("log:\n%s", r.log)
		}
	})
	prove(t, "a true machine and no camera", build{exact: true}, func(r *rig) {
		r.move(aside)
		rep := r.meanwhile(half, func() { r.seen.bend(dead) })
		r.came(rep, robot.ResultReached, robot.StopConfirmed, "the joint readings had no noise, and no picture came that could confirm it")
		r.goesOn()
	})
	prove(t, "a machine without noise is no echo", build{exact: true}, func(r *rig) {
		r.move(aside)
		rep := r.runs()
		r.came(rep, robot.ResultReached, robot.StopConfirmed, "")
		if f := rep.Outcome.Followed; !f.Echo() || r.log.count("readings without noise, and a picture that bears them out") != 1 {
			r.Errorf("the test's machine has noise: %+v\n%s", f, r.log)
		}
	})
	prove(t, "a machine with noise asks no camera", build{}, func(r *rig) {
		r.move(aside)
		rep := r.runs()
		if f := rep.Outcome.Followed; f.Echo() || f.Readings < 20 || f.Exact > 1 {
			r.Errorf("%+v", f)
		}
	})
}

// meanwhileCommanded runs an execute and f half a second into it, whether or not the machine moves.
func (r *rig) meanwhileCommanded(f func()) *stage.Report {
	r.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-r.clock.After(half)
		f()
	}()
	rep := r.runs()
	<-done
	return rep
}

// What a stop meets decides which rungs it needs, and what may be said of it.
func TestCancelIgnoredAndStopsThatTakeLong(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     robottest.Faults
		rungs int
		stop  robot.StopState
		most  time.Duration
	}{
		{"a good robot", robottest.Faults{}, 3, robot.StopConfirmed, 300 * time.Millisecond},
		{"cancel ignored", robottest.Faults{DeafBelow: robot.RungHold}, 3, robot.StopConfirmed, 300 * time.Millisecond},
		{"cancel hangs", robottest.Faults{DeafBelow: robot.RungHold, HangBelow: robot.RungHold}, 3, robot.StopConfirmed, time.Second},
		{"all but power ignored", robottest.Faults{DeafBelow: robot.RungPower}, 4, robot.StopConfirmed, 2 * time.Second},
		{"a second to brake", robottest.Faults{Coast: time.Second}, 3, robot.StopConfirmed, 1300 * time.Millisecond},
		{"all ignored", robottest.Faults{DeafAlways: true}, 4, robot.StopNotConfirmed, 4 * time.Second},
	} {
		prove(t, c.name, build{set: slowly(0.1)}, func(r *rig) {
			r.move(r3.Vec{Y: 0.3, Z: -0.2})
			r.machine.Break(c.f)
			rep := r.meanwhile(half, func() {
				begun := r.clock.Now()
				err := r.stage.Stop(context.Background())
				if took := r.clock.Now().Sub(begun); took > c.most || (err == nil) != (c.stop == robot.StopConfirmed) {
					r.Errorf("stop: %v after %v", err, took)
				}
				if c.stop == robot.StopConfirmed && !r.still() {
					r.Error("the stop was confirmed and the machine moves")
				}
			})
			if h := r.machine.Halts(); len(h) != c.rungs {
				r.Errorf("rungs %v", h)
			}
			if o := rep.Outcome; o.Stop != c.stop {
				r.Errorf("%v: %s", o.Stop, o.Why)
			}
			if n := r.log.count("stopped") + r.log.count("stop not confirmed"); n != 1 {
				r.Errorf("%d lines about one stop:\n%s", n, r.log)
			}
		})
	}
}

// An e-stop needs no ladder: one rung, the last one.
func TestEStopInMidMotionTakesPower(t *testing.T) {
	prove(t, "power", build{set: slowly(0.1)}, func(r *rig) {
		r.move(aside)
		r.machine.Break(robottest.Faults{DeafBelow: robot.RungPower})
		r.meanwhile(half, func() {
			begun := r.clock.Now()
			must(r.T, r.guard.EStop(context.Background(), "page"))
			if took := r.clock.Now().Sub(begun); took > 300*time.Millisecond {
				r.Errorf("the e-stop took %v", took)
			}
		})
		if h := r.machine.Halts(); len(h) != 1 || h[0] != robot.RungPower {
			r.Errorf("rungs %v", h)
		}
		if n := r.log.count("latched"); n != 1 || r.log.count("stopped") != 1 {
			r.Errorf("log:\n%s", r.log)
		}
		r.look()
		r.refused(safety.RuleLatch, "e-stop: page")
		r.guard.ClearLatch("anna")
		must(r.T, r.guard.Arm("anna"))
		r.look()
		r.refused(safety.RuleMode, "runstopped") // arming clears no runstop
		r.machine.SetMode(robot.ModeReady, "")
		r.goesOn()
	})
}

// The link breaks: nothing measured says that the machine stopped, though its own watchdog has stopped it.
func TestDisconnect(t *testing.T) {
	prove(t, "in mid-motion", build{set: slowly(0.1)}, func(r *rig) {
		r.move(aside)
		cut := time.Time{}
		rep := r.meanwhile(half, func() {
			cut = r.clock.Inner.Now()
			r.machine.Sever()
			<-r.clock.Inner.After(r.machine.Deadman())
			if !r.still() {
				r.Errorf("%v after the cut the machine moves: %v", r.clock.Inner.Now().Sub(cut), r.machine.Machine().QD)
			}
		})
		r.came(rep, robot.ResultUnknown, robot.StopNotConfirmed, "link to the robot is lost")
		r.stage.Show()
		before := r.machine.Machine()
		if _, err := r.execute(); err == nil {
			r.Error("a severed robot goes")
		}
		r.stays(before)
	})
	prove(t, "as the command goes out", build{set: slowly(0.1)}, func(r *rig) {
		r.move(aside)
		r.body.set(func() {
			r.body.follow = func(ctx context.Context, tr robot.Trajectory) error {
				go func() { _ = r.machine.Follow(context.WithoutCancel(ctx), tr) }()
				<-r.clock.Inner.After(time.Millisecond)
				last := r.machine.State() // at rest still: the last reading looks as if nothing had moved
				r.body.set(func() { r.body.state = func(robot.State) robot.State { return last } })
				return errors.New("connection reset")
			}
		})
		r.came(r.runs(), robot.ResultUnknown, robot.StopNotConfirmed, "connection reset")
	})
}
