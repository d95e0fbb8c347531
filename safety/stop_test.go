package safety

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"viad/drivers/robot"
	"viad/perception"
)

func TestStopDoesNotWaitForTheMotion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		begun, end := make(chan struct{}), make(chan struct{})
		b.robot.goes = deaf(begun, end)
		p := b.plan()
		first := make(chan error, 1)
		go func() { _, err := b.guard.Go(context.Background(), p); first <- err }()
		<-begun
		b.robot.set(func() { b.robot.stops = func(context.Context) error { close(end); return nil } })
		gone, cancel := context.WithCancel(t.Context())
		cancel() // who asked is gone already; the stop happens all the same
		if err := b.guard.Stop(gone); err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("the stopped motion: %v", err)
		}
		if b.log.count("stopped") != 1 || b.guard.Latched() != "" {
			t.Errorf("latched %q, log:\n%s", b.guard.Latched(), b.log.buf.String())
		}
	})
}

// TestStopBeforeTheMotionBegins catches a plan that is still being checked.
func TestStopBeforeTheMotionBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.Limits.SceneAge = 100 * time.Millisecond })
		p := b.plan()
		<-b.clock.After(time.Second)
		checking, stopped := make(chan struct{}), make(chan struct{})
		b.eyes.refresh = func(context.Context) (*perception.Scene, error) {
			close(checking)
			<-stopped
			return b.eyes.sc, nil
		}
		b.robot.goes = func(context.Context, robot.Plan) (robot.Outcome, error) {
			t.Error("it moved after the stop")
			return reached()
		}
		first := make(chan error, 1)
		go func() { _, err := b.guard.Go(context.Background(), p); first <- err }()
		<-checking
		if err := b.guard.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		close(stopped)
		if err := <-first; refusal(err) != RuleStopping {
			t.Errorf("got %v", err)
		}
	})
}

func TestStopNotConfirmedLatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, change := range map[string]func(b *bench){
			"the motion ended so": func(b *bench) {
				b.robot.goes = func(context.Context, robot.Plan) (robot.Outcome, error) {
					return robot.Outcome{Result: robot.ResultReached}, nil
				}
			},
			"the stop says so": func(b *bench) {
				b.robot.stops = func(context.Context) error { return errors.New("joint 3 still moves") }
			},
			"the stop hangs": func(b *bench) { b.robot.stops = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() } },
		} {
			b := newBench(t)
			change(b)
			p := b.plan()
			_, goErr := b.guard.Go(t.Context(), p)
			began := b.clock.Now()
			stopErr := b.guard.Stop(t.Context())
			if took := b.clock.Now().Sub(began); took > 4*time.Second+beat {
				t.Errorf("%s: the stop took %v", name, took)
			}
			if goErr != nil || name != "the motion ended so" && (stopErr == nil || !strings.Contains(stopErr.Error(), "stop NOT confirmed")) {
				t.Errorf("%s: %v, %v", name, goErr, stopErr)
			}
			if _, err := b.guard.Go(t.Context(), p); refusal(err) != RuleLatch {
				t.Errorf("%s: the next motion says %v", name, err)
			}
			if err := b.guard.Arm("anna"); refusal(err) != RuleLatch {
				t.Errorf("%s: armed over a latch: %v", name, err)
			}
			b.guard.ClearLatch("anna")
			if _, err := b.guard.Go(t.Context(), p); refusal(err) != RuleArmed {
				t.Errorf("%s: clearing a latch armed the robot: %v", name, err)
			}
			<-b.clock.After(time.Millisecond) // the next reading
			if err := b.guard.Arm("anna"); err != nil || b.guard.Ready() != nil {
				t.Errorf("%s: %v, %v", name, err, b.guard.Ready())
			}
			if b.log.count("latched") != 1 {
				t.Errorf("%s: log:\n%s", name, b.log.buf.String())
			}
		}
	})
}

func TestEStopInMidMotion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.robot.goes = b.takes(20 * time.Second)
		p := b.plan()
		first := make(chan robot.Outcome, 1)
		go func() { out, _ := b.guard.Go(context.Background(), p); first <- out }()
		<-b.robot.began
		if err := b.guard.EStop(t.Context(), "page"); err != nil {
			t.Fatal(err)
		}
		if out := <-first; out.Why != "cancelled" {
			t.Errorf("outcome %+v", out)
		}
		s := b.guard.Status()
		if s.Armed || s.Latched != "e-stop: page" || ruleOf(s.Refused) != RuleLatch || s.Moving {
			t.Errorf("status %+v", s)
		}
	})
}

func TestArming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *Options) { o.AutoArm = false })
		p := b.plan()
		if _, err := b.guard.Go(t.Context(), p); refusal(err) != RuleArmed {
			t.Fatalf("a robot that nobody armed: %v", err)
		}
		if err := b.guard.Arm("anna"); err != nil || b.guard.Status().ArmedBy != "anna" {
			t.Fatal(err)
		}
		if _, err := b.guard.Go(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		b.robot.goes = b.takes(20 * time.Second)
		first := make(chan robot.Outcome, 1)
		<-b.robot.began // of the motion above
		go func() { out, _ := b.guard.Go(context.Background(), p); first <- out }()
		<-b.robot.began
		if err := b.guard.Disarm(t.Context(), "anna"); err != nil {
			t.Fatal(err)
		}
		if out := <-first; out.Why != "cancelled" || b.robot.asked != 1 {
			t.Errorf("disarming in mid-motion: %+v, %d stops", out, b.robot.asked)
		}
		if r := b.guard.Ready(); ruleOf(r) != RuleArmed {
			t.Errorf("got %v", r)
		}
	})
}
