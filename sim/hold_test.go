package sim

import (
	"testing"
	"time"
)

func TestTakingAPictureTakesNoPhysicsTime(t *testing.T) {
	tw := start(t, Options{Robot: "fr3", World: "tabletop"})
	tick := tw.Clock().Ticker(time.Millisecond)
	ticked := make(chan struct{})
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { // somebody waits all the time: the clock would run on
		defer close(done)
		for {
			select {
			case <-tick.C():
				select {
				case ticked <- struct{}{}:
				default:
				}
			case <-stop:
				return
			}
		}
	}()
	defer func() { close(stop); <-done; tick.Stop() }()

	<-ticked
	release, err := tw.until(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	begin := tw.Clock().Now()
	var last time.Time
	for _, name := range []string{"third_person", "wrist", "third_person", "wrist"} {
		last = frame(t, source(t, tw, name), time.Time{}).Stamp
	}
	// The engine may have been within a step when it was asked to wait.
	if d := tw.Clock().Now().Sub(begin); d > 4*time.Millisecond {
		t.Errorf("%v went by while pictures were taken", d)
	}
	if d := last.Sub(begin); d < 0 || d > 4*time.Millisecond {
		t.Errorf("the last picture shows %v after the first", d)
	}
	release()
	<-ticked
	<-ticked // and afterwards time goes on
}
