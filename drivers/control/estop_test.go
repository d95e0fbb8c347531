package control

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
)

// An e-stop does not walk the ladder: power comes first, and alone when it works.
func TestEStopIsPowerAtOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		f      robottest.Faults
		within time.Duration
		rungs  int
		ok     bool
	}{
		{"a good robot", robottest.Faults{}, 250 * time.Millisecond, 1, true},
		{"one that heeds power alone", robottest.Faults{DeafBelow: robot.RungPower}, 250 * time.Millisecond, 1, true},
		{"one that heeds nothing", robottest.Faults{DeafAlways: true}, 4 * time.Second, 4, false},
	} {
		bubble(t, c.name, func(t *testing.T) {
			r := newRig(t, func(s *Settings) { s.SpeedScale = 0.1 })
			p := r.plan(r3.Vec{Y: 0.3, Z: -0.2})
			r.body.Break(c.f)
			done := make(chan robot.Outcome)
			go func() { done <- r.run(p) }()
			r.untilMoving(time.Second)
			began := r.clock.Now()
			err := r.c.EStop(context.Background())
			if took := r.clock.Now().Sub(began); took > c.within || (err == nil) != c.ok {
				t.Errorf("%v after %v", err, took)
			}
			if h := r.body.Halts(); len(h) != c.rungs || h[0] != robot.RungPower {
				t.Errorf("rungs %v", h)
			}
			if o := <-done; (o.Stop == robot.StopConfirmed) != c.ok {
				t.Errorf("%v, %v: %s", o.Result, o.Stop, o.Why)
			}
			<-r.clock.After(30 * time.Second)
		})
	}
}

// A ladder whose mild rungs all hang still comes to power and to an answer within the guard's stop time of 4 s.
func TestHangingRungsDoNotDelayPower(t *testing.T) { synctest.Test(t, hangingRungs) }

func hangingRungs(t *testing.T) {
	r := newRig(t, func(s *Settings) { s.SpeedScale = 0.1 })
	p := r.plan(tenCM)
	r.body.Break(robottest.Faults{HangBelow: robot.RungPower, DeafBelow: robot.RungPower})
	done := make(chan robot.Outcome)
	go func() { done <- r.run(p) }()
	r.untilMoving(time.Second)
	began := r.clock.Now()
	if err := r.c.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if took := r.clock.Now().Sub(began); took > 2*time.Second {
		t.Errorf("stopping took %v", took)
	}
	r.expect(<-done, robot.ResultStoppedShort, robot.StopConfirmed, "stop command")
}

// How long a stop takes decides which rung it needs.
func TestStopThatTakesLong(t *testing.T) {
	for _, c := range []struct {
		coast time.Duration
		rungs int
	}{{time.Second, 3}, {2800 * time.Millisecond, 4}} {
		bubble(t, c.coast.String(), func(t *testing.T) {
			r := newRig(t, func(s *Settings) { s.SpeedScale = 0.3 })
			p := r.plan(r3.Vec{Y: 0.3, Z: -0.2})
			r.body.Break(robottest.Faults{Coast: c.coast})
			done := make(chan robot.Outcome)
			go func() { done <- r.run(p) }()
			r.untilMoving(time.Second)
			if err := r.c.Stop(context.Background()); err != nil {
				t.Error(err)
			}
			r.expect(<-done, robot.ResultStoppedShort, robot.StopConfirmed, "stop command")
			if h := r.body.Halts(); len(h) != c.rungs {
				t.Errorf("rungs %v", h)
			}
			<-r.clock.After(5 * time.Second)
		})
	}
}
