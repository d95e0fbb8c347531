package wire

import (
	"math"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/sensor_msgs"
)

// all runs f for each generation.
func all(t *testing.T, f StretchFaults, run func(t *testing.T, r *rig, gen Generation)) {
	for _, gen := range []Generation{GenerationA, GenerationAPrime, GenerationB} {
		t.Run(string(gen), func(t *testing.T) { run(t, onTheWire(t, gen, f), gen) })
	}
}

// A goal of the arm is reached; a goal that equals the present position times out where the generator must start first.
func TestStretchReachesAndTimesOutThere(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		r.do("lift_joint", 0.7).want(t, ros.GoalSucceeded, 0)
		r.until("the lift", func() bool { return near(r.q["lift_joint"], 0.7, 0.011) })
		r.pass(time.Second) // generation B is done within a centimetre, and not at rest
		again := r.do("lift_joint", 0.7)
		if gen == GenerationB {
			again.want(t, ros.GoalSucceeded, 0)
		} else if again.want(t, ros.GoalAborted, -4); !near(again.took.Seconds(), 3, 0.3) {
			t.Errorf("it timed out after %v", again.took)
		}
	})
}

// The wrist counts as there half a radian before it is; generation B wants 0.05. What is measured when the answer comes is
// older than the answer by a reading or two, at some 1 rad/s.
func TestStretchWristIsDoneEarly(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		p := r.do("wrist_yaw_joint", r.joint("wrist_yaw_joint")-0.45)
		p.want(t, ros.GoalSucceeded, 0)
		if off := math.Abs(p.off[0]); gen == GenerationB && off > 0.12 || gen != GenerationB && off < 0.3 {
			t.Errorf("done with %.3f rad missing", off)
		}
	})
}

// Waypoint times mean something only to generation B's other two modes.
func TestStretchWaypointTimes(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		at := r.joint("lift_joint")
		run := func(want float64, by float64, to float64) {
			t.Helper()
			s, err := r.send([]string{"lift_joint"}, pt(4*time.Second, to))
			must(t, err)
			p := s.end()
			p.want(t, ros.GoalSucceeded, 0)
			if !near(p.took.Seconds(), want, by) {
				t.Errorf("it took %v, not %v s", p.took, want)
			}
			r.pass(time.Second)
		}
		run(1.1, 0.4, at-0.1) // 0.1 m with 0.3 m/s^2: 2 sqrt(0.1/0.3) = 1.15 s
		if gen == GenerationB {
			must(t, r.set(ros.P("trajectory_server.mode", "time_priority")))
			run(4, 0.5, at)
			must(t, r.set(ros.P("trajectory_server.mode", "adaptive_velocity")))
			run(3.8, 0.6, at-0.1)
			if r.set(ros.P("trajectory_server.mode", "hurry")) == nil {
				t.Error("a mode that does not exist was taken")
			}
		}
	})
}

// A long way takes longer than the time of a point; the parameter makes it longer.
func TestStretchActionTimeout(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		name := map[bool]string{true: "trajectory_server.timeout", false: "action_timeout"}[gen == GenerationB]
		must(t, r.set(ros.P(name, 0.5)))
		to := r.joint("lift_joint") - 0.25
		r.do("lift_joint", to).want(t, ros.GoalAborted, -4)
		must(t, r.set(ros.P(name, 30.0)))
		r.do("lift_joint", to+0.2).want(t, ros.GoalSucceeded, 0)
	})
}

// A new goal ends the old one with the driver's own number, and the joint goes where the new one says.
func TestStretchPreempts(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, _ Generation) {
		at := r.joint("lift_joint")
		one, err := r.send([]string{"lift_joint"}, pt(0, at-0.3))
		must(t, err)
		r.until("motion", func() bool { return r.q["lift_joint"] < at-0.02 })
		two := r.do("lift_joint", at)
		one.end().want(t, ros.GoalAborted, -6)
		two.want(t, ros.GoalSucceeded, 0)
		r.until("the second goal", func() bool { return near(r.q["lift_joint"], at, 0.011) })
	})
}

func TestStretchCancels(t *testing.T) {
	for name, deaf := range map[string]bool{"heard": false, "ignored": true} {
		t.Run(name, func(t *testing.T) {
			all(t, StretchFaults{IgnoreCancel: deaf}, func(t *testing.T, r *rig, _ Generation) {
				at := r.joint("lift_joint")
				s, err := r.send([]string{"lift_joint"}, pt(0, at-0.3))
				must(t, err)
				r.until("motion", func() bool { return r.q["lift_joint"] < at-0.02 })
				must(t, s.goal.Cancel(r.ctx))
				if p := s.end(); deaf {
					p.want(t, ros.GoalSucceeded, 0)
				} else {
					p.want(t, ros.GoalCanceled, -6)
				}
				r.pass(2 * time.Second)
				if low := r.joint("lift_joint") < at-0.28; low != deaf {
					t.Errorf("the lift is at %v, from %v", r.joint("lift_joint"), at)
				}
			})
		})
	}
}

// Which goals are refused: not homed, another mode, a joint of generation B in another mode of its own.
func TestStretchRefuses(t *testing.T) {
	all(t, StretchFaults{Unhomed: true}, func(t *testing.T, r *rig, gen Generation) {
		refused := func(why string) {
			t.Helper()
			if _, err := r.send([]string{"lift_joint"}, pt(0, 0.6)); err == nil {
				t.Errorf("a goal was taken: %s", why)
			}
		}
		refused("not homed")
		ok, err := r.call(r.ctx, "/home_the_robot")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		r.until("homed", func() bool { return r.truth["is_homed"] })
		must(t, r.set(ros.P("mode", "teleop")))
		refused("teleop")
		if r.set(ros.P("mode", "dance")) == nil {
			t.Error("a mode that does not exist was taken")
		}
		if gen != GenerationB {
			must(t, r.set(ros.P("mode", "velocity")))
			refused("velocity")
			must(t, r.set(ros.P("mode", "navigation")))
			r.face.Set(func(f *StretchFaults) { f.PositionOnly = true })
			refused("navigation, where position alone will do")
		}
		must(t, r.set(ros.P("mode", "position")))
		want := map[bool]string{true: "active", false: "position"}[gen == GenerationB]
		r.until("mode "+want, func() bool { return r.words["mode"] == want })
		if gen == GenerationB {
			must(t, r.set(ros.P("joint_mode.lift_joint", "velocity")))
			refused("the lift has mode velocity")
			must(t, r.set(ros.P("joint_mode.lift_joint", "position")))
		}
		r.do("lift_joint", 0.7).want(t, ros.GoalSucceeded, 0)
	})
}

// What is not known or out of range is left out, and the goal succeeds without it; generation B can be strict.
func TestStretchLeavesOut(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		at := r.joint("lift_joint")
		send := func() report {
			s, err := r.send([]string{"lift_joint", "tail_joint", "wrist_roll_joint"}, pt(0, at-0.05, 1, 3))
			must(t, err)
			return s.end()
		}
		send().want(t, ros.GoalSucceeded, 0)
		if roll := r.joint("wrist_roll_joint"); roll > 1.135 {
			t.Errorf("roll is at %v", roll)
		}
		if gen == GenerationB {
			must(t, r.set(ros.P("trajectory_server.strict_mode", true)))
			send().want(t, ros.GoalAborted, control_msgs.FollowJointTrajectory_Result_INVALID_JOINTS)
		}
	})
}

// The sum of the four stages is the extension, but for generation A's division by five.
func TestStretchArmStages(t *testing.T) {
	for _, c := range []struct {
		gen   Generation
		f     StretchFaults
		share float64
	}{{GenerationA, StretchFaults{}, 0.8}, {GenerationA, StretchFaults{FourStages: true}, 1}, {GenerationAPrime, StretchFaults{}, 1}, {GenerationB, StretchFaults{}, 1}} {
		r := onTheWire(t, c.gen, c.f)
		r.do("arm_joint", 0.2).want(t, ros.GoalSucceeded, 0)
		r.pass(time.Second)
		sum := r.joint("arm_l1_joint") + r.joint("arm_l2_joint") + r.joint("arm_l3_joint") + r.joint("arm_l4_joint")
		if truth := r.twin.Truth().Q[1]; !near(truth, 0.2, 0.003) || !near(sum, c.share*truth, 0.001) {
			t.Errorf("%s: the stages sum to %.4f, the arm is out by %.4f", c.gen, sum, truth)
		}
		r.mu.Lock()
		if _, has := r.q["arm_joint"]; has {
			t.Error("joint_states has an arm_joint")
		}
		r.mu.Unlock()
	}
}

// A point's velocities are those to move with in generations A and A'. B has its own: 0.1 m with 0.3 m/s^2 reach 0.17 m/s.
func TestStretchSpeedOfAPoint(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		p := pt(0, r.joint("lift_joint")-0.1)
		p.Velocities = []float64{0.05}
		s, err := r.send([]string{"lift_joint"}, p)
		must(t, err)
		s.end().want(t, ros.GoalSucceeded, 0)
		v := r.twin.Truth().MaxSpeed["lift_joint"]
		if want := map[bool]float64{true: 0.173, false: 0.05}[gen == GenerationB]; !near(v, want, want/5) {
			t.Errorf("the lift was as fast as %.3f m/s, not %.3f", v, want)
		}
	})
}

// The compliant gripper's goals: percent, a finger's angle, the angle between both. All three are an aperture of 36.3 mm,
// and each finger is then 0.1 rad out.
func TestStretchGripperUnits(t *testing.T) {
	goal := map[Generation]float64{GenerationA: 400*0.1/math.Asin(0.075/0.18205) - 100, GenerationAPrime: 0.1, GenerationB: 0.2}
	all(t, StretchFaults{Tool: toolCompliant}, func(t *testing.T, r *rig, gen Generation) {
		r.do("gripper_joint", goal[gen])
		r.until("the fingers", func() bool { return near(r.q["gripper_finger_left_joint"], 0.1, 0.005) })
		if a := r.twin.Truth().Aperture; !near(a, 0.0363, 0.002) {
			t.Errorf("the aperture is %v", a)
		}
		if gen == GenerationB {
			r.do("gripper_aperture", 0.1)
			r.until("the alias", func() bool { return near(r.q["gripper_finger_left_joint"], 0.05, 0.005) })
		}
	})
}

func (r *rig) twist(x, y, w float64) {
	r.t.Helper()
	p, err := ros.Advertise[geometry_msgs.Twist](r.node, "/cmd_vel", ros.Default())
	must(r.t, err)
	defer func() { _ = p.Close() }()
	must(r.t, p.Ready(r.ctx, 1))
	m := &geometry_msgs.Twist{}
	m.Linear.X, m.Linear.Y, m.Angular.Z = x, y, w
	must(r.t, p.Send(r.ctx, m))
	r.pass(100 * time.Millisecond) // it is on its way before the publisher goes
}

// One velocity lasts for the firmware's second: 0.8 s up to 0.2 m/s, 0.2 s of it, 0.8 s down are 0.2 m. Generation B
// repeats it for ever, as does a fault of the others.
func TestStretchBaseByVelocity(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		r.twist(0, 0.2, 0)
		r.pass(3 * time.Second)
		_, y, _ := r.base()
		if gen == GenerationB {
			if !near(y, 0.54, 0.06) { // 0.8 s up and 2.3 s of it
				t.Errorf("y is %v", y)
			}
		} else if !near(y, 0.2, 0.03) {
			t.Errorf("y is %v", y)
		} else {
			r.face.Set(func(f *StretchFaults) { f.Forever = true })
			r.twist(0, -0.2, 0)
			r.until("a base that goes on", func() bool { return r.odom.Pose.Pose.Position.Y < -0.3 })
		}
		r.twist(0, 0, 0)
		r.pass(1500 * time.Millisecond)
		r.mu.Lock()
		defer r.mu.Unlock()
		if v := r.odom.Twist.Twist.Linear; math.Hypot(v.X, v.Y) > 0.01 {
			t.Errorf("it still drives: %v", v)
		}
	})
}

// translate_mobile_base is a way ahead from where the base is, whichever way it looks.
func TestStretchBaseByGoal(t *testing.T) {
	all(t, StretchFaults{}, func(t *testing.T, r *rig, gen Generation) {
		r.twist(0, 0, 0.6)
		r.pass(300 * time.Millisecond)
		r.twist(0, 0, 0)
		r.pass(time.Second)
		b := r.twin.Truth().Base
		r.do("translate_mobile_base", 0.15).want(t, ros.GoalSucceeded, 0)
		r.pass(time.Second)
		a := r.twin.Truth().Base
		ahead := (a.X-b.X)*math.Cos(b.Yaw) + (a.Y-b.Y)*math.Sin(b.Yaw)
		aside := (a.Y-b.Y)*math.Cos(b.Yaw) - (a.X-b.X)*math.Sin(b.Yaw)
		if !near(ahead, 0.15, 0.01) || !near(aside, 0, 0.01) || b.Yaw < 0.1 {
			t.Errorf("%s: from %+v to %+v", gen, b, a)
		}
	})
}

// Generation A's joint_vel: the lift moves until the firmware's second is over, the wrist by the number.
func TestStretchJointVel(t *testing.T) {
	for _, gen := range []Generation{GenerationA, GenerationAPrime} {
		r := onTheWire(t, gen, StretchFaults{Mode: "velocity"})
		at, yaw := r.joint("lift_joint"), r.joint("wrist_yaw_joint")
		p, err := ros.Advertise[control_msgs.JointJog](r.node, "/joint_vel", ros.Default())
		must(t, err)
		must(t, p.Ready(r.ctx, 1))
		must(t, p.Send(r.ctx, &control_msgs.JointJog{JointNames: []string{"lift_joint", "wrist_yaw_joint"}, Velocities: []float64{-0.1, -0.2}}))
		r.pass(3 * time.Second)
		// 0.33 s up to 0.1 m/s, 0.67 s of it, then the nearest rest
		if d := at - r.joint("lift_joint"); !near(d, 0.1, 0.02) {
			t.Errorf("%s: the lift went %v", gen, d)
		}
		if d := yaw - r.joint("wrist_yaw_joint"); !near(d, 0.2, 0.01) {
			t.Errorf("%s: the wrist went %v", gen, d)
		}
	}
}

// Generation B's command topics: positions in range, velocities for ever and none below the deadband.
func TestStretchJointCommands(t *testing.T) {
	r := onTheWire(t, GenerationB, StretchFaults{})
	at, out := r.joint("lift_joint"), r.twin.Truth().Q[1]
	pos, err := ros.Advertise[sensor_msgs.JointState](r.node, "/joint_position_cmd", ros.Default())
	must(t, err)
	vel, err := ros.Advertise[sensor_msgs.JointState](r.node, "/joint_velocity_cmd", ros.Default())
	must(t, err)
	must(t, pos.Ready(r.ctx, 1))
	must(t, vel.Ready(r.ctx, 1))
	must(t, vel.Send(r.ctx, &sensor_msgs.JointState{Name: []string{"lift_joint"}, Velocity: []float64{-0.1}})) // not in mode velocity
	must(t, pos.Send(r.ctx, &sensor_msgs.JointState{Name: []string{"lift_joint", "arm_joint"}, Position: []float64{at - 0.1, 2}}))
	r.until("the lift", func() bool { return near(r.q["lift_joint"], at-0.1, 0.002) })
	r.pass(time.Second)
	if a := r.twin.Truth().Q; !near(a[1], out, 0.003) || !near(a[0], at-0.1, 0.003) {
		t.Errorf("%v", a)
	}
	must(t, r.set(ros.P("joint_mode.lift_joint", "velocity"), ros.P("joint_mode.wrist_yaw_joint", "velocity")))
	yaw := r.joint("wrist_yaw_joint")
	must(t, vel.Send(r.ctx, &sensor_msgs.JointState{Name: []string{"lift_joint", "wrist_yaw_joint"}, Velocity: []float64{0.05, 0.004}}))
	r.until("a lift that goes on", func() bool { return r.q["lift_joint"] > at+0.1 }) // 4 s
	if d := r.joint("wrist_yaw_joint") - yaw; math.Abs(d) > 0.003 {
		t.Errorf("the wrist went %v", d)
	}
	must(t, r.set(ros.P("joint_mode.lift_joint", "position")))
	r.pass(time.Second)
	was := r.joint("lift_joint")
	r.pass(time.Second)
	if !near(r.joint("lift_joint"), was, 0.002) {
		t.Error("it goes on in mode position")
	}
}
