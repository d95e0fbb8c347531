package sim

import (
	"fmt"

	"viad/drivers/robot"
	"viad/drivers/urdf"
)

// machine is what the twin's own low-level controller knows of its robot.
type machine struct {
	name   string
	urdf   string
	mobile bool
	axes   []axisSpec // base x, y, yaw first when mobile, then joints in robot.Model order
	jaw    jawSpec
	hand   []string // bodies that carry the force estimate: hand and fingers
	effort bool     // the force estimate comes from joint efforts, not from a sensor at the hand
	quant  float64  // encoder step, radians or metres
}

// axisSpec is one driven coordinate.
type axisSpec struct {
	name  string
	joint []string // joints moved together, each by an equal share
	force float64  // N or Nm that the drive can give
	vel   float64  // speed at which the controller refuses a trajectory; 0: from the URDF
	brake float64  // deceleration of a stop, per second squared
	omega float64  // bandwidth of the position loop, rad/s
	payl  float64  // how much acceleration the integral term may ask for, per second squared
}

// jawSpec is the gripper.
type jawSpec struct {
	joint []string // fingers, both from 0 (shut) to half the aperture
	max   float64  // aperture in metres
	speed float64  // m/s of aperture
	force float64  // N between the pads
	empty float64  // aperture below which a closed jaw holds nothing
}

// Franka's torque limits: libfranka, 87 Nm for joints 1-4 and 12 Nm for 5-7. Brake: half of the
// acceleration limit of franka_description, all of it for joints 5-7.
func franka(prefix string) machine {
	m := machine{
		name: prefix, urdf: prefix, quant: 2e-6,
		jaw:  jawSpec{joint: []string{prefix + "_finger_joint1", prefix + "_finger_joint2"}, max: 0.08, speed: 0.1, force: 40, empty: 0.0015},
		hand: []string{"hand", "left_finger", "right_finger"},
	}
	for i := 1; i <= 7; i++ {
		a := axisSpec{name: fmt.Sprintf("%s_joint%d", prefix, i), force: 87, brake: 5, omega: 40, payl: 10}
		if i > 4 {
			a.force, a.brake = 12, 10
		}
		a.joint = []string{a.name}
		m.axes = append(m.axes, a)
	}
	return m
}

// Stretch 4: forces of the MJCF study (lift and arm well above the weight they carry), speeds of
// stretch4_body's "max" column.
func stretch4() machine {
	one := func(name string, force, vel, brake, omega, payl float64) axisSpec {
		return axisSpec{name: name, joint: []string{name}, force: force, vel: vel, brake: brake, omega: omega, payl: payl}
	}
	arm := one("arm_joint", 80, 0.7, 1.5, 25, 4)
	arm.joint = []string{"arm_l1_joint", "arm_l2_joint", "arm_l3_joint", "arm_l4_joint"}
	return machine{
		name: "stretch4", urdf: "stretch4_pg4", mobile: true, effort: true, quant: 1e-5,
		axes: []axisSpec{
			one("base_x", 150, 0.6, 1, 15, 0.5), one("base_y", 150, 0.6, 1, 15, 0.5), one("base_yaw", 40, 4, 2, 15, 1),
			one("lift_joint", 250, 0.5, 1.5, 25, 6), arm,
			one("wrist_yaw_joint", 10, 12, 15, 30, 10), one("wrist_pitch_joint", 10, 12, 15, 30, 10), one("wrist_roll_joint", 10, 12, 15, 30, 10),
		},
		jaw:  jawSpec{joint: []string{"finger_left_joint", "finger_right_joint"}, max: 0.08, speed: 0.08, force: 30, empty: 0.0015},
		hand: []string{"wrist_yaw_link", "wrist_pitch_link", "wrist_roll_link", "tool_site", "finger_left", "finger_right"},
	}
}

func machineFor(name string) (machine, error) {
	switch name {
	case "fr3", "panda":
		return franka(name), nil
	case "stretch4":
		return stretch4(), nil
	}
	return machine{}, fmt.Errorf("twin: no robot %q; there are fr3, panda and stretch4", name)
}

// describe fills in the limits of the URDF and gives the robot.Model of the driven joints.
func (m *machine) describe() (robot.Model, error) {
	u, err := urdf.Load(m.urdf)
	if err != nil {
		return robot.Model{}, err
	}
	joints := map[string]urdf.Joint{}
	for _, j := range u.Joints {
		joints[j.Name] = j
	}
	out := robot.Model{Name: m.name, Mobile: m.mobile, Jaw: robot.JawSpec{Max: m.jaw.max, Speed: m.jaw.speed, Force: m.jaw.force}}
	for i := range m.axes {
		a := &m.axes[i]
		if m.mobile && i < 3 {
			continue
		}
		j := robot.Joint{Name: a.name, Acc: a.brake}
		for _, n := range a.joint {
			u, ok := joints[n]
			if !ok {
				return robot.Model{}, fmt.Errorf("twin: URDF %s has no joint %s", m.urdf, n)
			}
			j.Prismatic = u.Type == urdf.Prismatic
			j.Min += u.Lower
			j.Max += u.Upper
			if a.vel == 0 {
				a.vel = u.Velocity
			}
		}
		j.Vel = a.vel
		out.Joints = append(out.Joints, j)
	}
	return out, nil
}
