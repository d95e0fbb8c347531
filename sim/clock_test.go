package sim

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"viad/drivers/robot"
)

func TestFastClockMissesNoTickOfASlowReader(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	const period = 10 * time.Millisecond
	tick := tw.Clock().Ticker(period)
	defer tick.Stop()
	quick := tw.Clock().Ticker(3 * time.Millisecond) // a second reader that is not slow
	stop := make(chan struct{})
	wait := make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-quick.C():
				n++
			case <-stop:
				wait <- n
				return
			}
		}
	}()
	begin := <-tick.C()
	work := uint64(0)
	for k := 1; k <= 50; k++ {
		got := <-tick.C()
		if want := begin.Add(time.Duration(k) * period); !got.Equal(want) {
			t.Fatalf("tick %d at %v, want %v", k, got.Sub(begin), want.Sub(begin))
		}
		for i := range uint64(300000) { // several ticks' worth of the twin's own pace
			work = mix(work, i, 1)
		}
		if now := tw.Clock().Now(); now.Sub(got) > period {
			t.Fatalf("the clock ran to %v past tick %d, whose successor was not received", now.Sub(got), k)
		}
		if age := tw.Clock().Now().Sub(tw.State().Received); age < 0 || age > 4*time.Millisecond {
			t.Fatalf("state of age %v", age)
		}
	}
	close(stop)
	n := <-wait
	quick.Stop()
	if want := 500 / 3; n < want-3 || n > want+12 {
		t.Errorf("the quick reader got %d ticks in 0.5 s, want about %d", n, want)
	}
}

func TestFastClockStandsStillWithNobodyWaiting(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	after(t, tw, 100*time.Millisecond)
	now := tw.Clock().Now()
	for range 10000 {
		runtime.Gosched()
	}
	if got := tw.Clock().Now(); !got.Equal(now) {
		t.Errorf("the clock went on by %v with nobody waiting", got.Sub(now))
	}
	if want := epoch.Add(100 * time.Millisecond); !now.Equal(want) {
		t.Errorf("clock at %v, want %v", now, want)
	}
}

func TestAbandonedWaitsDoNotStopTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tw := start(t, Options{Robot: "fr3", World: "tabletop"})
		begin := time.Now()
		tick := tw.Clock().Ticker(10 * time.Millisecond)
		defer tick.Stop()
		left := tw.Clock().After(20 * time.Millisecond)
		<-tw.Clock().After(500 * time.Millisecond)
		if wall := time.Since(begin); wall > 3*time.Second || wall < tickPatience {
			t.Errorf("half a second with an unread ticker took %v of wall time", wall)
		}
		select {
		case <-left:
		default:
			t.Error("an After that came due was lost")
		}
		select {
		case <-tick.C():
		default:
			t.Error("the unread tick was lost")
		}
		// A ticker that is read again holds the clock again.
		next := <-tick.C()
		if d := tw.Clock().Now().Sub(next); d > 10*time.Millisecond {
			t.Errorf("the clock is %v past the tick", d)
		}
		tw.Close()
	})
}

func TestRealPaceIsWallTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tw := start(t, Options{Robot: "fr3", World: "tabletop", Pace: PaceReal})
		begin, phys := time.Now(), tw.Clock().Now()
		<-tw.Clock().After(2 * time.Second)
		if d := time.Since(begin) - 2*time.Second; d < -10*time.Millisecond || d > 10*time.Millisecond {
			t.Errorf("2 s took %v of wall time", time.Since(begin))
		}
		if d := tw.Clock().Now().Sub(phys) - 2*time.Second; d < 0 || d > 8*time.Millisecond {
			t.Errorf("physics at %v", tw.Clock().Now().Sub(phys))
		}
		tick := tw.Clock().Ticker(100 * time.Millisecond)
		defer tick.Stop()
		time.Sleep(time.Second) // virtual: an unread ticker does not hold a real clock
		if d := time.Since(begin) - tw.Clock().Now().Sub(phys); d < -10*time.Millisecond || d > 10*time.Millisecond {
			t.Errorf("wall and physics apart by %v", d)
		}
		tw.Close()
	})
}

func TestDistantDeadlineAloneGoesAtTheWallsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tw := start(t, Options{Robot: "fr3", World: "tabletop"})
		begin, phys := time.Now(), tw.Clock().Now()
		far := tw.Clock().After(5 * time.Second)
		time.Sleep(200 * time.Millisecond) // virtual, so that a busy machine changes nothing: somebody computes
		if d := tw.Clock().Now().Sub(phys); d < 190*time.Millisecond || d > 210*time.Millisecond {
			t.Errorf("the clock went %v in 0.2 s", d)
		}
		<-tw.Clock().After(500 * time.Millisecond) // a near one goes as fast as it can
		if wall := time.Since(begin); wall > 210*time.Millisecond {
			t.Errorf("half a second took until %v", wall)
		}
		<-far
		if wall := time.Since(begin); wall > time.Second {
			t.Errorf("the far deadline took until %v of wall time", wall)
		}
		tw.Close()
	})
}

func TestTimeoutOnTheTwinsClock(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	begin := tw.Clock().Now()
	ctx, cancel := robot.WithTimeout(t.Context(), tw.Clock(), 700*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		t.Errorf("ended by %v", context.Cause(ctx))
	}
	if d := tw.Clock().Now().Sub(begin); d < 700*time.Millisecond || d > 1400*time.Millisecond {
		t.Errorf("ended after %v", d)
	}
}

func TestCloseEndsEverybody(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	tick := tw.Clock().Ticker(time.Millisecond) // unread: the clock stands at its first tick
	defer tick.Stop()
	done := make(chan error, 3)
	go func() {
		done <- tw.Follow(context.Background(), reach(tw.State(), []float64{0.3}, zero, 5*time.Second))
	}()
	go func() { done <- tw.Grip(context.Background(), robot.JawTarget{}) }()
	go func() {
		_, err := tw.Sources()[0].Frame(context.Background(), tw.Clock().Now().Add(time.Hour))
		done <- err
	}()
	for tw.State().Mode != robot.ModeMoving {
		runtime.Gosched()
	}
	tw.Close()
	for range 3 {
		if err := <-done; !errors.Is(err, ErrOver) {
			t.Errorf("ended with %v", err)
		}
	}
	if err := tw.Follow(context.Background(), robot.Trajectory{}); !errors.Is(err, ErrOver) {
		t.Errorf("Follow after Close: %v", err)
	}
	if err := tw.Reset(context.Background(), 2); !errors.Is(err, ErrOver) {
		t.Errorf("Reset after Close: %v", err)
	}
	tw.State()
}
