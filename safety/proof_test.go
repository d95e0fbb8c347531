package safety_test

// The proofs of this package's rules by fault injection: stage, guard, controller, kinematics, fuser and a camera that
// really sees the machine, around a machine that misbehaves, in virtual time. What is wrong is put around a Body, a
// Source or a Clock; nothing inside is told.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/control"
	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/robot/robottest"
	"viad/drivers/sensor"
	"viad/interface/stage"
	"viad/perception"
	"viad/safety"
)

// rig is the whole stack over one machine.
type rig struct {
	*testing.T
	clock   *clock
	kin     *control.Kinematics
	machine *robottest.Body // the truth
	body    *bent           // what the daemon has of it
	eye     *eye
	seen    *bentSource
	ctrl    *control.Controller
	fuser   *perception.Fuser
	guard   *safety.Guard
	stage   *stage.Stage
	log     *journal
}

// build are the choices of one rig.
type build struct {
	robot  control.Description
	q      []float64
	set    func(*control.Settings)
	limits func(*safety.Limits)
	stage  func(*stage.Options)
	exact  bool // readings without encoder noise
	disarm bool
	fine   bool // a camera of 320 x 240 pixels, for small things
}

var ready = []float64{0, -math.Pi / 4, 0, -3 * math.Pi / 4, 0, math.Pi / 2, math.Pi / 4}

// prove runs f with a rig in a bubble of virtual time. At its end the machine must stand still.
func prove(t *testing.T, name string, b build, f func(*rig)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, b)
			f(r)
			<-r.clock.Inner.After(45 * time.Second) // a machine that heeds nothing comes to the end of its trajectory
		})
	})
}

func newRig(t *testing.T, b build) *rig {
	t.Helper()
	if b.robot.Name == "" {
		b.robot, b.q = control.FR3(), ready
	}
	kin, err := control.NewKinematics(b.robot)
	must(t, err)
	r := &rig{T: t, kin: kin, clock: &clock{Inner: robot.WallClock{}}, log: &journal{}}
	r.machine = robottest.NewBody(kin.Model(), robot.WallClock{}, b.q)
	r.body = &bent{Body: r.machine, clock: r.clock}
	if !b.exact {
		r.body.noise = rand.New(rand.NewPCG(1, 2))
	}
	w := 80
	if b.fine {
		w = 320
	}
	r.eye = newEye(r, w)
	r.seen = &bentSource{Source: r.eye}
	set := control.DefaultSettings()
	if b.set != nil {
		b.set(&set)
	}
	r.ctrl, err = control.New(control.Options{Body: r.body, Kinematics: kin, Clock: r.clock, Settings: set})
	must(t, err)
	r.fuser, err = perception.NewFuser(perception.Options{
		Sources: []sensor.Source{r.seen}, Kin: kin, Clock: r.clock, State: r.body.State, SourceTimeout: 2 * time.Second, Voxel: 0.01,
		Bounds: r3.Box{Min: r3.Vec{X: -1.5, Y: -1.5, Z: -0.2}, Max: r3.Vec{X: 1.5, Y: 1.5, Z: 1.6}},
	})
	must(t, err)
	lim := safety.DefaultLimits(kin.Model())
	if b.limits != nil {
		b.limits(&lim)
	}
	log := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	r.guard, err = safety.NewGuard(safety.Options{
		Robot: r.ctrl, Kin: kin, Clock: r.clock, Scenes: r.fuser, Limits: lim, AutoArm: !b.disarm, Log: log,
	})
	must(t, err)
	o := stage.Options{
		Face: stage.Face3D, Kin: kin, Clock: r.clock, Planner: r.ctrl, Mover: r.guard, Checker: r.guard, Scenes: r.fuser, Log: log,
		Home: stage.Orbit{Target: r3.Vec{X: .45}, Distance: 1.2, Azimuth: geom.Rad(90), Elevation: geom.Rad(35)},
	}
	if kin.Model().Mobile {
		o.Face = stage.Face2D
	}
	if b.stage != nil {
		b.stage(&o)
	}
	r.stage = stage.New(o)
	_, err = r.fuser.Refresh(t.Context(), time.Time{})
	must(t, err)
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// move stages a motion of the tool by d and looks at it.
func (r *rig) move(d r3.Vec) {
	r.Helper()
	if r.kin.Model().Mobile {
		must(r.T, r.stage.TranslateRobot(d))
	} else {
		for n := math.Ceil(r3.Norm(d) / 0.1); n > 0; n-- {
			step := r3.Scale(1/n, d)
			_, err := r.stage.Translate(step)
			must(r.T, err)
			d = r3.Sub(d, step)
		}
	}
	must(r.T, r.stage.Refresh(r.Context()))
	if sn := r.stage.Show(); sn.Check.Refused != nil && sn.Check.Refused.Rule != safety.RuleArmed {
		r.Fatalf("the test's own motion is refused: %v", sn.Check.Refused)
	}
}

// look is what an agent does that was told to look again.
func (r *rig) look() *stage.Snapshot {
	r.Helper()
	must(r.T, r.stage.Refresh(r.Context()))
	return r.stage.Show()
}

// execute is one that is shown and delivered to its caller.
func (r *rig) execute() (*stage.Report, error) {
	rep, err := r.stage.Execute(r.Context(), r.clock.Now(), 1)
	if err == nil {
		r.stage.Show()
		r.stage.MarkDelivered(rep.ID)
	}
	return rep, err
}

// runs is an execute that must have begun to move.
func (r *rig) runs() *stage.Report {
	r.Helper()
	rep, err := r.execute()
	if err != nil {
		r.Fatalf("it did not go: %v", err)
	}
	o := rep.Outcome
	r.Logf("%v, %v after %.2f s of %.2f s: %s", o.Result, o.Stop, o.Took.Seconds(), o.Planned.Seconds(), rep.Message)
	return rep
}

// meanwhile runs an execute and f beside it, d after the machine has begun to move.
func (r *rig) meanwhile(d time.Duration, f func()) *stage.Report {
	r.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; r.speed() < 1e-9; n++ {
			if n == 2000 {
				r.Error("the machine does not begin to move")
				return
			}
			<-r.clock.Inner.After(5 * time.Millisecond)
		}
		<-r.clock.Inner.After(d)
		f()
	})
	rep := r.runs()
	wg.Wait()
	return rep
}

// refused is an execute that must be refused by rule, with the machine where it was.
func (r *rig) refused(rule, words string) {
	r.Helper()
	before := r.machine.Machine()
	lines := r.log.count("motion refused") + r.log.count("refused")
	_, err := r.execute()
	var f *safety.Refused
	if !errors.As(err, &f) || f.Rule != rule || !strings.Contains(f.Error(), words) {
		r.Errorf("got %v, want a refusal by %q with %q", err, rule, words)
	} else if f.Next == "" {
		r.Errorf("%v does not say what to do", f)
	}
	if n := r.log.count("motion refused") + r.log.count("refused") - lines; n != 1 {
		r.Errorf("%d lines about one refusal:\n%s", n, r.log)
	}
	r.stays(before)
}

// stays says that the machine is where it was, and rests.
func (r *rig) stays(at robot.State) {
	r.Helper()
	now := r.machine.Machine()
	if !r.still() || now.Base != at.Base {
		r.Errorf("the machine moves: %v, base %v", now.QD, now.BaseV)
	}
	for i := range now.Q {
		if math.Abs(now.Q[i]-at.Q[i]) > 1e-9 {
			r.Errorf("the machine moved: joint %d from %v to %v", i, at.Q[i], now.Q[i])
		}
	}
}

// still is what counts as standstill.
func (r *rig) still() bool { return r.speed() < 0.01 }

func (r *rig) speed() float64 {
	s := r.machine.Machine()
	v := math.Max(s.BaseV.Norm(), math.Abs(s.BaseV.Yaw))
	for _, q := range s.QD {
		v = math.Max(v, math.Abs(q))
	}
	return v
}

// came says what a motion must have come to, and that the machine rests.
func (r *rig) came(rep *stage.Report, res robot.Result, stop robot.StopState, words string) {
	r.Helper()
	o := rep.Outcome
	if o.Result != res || o.Stop != stop || !strings.Contains(o.Why, words) {
		r.Errorf("outcome %v, %v, %q; want %v, %v, words %q", o.Result, o.Stop, o.Why, res, stop, words)
	}
	if stop == robot.StopConfirmed && !r.still() {
		r.Errorf("the stop was confirmed and the machine moves: %v", r.machine.Machine().QD)
	}
	if latched := r.guard.Latched(); (stop == robot.StopConfirmed) != (latched == "") {
		r.Errorf("%v, latched %q", stop, latched)
	}
	if n := r.log.count("motion ended"); n != 1 {
		r.Errorf("%d lines about the end of one motion:\n%s", n, r.log)
	}
	if n := r.log.count("latched"); n != map[bool]int{true: 0, false: 1}[stop == robot.StopConfirmed] {
		r.Errorf("%d lines about the latch:\n%s", n, r.log)
	}
}

// goesOn says that nothing keeps the robot from the next motion: not a fault that is over.
func (r *rig) goesOn() {
	r.Helper()
	r.machine.Break(robottest.Faults{})
	r.machine.SetMode(robot.ModeReady, "") // a person has seen to what the last rung left
	r.body.heal()
	r.seen.heal()
	<-r.clock.After(time.Second) // the scene of then is not believed now
	must(r.T, r.stage.ResetToReal())
	r.move(r3.Vec{Z: 0.03})
	if rep := r.runs(); rep.Outcome.Result != robot.ResultReached {
		r.Errorf("the next motion: %v %s", rep.Outcome.Result, rep.Outcome.Why)
	}
}

// clock is the daemon's clock, which a test makes jump. The machine and time itself do not.
type clock struct {
	Inner robot.Clock
	mu    sync.Mutex
	by    time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Inner.Now().Add(c.by)
}

func (c *clock) After(d time.Duration) <-chan time.Time { return c.Inner.After(d) }
func (c *clock) Ticker(d time.Duration) robot.Ticker    { return c.Inner.Ticker(d) }

func (c *clock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by += by
}

func (c *clock) offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by
}

// bent is a Body around the machine with something wrong. Readings are received on the daemon's clock.
type bent struct {
	robot.Body
	clock *clock
	noise *rand.Rand

	mu     sync.Mutex
	state  func(robot.State) robot.State
	follow func(ctx context.Context, t robot.Trajectory) error
	halt   func(ctx context.Context, r robot.Rung) error
}

func (b *bent) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *bent) heal() { b.set(func() { b.state, b.follow, b.halt = nil, nil, nil }) }

// State is the machine's with noise of an encoder of 1e-5 and with what a test does to it.
func (b *bent) State() robot.State {
	s := b.Body.State()
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Received = s.Received.Add(b.clock.offset())
	s.Changed = s.Changed.Add(b.clock.offset())
	if b.noise != nil {
		for i := range s.Q {
			s.Q[i] += 1e-5 * b.noise.NormFloat64()
		}
	}
	if b.state != nil {
		return b.state(s)
	}
	return s
}

func (b *bent) Follow(ctx context.Context, t robot.Trajectory) error {
	b.mu.Lock()
	f := b.follow
	b.mu.Unlock()
	if f != nil {
		return f(ctx, t)
	}
	return b.Body.Follow(ctx, t)
}

func (b *bent) Halt(ctx context.Context, r robot.Rung) error {
	b.mu.Lock()
	f := b.halt
	b.mu.Unlock()
	if f != nil {
		return f(ctx, r)
	}
	return b.Body.Halt(ctx, r)
}

// bentSource is a camera with something wrong.
type bentSource struct {
	sensor.Source
	mu    sync.Mutex
	frame func(ctx context.Context, t time.Time, next func() (*sensor.Frame, error)) (*sensor.Frame, error)
}

func (s *bentSource) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame = nil
}

func (s *bentSource) bend(f func(ctx context.Context, t time.Time, next func() (*sensor.Frame, error)) (*sensor.Frame, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frame = f
}

func (s *bentSource) Frame(ctx context.Context, t time.Time) (*sensor.Frame, error) {
	s.mu.Lock()
	f := s.frame
	s.mu.Unlock()
	next := func() (*sensor.Frame, error) { return s.Source.Frame(ctx, t) }
	if f != nil {
		return f(ctx, t, next)
	}
	return next()
}

// journal is the structured log.
type journal struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	lines []map[string]json.RawMessage
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	line := map[string]json.RawMessage{}
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, err
	}
	j.lines = append(j.lines, line)
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// with are the lines of a message.
func (j *journal) with(msg string) (out []map[string]json.RawMessage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if string(l["msg"]) == `"`+msg+`"` {
			out = append(out, l)
		}
	}
	return out
}

func (j *journal) count(msg string) int { return len(j.with(msg)) }
