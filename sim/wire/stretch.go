package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"viad/drivers/urdf"
	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
	"viad/sim"
)

// Generation is which of the three drivers of a Stretch 4 is shown.
type Generation string

// The generations, as the driver's history has them.
const (
	GenerationA      Generation = "A"
	GenerationAPrime Generation = "A'"
	GenerationB      Generation = "B"
)

// Modes of the driver. The last three are its own and come before what was asked for.
const (
	modeActive     = "active" // generation B
	modePosition   = "position"
	modeVelocity   = "velocity"
	modeNavigation = "navigation"
	modeTeleop     = "teleop"
	modeHoming     = "homing"
	modeStowing    = "stowing"
	modeRunstopped = "runstopped"
)

// Stretch is the ROS side of a Stretch 4: its driver, and the head and wrist it carries.
type Stretch struct {
	twin    *sim.Twin
	node    ros.Node
	gen     Generation
	tool    string
	body    *body
	params  *ros.ParamServer
	closers []ros.Closer
	outs    []out
	latched map[string]ros.Outlet
	begun   accepted[*following]
	aiming  sync.Mutex  // one goal at a time gives the motors their targets; taken before mu
	links   *urdf.Robot // of the description; nil: it is none

	mu      sync.Mutex
	faults  StretchFaults
	mode    string            // asked for
	doing   string            // homing or stowing
	stopped bool              // runstop
	each    map[string]string // joint_mode of generation B
	unhomed bool
	run     *following
	shown   string                  // mode last told
	last    *sensor_msgs.JointState // told last; only the publisher touches it
}

// StretchFaults are how it misbehaves, and which of its habits differ. All can be changed while it runs, but for Mode,
// Tool and Unhomed, which are how it starts.
type StretchFaults struct {
	IgnoreCancel        bool   // a cancelled goal goes on to its end
	SuccessAfterRunstop bool   // also generation B calls a goal that the runstop ended a success, as A does by itself
	PositionOnly        bool   // generation A takes goals in mode position alone, not in navigation
	FourStages          bool   // generation A divides the extension by 4 and not by 5
	StopAnswers         bool   // generation B's stop_the_robot answers; without, its callers get no answer
	FrozenJoints        bool   // the last joint states are repeated with new stamps
	SilentJoints        bool   // joint states cease
	QuietTasks          bool   // state topics cease while it homes or stows
	DeadServices        bool   // services take requests and never answer; topics go on
	Forever             bool   // velocities are repeated for ever, which generation B does by itself
	Unhomed             bool   // not homed at the start
	Mode                string // mode at the start, for example teleop; "" is navigation, in generation B active
	Holder              string // of the body server's lease; "" is the driver. Commands of others than the holder are dropped
	Tool                string // what it carries; "" is the parallel gripper. With the compliant one goals have other units
}

// NewStretch puts a twin of a stretch4 behind the names of its driver. node must be called /stretch_driver: parameters
// are served under a node's own name.
func NewStretch(twin *sim.Twin, node ros.Node, gen Generation, description string, f StretchFaults) (*Stretch, error) {
	if gen != GenerationA && gen != GenerationAPrime && gen != GenerationB {
		return nil, fmt.Errorf("wire: no generation %q of Stretch's driver; there are A, A' and B", gen)
	}
	if f.Tool == "" {
		f.Tool = toolParallel
	}
	w := &Stretch{twin: twin, node: node, gen: gen, tool: f.Tool, body: &body{}, latched: map[string]ros.Outlet{}, faults: f, unhomed: f.Unhomed, each: map[string]string{}}
	if w.mode = f.Mode; w.mode == "" {
		w.mode = map[bool]string{true: modeActive, false: modeNavigation}[gen == GenerationB]
	}
	if !slices.Contains(w.modes(), w.mode) || f.Tool != toolParallel && f.Tool != toolCompliant {
		return nil, fmt.Errorf("wire: generation %s has no mode %q, or there is no tool %q", gen, w.mode, f.Tool)
	}
	w.body.forever = f.Forever || gen == GenerationB
	err := errors.Join(w.advertise(description), w.declare(), w.listen(), w.serve())
	if err == nil {
		err = twin.Govern(w.body.govern)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Close ends what Stretch serves; the node and the twin are their owner's.
func (w *Stretch) Close() error {
	errs := make([]error, 0, 2+len(w.closers))
	w.end(codeInvalid, "the driver has shut down")
	if err := w.twin.Govern(nil); !errors.Is(err, sim.ErrOver) {
		errs = append(errs, err)
	}
	if w.params != nil {
		errs = append(errs, w.params.Close())
	}
	for _, c := range w.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Run publishes until ctx ends.
func (w *Stretch) Run(ctx context.Context) error { return publish(ctx, w.twin.Clock(), w.outs) }

// Set changes the faults while it runs.
func (w *Stretch) Set(f func(*StretchFaults)) {
	w.mu.Lock()
	f(&w.faults)
	forever := w.faults.Forever || w.gen == GenerationB
	w.mu.Unlock()
	w.body.mu.Lock()
	w.body.forever = forever
	w.body.mu.Unlock()
}

func (w *Stretch) fault() StretchFaults {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faults
}

// deaf: another client holds the body server, which drops this driver's commands without a word.
func (w *Stretch) deaf() bool {
	h := w.fault().Holder
	return h != "" && h != leaseOwn
}

func (w *Stretch) keep(c ros.Closer, err error) error {
	if err == nil {
		w.closers = append(w.closers, c)
	}
	return err
}

// modes are those that can be asked for.
func (w *Stretch) modes() []string {
	m := []string{modePosition, modeVelocity, modeNavigation, modeTeleop}
	if w.gen == GenerationB {
		m = append(m, modeActive)
	}
	return m
}

// present is the mode that the driver is in: runstop first, then homing and stowing, then what was asked for.
// The caller holds mu.
func (w *Stretch) present() string {
	switch {
	case w.stopped:
		return modeRunstopped
	case w.doing != "":
		return w.doing
	}
	return w.mode
}

func (w *Stretch) in(modes ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(modes, w.present())
}

// change makes a change of what decides the mode, and tells the mode when it is another. In generation B that ends the
// running goal.
func (w *Stretch) change(f func()) {
	w.mu.Lock()
	f()
	now := w.present()
	other := now != w.shown
	w.shown = now
	lucky := w.faults.SuccessAfterRunstop && w.stopped
	w.mu.Unlock()
	if !other {
		return
	}
	w.say("mode", &std_msgs.String{Data: now})
	if w.gen == GenerationB {
		code, why := codeInvalid, "the mode changed to "+now
		if lucky {
			code, why = codeFine, ""
		}
		w.end(code, why)
	}
}

// enter is the parameter mode. Generation B knows its forerunner's modes and means active by them.
func (w *Stretch) enter(mode string) error {
	if !slices.Contains(w.modes(), mode) {
		return fmt.Errorf("there is no mode %q; there are %v", mode, w.modes())
	}
	if w.gen == GenerationB && mode != modeTeleop {
		mode = modeActive
	}
	w.change(func() { w.mode = mode })
	return nil
}

func (w *Stretch) say(topic string, m msg.Message) {
	if o := w.latched[topic]; o != nil {
		_ = o.Publish(context.Background(), m)
	}
}

var errNoAnswer = errors.New("wire: the handler returned nothing")

func (w *Stretch) serve() error {
	trigger := func(name string, do func(ctx context.Context) (bool, string, error)) error {
		return w.keep(w.node.Serve(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](name), func(ctx context.Context, _ msg.Message) (msg.Message, error) {
			if w.fault().DeadServices {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			ok, why, err := do(ctx)
			if err != nil {
				return nil, err
			}
			return &std_srvs.Trigger_Response{Success: ok, Message: why}, nil
		}))
	}
	return errors.Join(
		trigger("/stop_the_robot", w.stop),
		trigger("/home_the_robot", w.home),
		trigger("/stow_the_robot", w.stow),
		w.keep(w.node.Serve(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/runstop_the_robot"), func(ctx context.Context, m msg.Message) (msg.Message, error) {
			q, is := m.(*std_srvs.SetBool_Request)
			if !is || w.fault().DeadServices {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			w.Runstop(q.Data)
			return &std_srvs.SetBool_Response{Success: true}, nil
		})),
		w.serveGoals(),
	)
}

// stop halts everything. Generation B's handler does so and returns nothing, which its callers get no answer from.
func (w *Stretch) stop(context.Context) (bool, string, error) {
	if !w.deaf() {
		w.body.halt()
		w.end(codePreempted, "stopped by a service")
	}
	if w.gen == GenerationB && !w.fault().StopAnswers {
		return false, "", errNoAnswer
	}
	return true, "Stopped the robot.", nil
}

// Runstop is the button on the robot's head, and the service. While it homes, homing is lost.
func (w *Stretch) Runstop(on bool) {
	lost := false
	w.body.runstop(on)
	w.change(func() {
		w.stopped = on
		if lost = on && w.doing == modeHoming; lost {
			w.unhomed = true
		}
	})
	w.say("is_runstopped", &std_msgs.Bool{Data: on})
	if lost {
		w.say("is_homed", &std_msgs.Bool{})
	}
}

// times of the robot's own routines.
const (
	homeTime = 8 * time.Second // after the arm is in; a robot takes about half a minute
	taskTime = 30 * time.Second
)

func (w *Stretch) home(ctx context.Context) (bool, string, error) {
	ok := w.routine(ctx, modeHoming, homeTime, []stance{{arm5: 0}})
	if ok {
		w.mu.Lock()
		w.unhomed = false
		w.mu.Unlock()
		w.say("is_homed", &std_msgs.Bool{Data: true})
		return true, "Homed the robot.", nil
	}
	return false, "Homing did not end.", nil
}

// stow: arm in, wrist folded, lift down.
func (w *Stretch) stow(ctx context.Context) (bool, string, error) {
	w.mu.Lock()
	unhomed := w.unhomed
	w.mu.Unlock()
	if unhomed || !w.routine(ctx, modeStowing, 0, []stance{{arm5: 0}, {yaw: 3.14, pitch: 0, roll: 0}, {lift: 0.15}}) {
		return false, "Stowing did not end.", nil
	}
	return true, "Stowed the robot.", nil
}

// stance is where joints are to be.
type stance map[int]float64

// routine takes the stances one by one and then waits; false says that it was stopped.
func (w *Stretch) routine(ctx context.Context, mode string, then time.Duration, way []stance) bool {
	began := false
	w.change(func() {
		if began = w.doing == "" && !w.stopped; began {
			w.doing = mode
		}
	})
	if !began || w.deaf() {
		return false
	}
	defer w.change(func() { w.doing = "" })
	w.end(codePreempted, mode)
	t := w.twin.Clock().Ticker(pollTime)
	defer t.Stop()
	from, rested := w.twin.Clock().Now(), time.Time{}
	for i := -1; ; {
		select {
		case <-ctx.Done():
			return false
		case now := <-t.C():
			switch {
			case w.in(modeRunstopped) || now.Sub(from) > taskTime+then:
				return false
			case i >= 0 && !w.there(way[i]):
			case i+1 < len(way):
				i++
				rested = now
				w.pose(way[i])
			case now.Sub(rested) >= then:
				return true
			}
		}
	}
}

func (w *Stretch) pose(s stance) {
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	for j, x := range s {
		w.body.joint[j].aim(x)
	}
}

func (w *Stretch) there(s stance) bool {
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	for j, x := range s {
		if g := &w.body.joint[j]; g.x != x || g.running {
			return false
		}
	}
	return true
}
