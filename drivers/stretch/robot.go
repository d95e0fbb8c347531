package stretch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
)

// Robot is the whole robot: base, lift, arm, wrist and gripper.
type Robot struct {
	config Config
	names  names
	clock  robot.Clock
	log    *slog.Logger

	arm                       ros.Goaler
	stop, home, stow, runstop ros.Caller
	params                    *ros.ParamClient
	velocity                  ros.Publisher[*geometry_msgs.Twist]
	alive                     ros.Publisher[*std_msgs.Bool]
	made                      []ros.Closer

	mu       sync.Mutex
	kept     []ros.Subscription // of latched topics
	known    known              // what the handshake found
	reading  reading
	status   status
	offset   offset
	running  func(error) // ends what runs: a motion, a grip or a task; nil: nothing does
	doing    string      // what runs, in words
	ended    time.Time   // when the last of them ended
	jawOpen  *bool       // the last jaw command that ended plausibly
	gripping bool
	lost     bool    // since the latched topics were subscribed to
	rehome   bool    // a runstop came while homing
	homing   bool    // the task runs
	broken   bool    // a runstop came since it was begun, released or not
	armMode  string  // the mode in which A takes goals for the arm, as learnt
	held     bool    // goals are taken only when none runs, as learnt
	stages   float64 // of units, as learnt; 0: those of the generation
}

var (
	_ robot.Body     = (*Robot)(nil)
	_ robot.Examined = (*Robot)(nil)
	_ robot.Tended   = (*Robot)(nil)
)

// Errors of a motion that was not begun or was ended from outside.
var (
	ErrBusy   = errors.New("refused: a motion or a task is already running")
	ErrHalted = errors.New("halted")
)

// Open makes what the driver talks and listens with. It does not wait for the robot: Run looks for it.
func Open(_ context.Context, c Config) (*Robot, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	tool := c.Tool
	if tool == "" {
		tool = toolPG4
	}
	m, err := Model(tool)
	if err != nil {
		return nil, err
	}
	r := &Robot{
		config: c, names: c.names(), clock: c.Clock, log: c.Log.With("robot", m.Name),
		armMode: modeNavigation,
	}
	r.known = known{model: m, tool: tool}
	if err := errors.Join(r.listen(), r.clients()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Model is the joint order and the limits, as narrow as the robot's own description makes them.
func (r *Robot) Model() *robot.Model {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known.model
}

// listen subscribes. Best effort reads from every publisher; only what is latched is asked for as such.
func (r *Robot) listen() error {
	var errs []error
	hear := func(s ros.Subscription, err error) {
		if errs = append(errs, err); err == nil {
			r.made = append(r.made, s)
		}
	}
	n, live := r.config.Node, ros.SensorData()
	hear(ros.SubscribeInto(n, r.names.joints, live, r.onJoints))
	hear(ros.SubscribeInto(n, r.names.odometry, live, r.onOdometry))
	hear(ros.SubscribeInto(n, r.names.battery, live, r.onBattery))
	hear(ros.Subscribe(n, r.names.lease, live, r.onLease))
	hear(ros.Subscribe(n, r.names.guard, live, r.onGuard))
	return errors.Join(append(errs, r.listenKept())...)
}

// listenKept subscribes to what is latched, in place of earlier subscriptions: what is kept comes again.
func (r *Robot) listenKept() error {
	r.mu.Lock()
	old := r.kept
	r.kept = nil
	r.mu.Unlock()
	var errs []error
	for _, s := range old {
		errs = append(errs, s.Close())
	}
	var subs []ros.Subscription
	hear := func(s ros.Subscription, err error) {
		if errs = append(errs, err); err == nil {
			subs = append(subs, s)
		}
	}
	n, q := r.config.Node, ros.Latched()
	hear(ros.Subscribe(n, r.names.description, q, r.onDescription))
	hear(ros.Subscribe(n, r.names.homed, q, r.onHomed))
	hear(ros.Subscribe(n, r.names.runstopped, q, r.onRunstopped))
	hear(ros.Subscribe(n, r.names.mode, q, r.onMode))
	hear(ros.Subscribe(n, r.names.tool, q, r.onTool))
	r.mu.Lock()
	r.kept = subs
	r.mu.Unlock()
	return errors.Join(errs...)
}

func (r *Robot) clients() error {
	var errs []error
	n := r.config.Node
	service := func(s ros.Service) ros.Caller {
		c, err := n.Client(s)
		if errs = append(errs, err); err != nil {
			return nil
		}
		r.made = append(r.made, c)
		return c
	}
	trigger := func(name string) ros.Caller {
		return service(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](name))
	}
	r.stop, r.home, r.stow = trigger(r.names.stop), trigger(r.names.home), trigger(r.names.stow)
	r.runstop = service(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response](r.names.runstop))
	var err error
	if r.arm, err = n.ActionClient(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](r.names.action)); err == nil {
		r.made = append(r.made, r.arm)
	}
	errs = append(errs, err)
	if r.params, err = ros.NewParamClient(n, r.names.driver); err == nil {
		r.made = append(r.made, r.params)
	}
	errs = append(errs, err)
	one := ros.QoS{Reliable: true, Depth: 1}
	if r.velocity, err = ros.Advertise[geometry_msgs.Twist](n, r.names.velocity, one); err == nil {
		r.made = append(r.made, r.velocity)
	}
	errs = append(errs, err)
	if r.alive, err = ros.Advertise[std_msgs.Bool](n, r.names.alive, one); err == nil {
		r.made = append(r.made, r.alive)
	}
	return errors.Join(append(errs, err)...)
}

// Close ends what Open made; the node stays open. A motion that runs ends within Deadman: stop it first.
func (r *Robot) Close() error {
	r.interrupt(ErrHalted)
	r.mu.Lock()
	made := r.made
	for _, s := range r.kept {
		made = append(made, s)
	}
	r.made, r.kept = nil, nil
	r.mu.Unlock()
	var errs []error
	for _, c := range slices.Backward(made) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Deadman is how long the robot may go on when nobody renews its commands. The arm: what the last goal covers, half a
// second, and braking, a second from the lift's default speed. The base: the firmware's watchdog of a second, or a Guard's
// quarter, and braking from BaseSpeed with 0.25 m/s^2. BaseUnguarded with a generation B driver is outside of it.
func (r *Robot) Deadman() time.Duration { return 2 * time.Second }

// begin takes the robot for one thing at a time.
func (r *Robot) begin(ctx context.Context, what string) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running != nil {
		cancel(ErrBusy)
		return nil, nil, fmt.Errorf("%w: %s", ErrBusy, r.doing)
	}
	r.running, r.doing = cancel, what
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		r.running, r.doing, r.ended = nil, "", r.clock.Now()
		r.mu.Unlock()
	}, nil
}

// interrupt ends what runs.
func (r *Robot) interrupt(why error) {
	r.mu.Lock()
	if r.running != nil {
		r.running(why)
	}
	r.mu.Unlock()
}

// within is ctx with a bound of the driver's own, on the robot's clock.
func (r *Robot) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return robot.WithTimeout(ctx, r.clock, d)
}

// until looks at ok every tick until it is true; false when the time is over or ctx ends.
func (r *Robot) until(ctx context.Context, d time.Duration, ok func() bool) bool {
	tick := r.clock.Ticker(tickTime)
	defer tick.Stop()
	for left := int(d / tickTime); ; left-- {
		if ok() {
			return true
		}
		if left <= 0 {
			return false
		}
		select {
		case <-tick.C():
		case <-ctx.Done():
			return false
		}
	}
}
