package robottest

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"viad/drivers/robot"
)

// Subject is a body to be checked, at rest and ready, with the clock it lives on.
type Subject struct {
	Body  robot.Body
	Clock robot.Clock
	Model *robot.Model
	// Nudge is how far each joint may be moved from where it is, radians or metres; nil: 0.05 rad and 0.02 m,
	// away from the nearer limit.
	Nudge []float64
	// Sever cuts the link between the body and its machine for good, as when the daemon has died, and Machine is what
	// somebody beside the machine measures, whatever the body's readings say. nil: the dead-man is not tried.
	Sever   func()
	Machine func() robot.State
	// Settle is how near measured joints come to the end of a trajectory, radians or metres, 0: 0.005.
	Settle float64
}

// CheckBody is what every robot.Body must do. fresh makes a new Subject for each check, and cleans up
// after itself with t.Cleanup. around, if not nil, runs each check: synctest.Test for a body on virtual
// wall time.
func CheckBody(t *testing.T, fresh func(t *testing.T) Subject, around func(*testing.T, func(*testing.T))) {
	if around == nil {
		around = func(t *testing.T, f func(*testing.T)) { f(t) }
	}
	for _, c := range []struct {
		name  string
		check func(*checker)
	}{
		{"state is complete and fresh", (*checker).state},
		{"state never blocks", (*checker).neverBlocks},
		{"states are immutable", (*checker).immutable},
		{"follow arrives and settles", (*checker).follows},
		{"malformed trajectories are refused", (*checker).refuses},
		{"one follow at a time", (*checker).single},
		{"halt beside follow", (*checker).halts},
		{"halt at rest", (*checker).haltsAtRest},
		{"end of context", (*checker).context},
		{"grip shuts and opens", (*checker).grips},
		{"halt beside grip", (*checker).haltsGrip},
		{"deadman is stated", (*checker).deadman},
		{"the machine stops without the daemon", (*checker).severs},
		{"readings age without the machine", (*checker).ages},
	} {
		t.Run(c.name, func(t *testing.T) {
			around(t, func(t *testing.T) { c.check(&checker{T: t, Subject: fresh(t)}) })
		})
	}
}

type checker struct {
	*testing.T
	Subject
}

const (
	patience = 20 * time.Second // patience with anything that should end
	maxAge   = 250 * time.Millisecond
	stopTime = 1500 * time.Millisecond // from Halt to standstill
	restRev  = 0.02                    // rad/s that count as standstill
	restLin  = 0.005                   // m/s
)

func (c *checker) sleep(d time.Duration) { <-c.Clock.After(d) }

// nudge is a smooth trajectory of d seconds to where the joints are plus k times their nudge.
func (c *checker) nudge(k float64, d time.Duration) robot.Trajectory {
	s := c.Body.State()
	const n = 40
	var t robot.Trajectory
	for i := range n + 1 {
		x := float64(i) / n
		p := robot.Point{T: time.Duration(x * float64(d)), Q: make([]float64, len(s.Q)), QD: make([]float64, len(s.Q)), Base: s.Base}
		pos := x * x * x * (10 - 15*x + 6*x*x)
		vel := 30 * x * x * (1 - 2*x + x*x) / d.Seconds()
		for j := range s.Q {
			step := k * c.step(j, s.Q[j])
			p.Q[j], p.QD[j] = s.Q[j]+pos*step, vel*step
		}
		t.Points = append(t.Points, p)
	}
	return t
}

func (c *checker) step(j int, q float64) float64 {
	if c.Nudge != nil {
		return c.Nudge[j]
	}
	m := c.Model.Joints[j]
	step := 0.05
	if m.Prismatic {
		step = 0.02
	}
	if q > (m.Min+m.Max)/2 {
		return -step
	}
	return step
}

// timed runs f and waits for it on the body's clock.
func (c *checker) timed(what string, f func() error) error {
	c.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	return c.ends(what, done)
}

func (c *checker) ends(what string, done <-chan error) error {
	c.Helper()
	tick := c.Clock.Ticker(20 * time.Millisecond)
	defer tick.Stop()
	for end := c.Clock.Now().Add(patience); c.Clock.Now().Before(end); {
		select {
		case err := <-done:
			return err
		case <-tick.C():
		}
	}
	c.Fatalf("%s did not return within %v", what, patience)
	return nil
}

func (c *checker) still(s robot.State) bool {
	for i, v := range s.QD {
		limit := restRev
		if c.Model.Joints[i].Prismatic {
			limit = restLin
		}
		if !(math.Abs(v) <= limit) {
			return false
		}
	}
	return s.BaseV.Norm() <= restLin && math.Abs(s.BaseV.Yaw) <= restRev
}

// standsStill waits for standstill that lasts and reports how long it took.
func (c *checker) standsStill(after string) {
	c.Helper()
	for end, calm := c.Clock.Now().Add(stopTime), 0; calm < 5; {
		if c.Clock.Now().After(end) {
			c.Fatalf("%s: still moving after %v: %v", after, stopTime, c.Body.State().QD)
		}
		c.sleep(20 * time.Millisecond)
		calm++
		if !c.still(c.Body.State()) {
			calm = 0
		}
	}
	a := c.Body.State()
	c.sleep(300 * time.Millisecond)
	if d := c.apart(a.Q, c.Body.State().Q); d > 0.005 {
		c.Errorf("%s: crept on by %v", after, d)
	}
}

func (c *checker) apart(a, b []float64) float64 {
	d := 0.0
	for i := range a {
		d = math.Max(d, math.Abs(a[i]-b[i]))
	}
	return d
}

func (c *checker) state() {
	for range 20 {
		c.sleep(30 * time.Millisecond)
		s := c.Body.State()
		if !s.Complete(c.Model) {
			c.Fatalf("state is incomplete: %+v", s)
		}
		if age := c.Clock.Now().Sub(s.Received); age < 0 || age > maxAge {
			c.Fatalf("state is %v old", age)
		}
		if s.Mode != robot.ModeReady {
			c.Fatalf("a resting robot is %v: %s", s.Mode, s.Fault)
		}
	}
	a := c.Body.State()
	c.sleep(200 * time.Millisecond)
	if b := c.Body.State(); b.Seq <= a.Seq || !b.Received.After(a.Received) {
		c.Errorf("readings do not advance: %d at %v, then %d at %v", a.Seq, a.Received, b.Seq, b.Received)
	}
}

func (c *checker) neverBlocks() {
	done := make(chan error, 1)
	t := c.nudge(1, 2*time.Second)
	go func() { done <- c.Body.Follow(context.Background(), t) }()
	began, most := time.Now(), time.Duration(0)
	for range 200 {
		a := time.Now()
		c.Body.State()
		most = max(most, time.Since(a))
		runtime.Gosched()
	}
	if d := time.Since(began); d > 2*time.Second {
		c.Errorf("200 calls of State during a Follow took %v, the slowest %v", d, most)
	}
	if err := c.ends("Follow", done); err != nil {
		c.Errorf("Follow: %v", err)
	}
}

func (c *checker) immutable() {
	a := c.Body.State()
	keep := append([]float64(nil), a.Q...)
	t := c.nudge(1, time.Second)
	if err := c.timed("Follow", func() error { return c.Body.Follow(context.Background(), t) }); err != nil {
		c.Fatal(err)
	}
	if c.apart(a.Q, keep) != 0 {
		c.Errorf("an old reading changed from %v to %v", keep, a.Q)
	}
	b := c.Body.State()
	for i := range b.Q {
		b.Q[i] = 99
	}
	if c.apart(c.Body.State().Q, b.Q) < 1 {
		c.Error("writing into a reading changes the next one")
	}
}

func (c *checker) follows() {
	for _, k := range []float64{1, -1} {
		t := c.nudge(k, 1500*time.Millisecond)
		goal := t.Points[len(t.Points)-1].Q
		began := c.Clock.Now()
		if err := c.timed("Follow", func() error { return c.Body.Follow(context.Background(), t) }); err != nil {
			c.Fatalf("Follow: %v", err)
		}
		if d := c.Clock.Now().Sub(began); d < 1400*time.Millisecond {
			c.Errorf("a trajectory of 1.5 s took %v", d)
		}
		c.standsStill("Follow")
		tol := c.Settle
		if tol == 0 {
			tol = 0.005
		}
		if d := c.apart(c.Body.State().Q, goal); d > tol {
			c.Errorf("settled %v from the last knot, allowed %v", d, tol)
		}
		c.sleep(100 * time.Millisecond)
		if s := c.Body.State(); s.Mode != robot.ModeReady {
			c.Errorf("after Follow the robot is %v", s.Mode)
		}
	}
}

func (c *checker) refuses() {
	for _, b := range malformed(c.Model) {
		t := c.nudge(1, time.Second)
		b.spoil(&t)
		before := c.Body.State()
		err := c.timed("Follow", func() error { return c.Body.Follow(context.Background(), t) })
		if err == nil {
			c.Errorf("%s: followed", b.name)
		}
		c.sleep(100 * time.Millisecond)
		s := c.Body.State()
		if d := c.apart(s.Q, before.Q); d > 0.002 {
			c.Errorf("%s: the robot moved by %v", b.name, d)
		}
		if s.Mode != robot.ModeReady {
			c.Fatalf("%s: the robot is %v: %s", b.name, s.Mode, s.Fault)
		}
	}
	t := c.nudge(1, time.Second)
	if err := c.timed("Follow", func() error { return c.Body.Follow(context.Background(), t) }); err != nil {
		c.Errorf("a good trajectory after bad ones: %v", err)
	}
}

type spoiled struct {
	name  string
	spoil func(*robot.Trajectory)
}

// malformed are the ways in which a trajectory can be wrong.
func malformed(m *robot.Model) []spoiled {
	mid := func(t *robot.Trajectory) *robot.Point { return &t.Points[len(t.Points)/2] }
	each := func(t *robot.Trajectory, f func(*robot.Point)) {
		for i := range t.Points {
			f(&t.Points[i])
		}
	}
	list := []spoiled{
		{"empty", func(t *robot.Trajectory) { t.Points = nil }},
		{"one knot", func(t *robot.Trajectory) { t.Points = t.Points[:1] }},
		{"position NaN", func(t *robot.Trajectory) { mid(t).Q[0] = math.NaN() }},
		{"speed infinite", func(t *robot.Trajectory) { mid(t).QD[0] = math.Inf(1) }},
		{"base NaN", func(t *robot.Trajectory) { mid(t).Base.X = math.NaN() }},
		{"base speed NaN", func(t *robot.Trajectory) { mid(t).BaseV.Yaw = math.NaN() }},
		{"times equal", func(t *robot.Trajectory) { mid(t).T = t.Points[len(t.Points)/2-1].T }},
		{"times falling", func(t *robot.Trajectory) { mid(t).T = 0 }},
		{"starts late", func(t *robot.Trajectory) { each(t, func(p *robot.Point) { p.T += time.Second }) }},
		{"short knot", func(t *robot.Trajectory) { p := mid(t); p.Q = p.Q[:len(p.Q)-1] }},
		{"no speeds", func(t *robot.Trajectory) { mid(t).QD = nil }},
		{"extra joint", func(t *robot.Trajectory) {
			each(t, func(p *robot.Point) { p.Q, p.QD = append(p.Q, 0), append(p.QD, 0) })
		}},
		{"moving at the end", func(t *robot.Trajectory) { t.Points = t.Points[:len(t.Points)/2] }},
		{"moving at the start", func(t *robot.Trajectory) { t.Points[0].QD[0] = 0.05 }},
		{"base far from measured", func(t *robot.Trajectory) { each(t, func(p *robot.Point) { p.Base.X += 0.5 }) }},
	}
	for j, joint := range m.Joints {
		list = slices.Concat(list, spoiledJoint(j, joint))
	}
	return list
}

func spoiledJoint(j int, joint robot.Joint) []spoiled {
	far := 0.3
	if joint.Prismatic {
		far = 0.1
	}
	return []spoiled{
		{joint.Name + " far from measured", func(t *robot.Trajectory) {
			for i := range t.Points {
				t.Points[i].Q[j] += far
			}
		}},
		{joint.Name + " jumps", func(t *robot.Trajectory) { t.Points[len(t.Points)/2].Q[j] += joint.Vel * 0.5 }},
		{joint.Name + " past its upper limit", func(t *robot.Trajectory) { crawl(t, j, joint.Max+0.01) }},
		{joint.Name + " past its lower limit", func(t *robot.Trajectory) { crawl(t, j, joint.Min-0.01) }},
	}
}

// crawl stretches the trajectory so that joint j goes to q at a tenth of the speed limit at most.
func crawl(t *robot.Trajectory, j int, q float64) {
	n := len(t.Points) - 1
	from := t.Points[0].Q[j]
	for i := range t.Points {
		x := float64(i) / float64(n)
		p := &t.Points[i]
		p.T *= 60
		for k := range p.QD {
			p.QD[k] /= 60
		}
		s, v := x*x*x*(10-15*x+6*x*x), 30*x*x*(1-2*x+x*x)/60
		p.Q[j], p.QD[j] = from+s*(q-from), v*(q-from)
	}
}

func (c *checker) single() {
	t := c.nudge(1, 2*time.Second)
	done := make(chan error, 1)
	go func() { done <- c.Body.Follow(context.Background(), t) }()
	c.untilMoving()
	if err := c.timed("second Follow", func() error { return c.Body.Follow(context.Background(), c.nudge(1, time.Second)) }); err == nil {
		c.Error("a second Follow ran beside the first")
	}
	if err := c.ends("Follow", done); err != nil {
		c.Errorf("the first Follow was disturbed: %v", err)
	}
}

// untilMoving waits until a joint has measurable speed.
func (c *checker) untilMoving() {
	c.Helper()
	for range 500 {
		c.sleep(10 * time.Millisecond)
		if s := c.Body.State(); !c.still(s) {
			return
		}
	}
	c.Fatal("the robot does not start to move")
}

func (c *checker) halts() {
	for r := robot.RungZeroVelocity; r <= robot.RungHold; r++ {
		t := c.nudge(3, 6*time.Second)
		done := make(chan error, 1)
		go func() { done <- c.Body.Follow(context.Background(), t) }()
		c.untilMoving()
		began := c.Clock.Now()
		if err := c.timed("Halt", func() error { return c.Body.Halt(context.Background(), r) }); err != nil {
			c.Errorf("Halt %v: %v", r, err)
		}
		if d := c.Clock.Now().Sub(began); d > time.Second {
			c.Errorf("Halt %v waited %v behind a running motion", r, d)
		}
		c.standsStill(fmt.Sprintf("Halt %v", r))
		if err := c.ends("a halted Follow", done); err == nil {
			c.Errorf("a Follow that was halted (%v) returned nil", r)
		}
		if d := c.apart(c.Body.State().Q, t.Points[len(t.Points)-1].Q); d < 0.01 {
			c.Errorf("Halt %v: the trajectory was finished all the same", r)
		}
	}
}

func (c *checker) haltsAtRest() {
	before := c.Body.State()
	for r := robot.RungZeroVelocity; r <= robot.RungHold; r++ {
		if err := c.timed("Halt", func() error { return c.Body.Halt(context.Background(), r) }); err != nil {
			c.Errorf("Halt %v at rest: %v", r, err)
		}
	}
	c.standsStill("Halt at rest")
	if d := c.apart(before.Q, c.Body.State().Q); d > 0.01 {
		c.Errorf("Halt at rest moved the robot by %v", d)
	}
	t := c.nudge(1, time.Second)
	if err := c.timed("Follow", func() error { return c.Body.Follow(context.Background(), t) }); err != nil {
		c.Errorf("Follow after Halt at rest: %v", err)
	}
}

func (c *checker) context() {
	t := c.nudge(3, 6*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- c.Body.Follow(ctx, t) }()
	c.untilMoving()
	cancel()
	if err := c.ends("Follow with an ended context", done); err == nil {
		c.Error("Follow with an ended context returned nil")
	}
	c.standsStill("end of context")
	if d := c.apart(c.Body.State().Q, t.Points[len(t.Points)-1].Q); d < 0.01 {
		c.Error("the trajectory was finished all the same")
	}
}

func (c *checker) grips() {
	for _, open := range []bool{false, true} {
		if err := c.timed("Grip", func() error { return c.Body.Grip(context.Background(), robot.JawTarget{Open: open}) }); err != nil {
			c.Fatalf("Grip open=%v: %v", open, err)
		}
		c.sleep(200 * time.Millisecond)
		want := c.Model.Jaw.Min
		if open {
			want = c.Model.Jaw.Max
		}
		j := c.Body.State().Jaw
		if !j.Known || math.Abs(j.Aperture-want) > 0.005 || math.Abs(j.Speed) > 0.002 || j.Open != open || j.Holding {
			c.Errorf("after Grip open=%v the jaw is %+v, want an aperture of %v", open, j, want)
		}
	}
}

func (c *checker) haltsGrip() {
	done := make(chan error, 1)
	go func() { done <- c.Body.Grip(context.Background(), robot.JawTarget{Open: false}) }()
	from := c.Body.State().Jaw.Aperture
	for range 500 {
		c.sleep(5 * time.Millisecond)
		if from-c.Body.State().Jaw.Aperture > 0.003 {
			break
		}
	}
	if err := c.timed("Halt", func() error { return c.Body.Halt(context.Background(), robot.RungHold) }); err != nil {
		c.Errorf("Halt: %v", err)
	}
	_ = c.ends("Grip", done) // it may have ended just before
	c.sleep(300 * time.Millisecond)
	if j := c.Body.State().Jaw; math.Abs(j.Speed) > 0.002 {
		c.Errorf("the jaw goes on after Halt: %+v", j)
	}
}
