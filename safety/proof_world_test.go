package safety_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/control"
	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/drivers/sensor"
	"viad/interface/stage"
	"viad/safety"
)

type frameFunc = func() (*sensor.Frame, error)

func dead(context.Context, time.Time, frameFunc) (*sensor.Frame, error) {
	return nil, errors.New("cable is out")
}

// Clocks jump when machines sleep and when somebody sets them. Whichever way, a motion ends, never later than its cap
// by time that really passed, and what is said of it was measured.
func TestClockJumps(t *testing.T) {
	for _, by := range []time.Duration{10 * time.Second, -10 * time.Second, time.Hour, -time.Hour} {
		for _, stamps := range []string{"the daemon's clock", "the driver's clock"} {
			prove(t, by.String()+", readings on "+stamps, build{set: slowly(0.035)}, func(r *rig) {
				r.move(aside)
				begun := r.clock.Inner.Now()
				rep := r.meanwhile(half, func() {
					r.clock.jump(by)
					if stamps == "the driver's clock" {
						r.body.set(func() {
							r.body.state = func(s robot.State) robot.State {
								s.Received = s.Received.Add(-r.clock.offset())
								return s
							}
						})
					}
				})
				took := r.clock.Inner.Now().Sub(begun)
				if took > 32*time.Second || !r.still() {
					r.Errorf("the motion ended after %v, still %v", took, r.still())
				}
				if rep.Outcome.Result == robot.ResultReached {
					r.Errorf("reached, it says: %s", rep.Message)
				}
				if forth := by > 0 || stamps == "the driver's clock"; forth && took > 6*time.Second {
					r.Errorf("readings are %v off and the motion went on for %v", by, took)
				}
			})
		}
	}
	prove(t, "a short motion survives its clock going back", build{set: slowly(0.26)}, func(r *rig) {
		r.move(near)
		rep := r.meanwhile(half, func() { r.clock.jump(-time.Hour) })
		r.came(rep, robot.ResultReached, robot.StopConfirmed, "")
		r.goesOn()
	})
	prove(t, "between preview and execute", build{}, func(r *rig) {
		for _, by := range []time.Duration{11 * time.Minute, -time.Minute} {
			r.move(near)
			r.clock.jump(by)
			r.refused(stage.RuleLookAgain, "last look")
			must(r.T, r.stage.ResetToReal())
		}
		r.goesOn()
	})
}

// push puts the resting machine elsewhere.
func (r *rig) push(base geom.SE2, dq ...float64) {
	s := r.machine.Machine()
	q := slices.Clone(s.Q)
	for i, d := range dq {
		q[i] += d
	}
	r.machine.Place(s.Base.Mul(base), q)
	<-r.clock.After(30 * time.Millisecond) // until a reading shows it
}

// elbow is a motion of the arm by about that many radians that leaves the tool where it is: out of the null space of the
// tool's Jacobian, by differences.
func (r *rig) elbow(by float64) []float64 {
	s := r.machine.Machine()
	dq := make([]float64, len(s.Q))
	dq[0], dq[2], dq[4] = by, -by, by // a start; the tool is then brought back by the planner's own steps
	at := r.kin.Tool(s.Base, s.Q)
	q := slices.Clone(s.Q)
	for i := range q {
		q[i] += dq[i]
	}
	for range 200 { // coordinate descent on the tool's pose over the other joints
		for _, i := range []int{0, 1, 3, 4, 5, 6} {
			for _, d := range []float64{1e-3, -1e-3, 1e-4, -1e-4} {
				was := gap(at, r.kin.Tool(s.Base, q))
				q[i] += d
				if gap(at, r.kin.Tool(s.Base, q)) >= was {
					q[i] -= d
				}
			}
		}
	}
	for i := range q {
		dq[i] = q[i] - s.Q[i]
	}
	return dq
}

func gap(a, b geom.Pose) float64 { return a.Dist(b) + 0.3*a.Angle(b) }

// A robot that was nudged since it was shown is looked at again first, and then goes.
func TestNudgedBetweenPreviewAndExecute(t *testing.T) {
	again := func(r *rig) {
		r.refused(stage.RuleLookAgain, "the robot moved")
		sn := r.look()
		if !sn.Check.Staged {
			r.Error("the staged target is gone")
		}
		if rep := r.runs(); rep.Outcome.Result != robot.ResultReached {
			r.Errorf("after a look: %s", rep.Message)
		}
	}
	prove(t, "a joint", build{}, func(r *rig) {
		r.move(near)
		r.push(geom.SE2{}, 0.015)
		again(r)
	})
	prove(t, "every joint, either way", build{}, func(r *rig) {
		for i := range r.machine.Machine().Q {
			for _, by := range []float64{0.0092, -0.0092} { // half a degree is 0.0087
				r.move(near)
				dq := make([]float64, 7)
				dq[i] = by
				r.push(geom.SE2{}, dq...)
				r.refused(stage.RuleLookAgain, "the robot moved")
				must(r.T, r.stage.ResetToReal())
			}
		}
	})
	prove(t, "the elbow, and the tool stays", build{}, func(r *rig) {
		r.move(near)
		dq := r.elbow(0.03)
		s := r.machine.Machine()
		r.push(geom.SE2{}, dq...)
		if now := r.machine.Machine(); r.kin.Tool(now.Base, now.Q).Dist(r.kin.Tool(s.Base, s.Q)) > 0.004 {
			r.Fatalf("the test moves the tool by %v", r.kin.Tool(now.Base, now.Q).Dist(r.kin.Tool(s.Base, s.Q)))
		}
		again(r)
	})
	stretch := build{robot: control.Stretch4(), q: []float64{0.6, 0.1, 0.1, 0.2, 0}}
	for name, by := range map[string]geom.SE2{"the base": {X: 0.006}, "the base, turned": {Yaw: 0.012}} {
		prove(t, name, stretch, func(r *rig) {
			r.move(r3.Vec{X: 0.05})
			r.push(by)
			again(r)
		})
	}
	prove(t, "by less than counts", build{}, func(r *rig) {
		r.move(near)
		r.push(geom.SE2{}, 0.004)
		if rep := r.runs(); rep.Outcome.Result != robot.ResultReached {
			r.Errorf("2 mm are no reason: %s", rep.Message)
		}
	})
	prove(t, "as the motion begins", build{}, func(r *rig) { // after stage has looked: the guard's turn
		r.move(near)
		n := 0
		r.seen.bend(func(_ context.Context, _ time.Time, next frameFunc) (*sensor.Frame, error) {
			if n++; n == 1 { // the picture that the check is made in
				defer r.push(geom.SE2{}, 0.03)
			}
			return next()
		})
		<-r.clock.After(time.Second) // so that a new picture is needed
		before := r.machine.Machine().Q[0]
		_, err := r.execute()
		if err == nil || math.Abs(r.machine.Machine().Q[0]-before-0.03) > 1e-9 {
			r.Errorf("it went from where it was not: %v", err)
		}
	})
}

// Noise of encoders and cameras alone never kills a preview; what comes into the way does.
func TestNoiseAloneNeverKillsAPreview(t *testing.T) {
	prove(t, "60 previews", build{}, func(r *rig) {
		rng := rand.New(rand.NewPCG(5, 6))
		r.eye.noise = func() float64 { return 0.002 * rng.NormFloat64() }
		r.body.set(func() {
			r.body.state = func(s robot.State) robot.State {
				for i := range s.Q {
					s.Q[i] += 2e-4 * rng.NormFloat64()
				}
				return s
			}
		})
		d := r3.Vec{Z: 0.03}
		for i := range 60 {
			r.move(d)
			<-r.clock.After(time.Duration(i) * 100 * time.Millisecond)
			if _, err := r.execute(); err != nil {
				r.Fatalf("preview %d died: %v", i, err)
			}
			d = r3.Scale(-1, d)
		}
	})
	prove(t, "something in the way", build{}, func(r *rig) {
		r.move(r3.Vec{Z: -0.2})
		s := r.machine.Machine()
		tool := r.kin.Tool(s.Base, s.Q).P
		r.eye.put(r3.Add(tool, r3.Vec{X: 0.03, Z: -0.21}), 0.13)
		<-r.clock.After(time.Second)
		r.refused(stage.RuleLookAgain, "clearance")
		sn := r.look()
		if !sn.Check.Staged || sn.Check.Refused == nil || sn.Check.Refused.Rule != safety.RuleClearance {
			r.Errorf("the look shows %+v", sn.Check.Refused)
		}
		r.refused(safety.RuleClearance, "")
		r.eye.clear()
		<-r.clock.After(time.Second)
		r.look()
		if rep := r.runs(); rep.Outcome.Result != robot.ResultReached {
			r.Errorf("with the way clear again: %s", rep.Message)
		}
	})
	prove(t, "ten minutes", build{}, func(r *rig) {
		r.move(near)
		<-r.clock.After(10*time.Minute + time.Second)
		r.refused(stage.RuleLookAgain, "601 s ago")
		r.look()
		r.runs()
	})
}

// What the jaw holds is not in the robot's way, and goes along with it.
func TestHeldIsLeftOutAndCarried(t *testing.T) {
	prove(t, "a ball", build{fine: true}, func(r *rig) {
		r.machine.Break(robottest.Faults{Object: 0.05})
		r.eye.held = 0.025
		_, err := r.stage.Toggle("closed")
		must(r.T, err)
		r.look()
		if rep := r.runs(); !rep.Outcome.JawTo.Holding {
			r.Fatalf("nothing is held: %+v", rep.Outcome.JawTo)
		}
		if sc := r.fuser.Scene(); !sc.HasHeld || sc.Held.R > 0.05 {
			r.Fatalf("the ball in the jaw is not known as held: %v, %+v", sc.HasHeld, sc.Held)
		}
		r.move(r3.Vec{Z: 0.05}) // fails when the ball is in the way of the hand
		if n := r.stage.Snapshot().Check.Notes; len(n) != 0 {
			r.Errorf("up and away: %q", n)
		}
		must(r.T, r.stage.ResetToReal())
		s := r.machine.Machine()
		r.eye.put(r3.Add(r.kin.Tool(s.Base, s.Q).P, r3.Vec{Z: -0.20}), 0.10) // its top is 7.5 cm under the ball
		<-r.clock.After(time.Second)
		for down, touches := range map[float64]bool{0.04: false, 0.085: true} {
			r.move(r3.Vec{Z: -down})
			notes := strings.Join(r.stage.Snapshot().Check.Notes, "; ")
			if strings.Contains(notes, "held object") != touches {
				r.Errorf("%.3f m down: %q, held %+v, %+v", down, notes, r.fuser.Scene().Held, r.stage.Snapshot().Check.Way)
			}
			must(r.T, r.stage.ResetToReal())
		}
	})
}

// A runstop or a reflex in mid-motion ends it; nothing goes on by itself when it is over after 16 s, and what was
// planned before is not replayed.
func TestRunstopAndReflexWithASlowRecovery(t *testing.T) {
	for name, f := range map[string]robottest.Faults{"runstop": {StopAfter: half}, "reflex": {FaultAfter: half}} {
		prove(t, name, build{set: slowly(0.1)}, func(r *rig) {
			r.move(aside)
			r.machine.Break(f)
			rep := r.runs()
			r.came(rep, robot.ResultFaulted, robot.StopConfirmed, name)
			where := r.machine.Machine()
			for range 4 {
				<-r.clock.After(4 * time.Second)
				r.look()
				r.refused(safety.RuleMode, name)
			}
			r.machine.Break(robottest.Faults{})
			r.machine.SetMode(robot.ModeReady, "") // a person has seen to it
			<-r.clock.After(10 * time.Second)
			r.stays(where)
			if _, err := r.guard.Go(r.Context(), stalePlan(rep)); err == nil {
				r.Error("the old plan was replayed")
			}
			r.stays(where)
			r.look()
			r.runs()
		})
	}
	prove(t, "three within a minute", build{set: slowly(0.1)}, func(r *rig) {
		for i := range 3 {
			r.machine.Break(robottest.Faults{FaultAfter: half})
			must(r.T, r.stage.ResetToReal())
			r.move(r3.Vec{Y: 0.1})
			if rep := r.runs(); rep.Outcome.Result != robot.ResultFaulted {
				r.Fatalf("%d: %s", i, rep.Message)
			}
			r.machine.SetMode(robot.ModeReady, "")
			<-r.clock.After(16 * time.Second)
		}
		r.look()
		r.refused(safety.RuleLatch, "3 motions ended in a fault")
	})
}

// stalePlan is a plan as it was before the motion of rep.
func stalePlan(rep *stage.Report) robot.Plan {
	b := rep.Outcome.Before
	return robot.Plan{Waypoint: robot.Waypoint{Kind: robot.KindPose, Tool: rep.Ordered.Pose}, FromSeq: b.Seq, From: b}
}

// A camera that is silent, old, broken or covered is no camera: nothing moves by it.
func TestBrokenCameras(t *testing.T) {
	for name, bend := range map[string]func(r *rig) func(context.Context, time.Time, frameFunc) (*sensor.Frame, error){
		"cable out": func(*rig) func(context.Context, time.Time, frameFunc) (*sensor.Frame, error) { return dead },
		"silent": func(*rig) func(context.Context, time.Time, frameFunc) (*sensor.Frame, error) {
			return func(ctx context.Context, _ time.Time, _ frameFunc) (*sensor.Frame, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		},
		"stamps stand still": func(r *rig) func(context.Context, time.Time, frameFunc) (*sensor.Frame, error) {
			f, err := r.eye.Frame(r.Context(), time.Time{})
			return func(context.Context, time.Time, frameFunc) (*sensor.Frame, error) { return f, err }
		},
		"covered": func(*rig) func(context.Context, time.Time, frameFunc) (*sensor.Frame, error) {
			return func(_ context.Context, _ time.Time, next frameFunc) (*sensor.Frame, error) {
				f, err := next()
				clear(f.Depth)
				return f, err
			}
		},
		"half a frame": func(*rig) func(context.Context, time.Time, frameFunc) (*sensor.Frame, error) {
			return func(_ context.Context, _ time.Time, next frameFunc) (*sensor.Frame, error) {
				f, err := next()
				f.Depth = f.Depth[:len(f.Depth)/2]
				return f, err
			}
		},
		"NaN": func(*rig) func(context.Context, time.Time, frameFunc) (*sensor.Frame, error) {
			return func(_ context.Context, _ time.Time, next frameFunc) (*sensor.Frame, error) {
				f, err := next()
				for i := range f.Depth {
					f.Depth[i] = float32(math.NaN())
				}
				return f, err
			}
		},
	} {
		prove(t, name, build{}, func(r *rig) {
			r.move(near)
			r.seen.bend(bend(r))
			<-r.clock.After(2 * time.Second)
			before, begun := r.machine.Machine(), r.clock.Now()
			if _, err := r.execute(); err == nil {
				r.Error("it went, blind")
			}
			if took := r.clock.Now().Sub(begun); took > 10*time.Second {
				r.Errorf("the refusal took %v", took)
			}
			r.stays(before)
			r.seen.heal()
			<-r.clock.After(time.Second)
			r.look()
			r.runs()
		})
	}
	prove(t, "silent in mid-motion", build{set: slowly(0.1)}, func(r *rig) { // the motion was checked before it began
		r.move(near)
		rep := r.meanwhile(half, func() { r.seen.bend(dead) })
		r.came(rep, robot.ResultReached, robot.StopConfirmed, "")
		if rep.Message == "" {
			r.Error("the report does not say that its pictures are old")
		}
	})
}

// When the request that carries an execute ends, the motion does what the operator's file says.
func TestRequestThatEndsEarly(t *testing.T) {
	for policy, want := range map[stage.ClientGone]robot.Result{stage.Finish: robot.ResultReached, stage.StopNow: robot.ResultStoppedShort} {
		b := build{set: slowly(0.1), stage: func(o *stage.Options) { o.OnClientGone = policy }}
		prove(t, want.String(), b, func(r *rig) {
			r.move(aside)
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			var gone time.Time
			go func() {
				<-r.clock.After(time.Second)
				gone = r.clock.Now()
				cancel()
			}()
			rep, err := r.stage.Execute(ctx, r.clock.Now(), 1)
			must(r.T, err)
			r.came(rep, want, robot.StopConfirmed, "")
			if d := r.clock.Now().Sub(gone); policy == stage.StopNow && d > time.Second {
				r.Errorf("stopped %v after the client was gone", d)
			}
		})
	}
}
