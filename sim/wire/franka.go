package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/trajectory_msgs"
	"viad/sim"
)

// Franka is the ROS side of an FR3 (franka_ros2) or a Panda (franka_ros) with its hand.
type Franka struct {
	twin       *sim.Twin
	node       ros.Node
	arm        *arm
	one        bool // ROS 1
	prefix     string
	controller string
	begun      accepted[*run]
	turn       chan struct{} // the hand's calls block: one at a time
	shut       chan struct{} // closed by Close

	closers []ros.Closer // of the hand's node and what else goes on when the controller's process dies
	outs    []out
	process struct { // the controller's: ros2_control_node, or franka_control
		up      bool
		closers []ros.Closer
		outs    []out
	}
}

// out publishes every so many ticks.
type out struct {
	every int
	send  func(ctx context.Context, now time.Time) error
}

// tick is the period of the fastest topic.
const tick = 10 * time.Millisecond

// NewFranka puts a twin of an fr3 (on a node of ROS 2) or of a panda (ROS 1) behind its nodes' names. description is the
// URDF that the robot publishes; empty publishes none.
func NewFranka(twin *sim.Twin, node ros.Node, description string, f Faults) (*Franka, error) {
	w := &Franka{
		twin: twin, node: node, one: node.Wire() == "ros1", prefix: "fr3", controller: "fr3_arm_controller",
		turn: make(chan struct{}, 1), shut: make(chan struct{}),
	}
	b := buildFR3()
	if w.one {
		w.prefix, w.controller, b = "panda", "position_joint_trajectory_controller", buildPanda()
	}
	joints := make([]string, 0, 7)
	for i := range 7 {
		joints = append(joints, fmt.Sprintf("%s_joint%d", w.prefix, i+1))
	}
	w.arm = newArm(joints, b, f)
	err := errors.Join(w.serveHand(), w.advertise(description))
	if err == nil && f.DeadController {
		w.arm.die()
	} else if err == nil {
		err = w.rise()
	}
	if err == nil {
		err = twin.Govern(w.arm.govern)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Set changes the faults while the robot runs.
func (w *Franka) Set(f func(*Faults)) { w.arm.set(f) }

// Close ends what Franka serves; the node and the twin are their owner's. Run has ended before.
func (w *Franka) Close() error {
	var errs []error
	if err := w.twin.Govern(nil); !errors.Is(err, sim.ErrOver) {
		errs = append(errs, err)
	}
	close(w.shut)
	w.arm.leave()
	errs = append(errs, w.fall())
	for _, c := range w.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Run publishes until ctx ends, and lets the controller's process die and rise as the faults say.
func (w *Franka) Run(ctx context.Context) error {
	n := -1
	all := out{1, func(ctx context.Context, now time.Time) error {
		n++
		if err := w.reconcile(); err != nil {
			return err
		}
		for _, o := range w.process.outs {
			if n%o.every != 0 {
				continue
			}
			if err := o.send(ctx, now); err != nil {
				return err
			}
		}
		return nil
	}}
	return publish(ctx, w.twin.Clock(), append([]out{all}, w.outs...))
}

// publish sends what is due, tick by tick, until ctx ends.
func publish(ctx context.Context, clock robot.Clock, outs []out) error {
	t := clock.Ticker(tick)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C():
			for _, o := range outs {
				if n%o.every != 0 {
					continue
				}
				if err := o.send(ctx, now); err != nil && ctx.Err() == nil {
					return fmt.Errorf("wire: %w", err)
				}
			}
		}
	}
}

// reconcile makes the process what the faults say.
func (w *Franka) reconcile() error {
	switch dead := w.arm.fault().DeadController; {
	case dead && w.process.up:
		w.arm.die()
		return w.fall()
	case !dead && !w.process.up:
		w.arm.rise()
		return w.rise()
	}
	return nil
}

// fall takes the process's topics, services and actions away.
func (w *Franka) fall() error {
	errs := make([]error, 0, len(w.process.closers))
	for _, c := range w.process.closers {
		errs = append(errs, c.Close())
	}
	w.process.up, w.process.closers, w.process.outs = false, nil, nil
	return errors.Join(errs...)
}

// rise serves what the process does.
func (w *Franka) rise() error {
	w.process.up = true
	return errors.Join(w.serveArm(), w.serveManager(), w.serveSettings(), w.advertiseArm(), w.advertiseState())
}

func (w *Franka) keep(c ros.Closer, err error) error {
	if err == nil {
		w.closers = append(w.closers, c)
	}
	return err
}

// part keeps what belongs to the controller's process.
func (w *Franka) part(c ros.Closer, err error) error {
	if err == nil {
		w.process.closers = append(w.process.closers, c)
	}
	return err
}

func (w *Franka) serveArm() error {
	recovery := "/action_server/error_recovery"
	if w.one {
		recovery = "/franka_control/error_recovery"
	}
	commands, err := ros.Subscribe(w.node, "/"+w.controller+w.commandTopic(), ros.Default(), func(m *trajectory_msgs.JointTrajectory, _ ros.Info) {
		w.arm.obey(&control_msgs.FollowJointTrajectory_Goal{Trajectory: *m})
	})
	return errors.Join(
		w.part(commands, err),
		w.part(w.node.ServeAction(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback](
			"/"+w.controller+"/follow_joint_trajectory",
		), ros.ActionHandler{Accept: w.acceptable, Run: w.followed})),
		w.part(w.node.ServeAction(recoveryAction(recovery), ros.ActionHandler{Run: w.recovered})),
	)
}

func (w *Franka) commandTopic() string {
	if w.one {
		return "/command"
	}
	return "/joint_trajectory"
}
