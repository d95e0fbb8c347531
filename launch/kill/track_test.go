package kill

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/sim"
)

// instant is where the robot truly was: when, and when on its own clock. A computer that is too slow for the physics slows
// that clock, and the robot with it.
type instant struct {
	at   time.Time
	own  time.Time
	q    []float64
	base geom.SE2
	tool r3.Vec
}

// track looks at the truth a hundred times a second until it is ended.
type track struct {
	twin *sim.Twin
	quit chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	list []instant
}

func follow(t *testing.T, tw *sim.Twin) *track {
	k := &track{twin: tw, quit: make(chan struct{})}
	k.look()
	k.done.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-k.quit:
				return
			case <-tick.C:
				k.look()
			}
		}
	})
	t.Cleanup(k.end)
	return k
}

func (k *track) look() {
	tr := k.twin.Truth()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, instant{time.Now(), tr.Time, tr.Q, tr.Base, tr.Tool.P})
}

func (k *track) end() {
	k.mu.Lock()
	select {
	case <-k.quit:
	default:
		close(k.quit)
	}
	k.mu.Unlock()
	k.done.Wait()
}

func (k *track) all() []instant {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list[:len(k.list):len(k.list)]
}

// Off by no more than this is the same place: metres and radians, since a joint is one or the other.
const samePlace = 0.0015

// A hold where it was measured takes up what a joint had sagged by: no more than this is no motion.
const settling = 0.003

// And no more than this when the twin's own controller gives the robot to a driver that comes up.
const handedOver = 0.006

// off is by how much the joint or the base that differs most does.
func off(a, b instant) (by float64, who string) {
	more := func(d float64, name string) {
		if d = math.Abs(d); d > by {
			by, who = d, name
		}
	}
	for i := range a.q {
		more(a.q[i]-b.q[i], fmt.Sprintf("joint %d", i+1))
	}
	more(math.Hypot(a.base.X-b.base.X, a.base.Y-b.base.Y), "the base")
	more(geom.WrapAngle(a.base.Yaw-b.base.Yaw), "the base's heading")
	return by, who
}

// speed is how fast the tool was in the tenth of a second before, m/s.
func (k *track) speed(at time.Time) float64 {
	var from, to instant
	for _, i := range k.all() {
		if i.at.Before(at.Add(-100 * time.Millisecond)) {
			from = i
		}
		if i.at.Before(at) {
			to = i
		}
	}
	if from.q == nil {
		return 0
	}
	return r3.Norm(r3.Sub(to.tool, from.tool)) / to.at.Sub(from.at).Seconds()
}

// halt is what became of a motion after an instant: how long it took until the robot was first where it stayed, on its own
// clock and on the wall's, and how far the tool still went.
type halt struct {
	own, wall time.Duration
	coasted   float64
}

func (h halt) String() string {
	text := fmt.Sprintf("at rest after %4d ms", h.own.Milliseconds())
	if h.wall > h.own+h.own/5+20*time.Millisecond {
		text += fmt.Sprintf(" (%d on the wall's clock)", h.wall.Milliseconds())
	}
	return text
}

func (k *track) halted(since time.Time) (h halt) {
	list := k.all()
	end := list[len(list)-1]
	from := slices.IndexFunc(list, func(i instant) bool { return !i.at.Before(since) })
	h.coasted = r3.Norm(r3.Sub(end.tool, list[from].tool))
	for i := len(list) - 1; i >= from; i-- {
		if by, _ := off(list[i], end); by > samePlace {
			h.own, h.wall = list[i].own.Sub(list[from].own), list[i].at.Sub(since)
			break
		}
	}
	return h
}

// moved is the largest distance from where it was at an instant, since then.
func (k *track) moved(since time.Time) (by float64, who string) {
	var from *instant
	for _, i := range k.all() {
		if i.at.Before(since) {
			continue
		}
		if from == nil {
			from = &i
		}
		if d, w := off(*from, i); d > by {
			by, who = d, w
		}
	}
	return by, who
}

// went waits until the tool has gone so far from where the track began, and returns nil, or what was told before.
func (k *track) went(metres float64, answer <-chan told) *told {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		list := k.all()
		if r3.Norm(r3.Sub(list[len(list)-1].tool, list[0].tool)) > metres {
			return nil
		}
		select {
		case <-tick.C:
		case what := <-answer: // after 90 s at most
			return &what
		}
	}
}
