package franka

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/controller_manager_msgs"
	"viad/ros/msg/franka_gripper"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/std_srvs"
)

// Robot is the arm and its hand.
type Robot struct {
	config Config
	names  names
	clock  robot.Clock
	log    *slog.Logger
	model  *robot.Model

	trajectory, recovery ros.Goaler
	homing, move, grasp  ros.Goaler
	stopAction           ros.Goaler // ROS 1
	stopService          ros.Caller // ROS 2
	list, change         ros.Caller
	hardware             ros.Caller // nil on ROS 1
	made                 []ros.Closer
	subs                 map[string]ros.Subscription // by topic

	mu       sync.Mutex
	joints   reading
	hand     hand
	status   status
	offset   offset
	facts    facts
	link     ros.Link // as the wire tells it
	linked   bool     // it was up
	urdf     string   // the live description
	run      *run     // the motion that is followed
	ended    time.Time
	gripping bool
	tending  bool // a task runs
	endHand  context.CancelCauseFunc
	stroking bool // a goal of the hand runs
	tried    bool // an automatic recovery, since an operator's last
}

var (
	_ robot.Body     = (*Robot)(nil)
	_ robot.Examined = (*Robot)(nil)
	_ robot.Tended   = (*Robot)(nil)
)

// Errors of a motion that was not begun or was ended from outside.
var (
	ErrBusy   = errors.New("refused: a motion or a task is already running")
	ErrHalted = robot.ErrHalted
)

// Open makes what the driver talks and listens with. It does not wait for the robot: Run looks for it.
func Open(_ context.Context, c Config) (*Robot, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	m, err := Model(c.Robot)
	if err != nil {
		return nil, err
	}
	r := &Robot{
		config: c, names: c.names(), clock: c.Clock, log: c.Log.With("robot", m.Name), model: m,
		subs: map[string]ros.Subscription{},
	}
	r.facts = looking()
	if err := errors.Join(r.listen(), r.clients()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Model is the arm's joint order and limits.
func (r *Robot) Model() *robot.Model { return r.model }

// listen subscribes. Best effort reads from every publisher.
func (r *Robot) listen() error {
	var errs []error
	hear := func(topic string) func(ros.Subscription, error) {
		return func(s ros.Subscription, err error) {
			errs = append(errs, err)
			if err == nil {
				r.subs[topic], r.made = s, append(r.made, s)
			}
		}
	}
	n, q := r.config.Node, ros.SensorData()
	hear(r.names.measured)(ros.SubscribeInto(n, r.names.measured, q, r.onMeasured))
	hear(r.names.merged)(ros.SubscribeInto(n, r.names.merged, q, r.onMerged))
	hear(r.names.handJoints)(ros.SubscribeInto(n, r.names.handJoints, q, r.onHand))
	if r.config.Robot == Panda {
		hear(r.names.state)(ros.SubscribeInto(n, r.names.state, q, r.onStateOne))
		return errors.Join(errs...)
	}
	hear(r.names.state)(ros.SubscribeInto(n, r.names.state, q, r.onStateTwo))
	hear(r.names.description)(ros.Subscribe(n, r.names.description, ros.Latched(), r.onDescription))
	return errors.Join(errs...)
}

func (r *Robot) clients() error {
	var errs []error
	action := func(a ros.Action) ros.Goaler {
		g, err := r.config.Node.ActionClient(a)
		if errs = append(errs, err); err != nil {
			return nil
		}
		r.made = append(r.made, g)
		return g
	}
	service := func(s ros.Service) ros.Caller {
		c, err := r.config.Node.Client(s)
		if errs = append(errs, err); err != nil {
			return nil
		}
		r.made = append(r.made, c)
		return c
	}
	n := r.names
	r.trajectory = action(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](n.trajectory))
	r.recovery = action(ros.ActionOf[franka_msgs.ErrorRecovery_Goal, franka_msgs.ErrorRecovery_Result, franka_msgs.ErrorRecovery_Feedback](n.recovery))
	r.homing = action(ros.ActionOf[franka_msgs.Homing_Goal, franka_msgs.Homing_Result, franka_msgs.Homing_Feedback](n.homing))
	r.move = action(ros.ActionOf[franka_msgs.Move_Goal, franka_msgs.Move_Result, franka_msgs.Move_Feedback](n.move))
	r.grasp = action(ros.ActionOf[franka_msgs.Grasp_Goal, franka_msgs.Grasp_Result, franka_msgs.Grasp_Feedback](n.grasp))
	r.list = service(ros.ServiceOf[controller_manager_msgs.ListControllers_Request, controller_manager_msgs.ListControllers_Response](n.list))
	r.change = service(ros.ServiceOf[controller_manager_msgs.SwitchController_Request, controller_manager_msgs.SwitchController_Response](n.change))
	if r.config.Robot == Panda {
		r.stopAction = action(ros.ActionOf[franka_gripper.Stop_Goal, franka_gripper.Stop_Result, franka_gripper.Stop_Feedback](n.stop))
		return errors.Join(errs...)
	}
	r.stopService = service(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](n.stop))
	r.hardware = service(ros.ServiceOf[controller_manager_msgs.SetHardwareComponentState_Request, controller_manager_msgs.SetHardwareComponentState_Response](n.hardware))
	return errors.Join(errs...)
}

// Close ends what Open made; the node stays open. A motion that runs brakes by itself within Deadman: stop it first.
func (r *Robot) Close() error {
	r.mu.Lock()
	if r.run != nil {
		r.run.end(ErrHalted)
	}
	if r.endHand != nil {
		r.endHand(ErrHalted)
	}
	made := slices.Clone(r.made)
	r.made = nil
	r.mu.Unlock()
	var errs []error
	for _, c := range slices.Backward(made) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Deadman is how long the arm may go on when nobody renews its goals: what the last goal covers, its braking, and its
// way to the controller.
func (r *Robot) Deadman() time.Duration { return horizon + brakeMost + transport }

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

// snapshot is a copy of what was measured last.
func (r *Robot) snapshot() (j reading, h hand, s status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.joints, r.hand, r.status
}
