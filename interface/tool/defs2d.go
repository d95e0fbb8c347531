package tool

import (
	"fmt"
	"strings"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/view"
)

const robotAxes = "Robot axes: +x forward (where the arm points), +y left, +z up, of the real base as it stands now; origin at the base's centre on the floor. Metres and degrees. "

const wristAxes = "Wrist axes are those of the target gripper, not of the real one: x the approach (where the fingers point), y the line along which the jaws open, + to the wrist view's left, z + up in the wrist view. A staged rotation turns them for the next edit. "

const staged2DReturns = "Returns the views with the target updated, then JSON with proprio and check (reachable or not and which joint, way clear or not). The real robot does not move. "

const oneKind = "Refused, with nothing staged, while another kind of waypoint is staged or when a limit is exceeded. "

func (s *Server) look2D() []*definition {
	defs := []*definition{
		{
			name: "observe", looks: true, title: "Look", access: observe, run: quick(s.observe2D),
			desc: fmt.Sprintf("The latest views and poses; changes nothing. For each view a text 'view: <name>' and its picture: head (%dx%d, on the base, about 65 degrees wide; the target gripper is drawn in red) and wrist (rides on the wrist; the target is a red |----.----| glyph: ticks where its fingertips would be, dot where they close). ", view.HeadWidth, view.HeadHeight) +
				"Then JSON with one key, proprio: mode (none, nav, gripper, pose) and real and target gripper, each with position_m of the closure point, approach and opening unit vectors, and gripper_open. " + robotAxes,
		},
		{
			name: "hover", title: "Probe a point", access: observe, run: quick(s.hover2D),
			params: append([]param{{name: "view", kind: text, desc: "Which view.", enum: []string{"head", "wrist"}, required: true}},
				fraction("u", "Fraction across that view, 0 left, 1 right."), fraction("v", "Fraction down that view, 0 top, 1 bottom.")),
			desc: "Crosshair at (u,v) in the named view and, where that view has depth, JSON offset_m: the scene point under it minus the closure point of the REAL gripper, on the robot axes, metres. When no point resolves, a message says so; ee_teleport_via_click there would be refused. Depth is noisy and the two views may disagree: trust the picture over the number. Moves nothing. " + robotAxes,
		},
	}
	if s.o.WristDepth {
		defs = append(defs, &definition{
			name: "show_approach_axis", looks: true, title: "Show where the gripper points", access: observe, run: quick(s.showAxis),
			desc: "The wrist view with a light-blue X where the target's approach axis first meets a surface: the line along which dx_m of ee_wrist_centric_translate moves. When there is no X (no depth, or nothing within 2 m), JSON message says why. Refused after ee_teleport_via_click until execute_waypoint or reset_target. Depth is noisy: trust the picture. Moves nothing.",
		})
	}
	return defs
}

func (s *Server) edit2D() []*definition {
	c := s.o.Caps
	travel := fmt.Sprintf("The target may be at most %s m from the real gripper. ", plain(c.Travel))
	return []*definition{
		{
			name: "ee_teleport_via_click", title: "Teleport the target to a click", access: edit, run: quick(s.teleport2D),
			params: []param{fraction("u", "Fraction across the head view, 0 left, 1 right."), fraction("v", "Fraction down the head view, 0 top, 1 bottom.")},
			desc: "Stages a pose: sends the target to the scene point at (u,v) of the head view. It lands 0.07 m back from that point against its approach axis, orientation kept. " +
				"Rotate first if the grasp needs another orientation; hover first when unsure; refine with the other ee_ tools. Returns the views, head with a red dot on the click, and JSON offset_m (clicked point minus the REAL closure point), proprio and check. " + travel + oneKind + "Also refused where no scene point resolves. The real robot does not move. " + robotAxes,
		},
		{
			name: "ee_robot_centric_translate", title: "Translate on the robot axes", access: edit, run: quick(s.translateRobot),
			params: []param{
				within("dx_m", "m", "Metres forward, - backward.", c.RobotStep), within("dy_m", "m", "Metres left, - right.", c.RobotStep),
				within("dz_m", "m", "Metres up, - down.", c.RobotStep),
			},
			desc: fmt.Sprintf("Stages a pose: moves the target along the robot axes, each within +-%s m per call, at least one not 0. ", plain(c.RobotStep)) + travel + staged2DReturns + oneKind + robotAxes,
		},
		{
			name: "ee_wrist_centric_translate", title: "Translate on the wrist axes", access: edit, run: quick(s.translateWrist),
			params: []param{
				within("dx_m", "m", "Metres along x, + where the fingers point.", c.WristStep), within("dy_m", "m", "Metres along y, + the wrist view's left.", c.WristStep),
				within("dz_m", "m", "Metres along z, + the wrist view's up.", c.WristStep),
			},
			desc: fmt.Sprintf("Stages a pose: moves the target along the wrist axes, each within +-%s m per call, at least one not 0. ", plain(c.WristStep)) + wristAxes + travel + staged2DReturns +
				"The wrist view carries the light-blue X of show_approach_axis, except after a teleport; otherwise message says why there is none. " + oneKind,
		},
		{
			name: "ee_wrist_centric_rotate", title: "Rotate on the wrist axes", access: edit, run: quick(s.rotateWrist),
			params: []param{
				within("roll_deg", "deg", "Degrees about x; + counter-clockwise in the wrist view.", deg(c.WristTurn)),
				within("tilt_up_deg", "deg", "Degrees tipping x towards z; + up in the wrist view.", deg(c.WristTurn)),
				within("tilt_left_deg", "deg", "Degrees tipping x towards y; + left in the wrist view.", deg(c.WristTurn)),
			},
			desc: fmt.Sprintf("Stages a pose: turns the target about the wrist axes, each within +-%s degrees per call, at least one not 0; calls add up. Applied in the order roll, tilt_up, tilt_left, each about the axes as already turned. Roll spins the jaws in place; the tilts pivot at the wrist mount behind the jaws, so the closure point swings on an arc. ", plain(deg(c.WristTurn))) +
				wristAxes + wristTravel(s.o.Model) + travel + staged2DReturns + "The wrist view carries the X as for ee_wrist_centric_translate. " + oneKind,
		},
		{
			name: "gripper_set", title: "Open or close", access: edit, run: quick(s.setJaw),
			params: []param{{name: "state", kind: text, desc: "State of the jaws.", enum: []string{"open", "closed"}, required: true}},
			desc:   "Stages the jaws: a waypoint of its own that needs its own execute_waypoint; the real jaws move only then. " + staged2DReturns + "Refused when the target is already so, or while a pose or nav edit is staged.",
		},
		{
			name: "reset_target", title: "Discard what is staged", access: edit, hints: hints{idempotent: true}, run: quick(s.resetTarget),
			desc: "Puts the target back onto the real gripper, pose and jaws, and the mode to none. Returns the views and proprio, or one message when nothing is staged. The real robot does not move.",
		},
	}
}

func (s *Server) nav2D() []*definition {
	c := s.o.Caps
	returns := "Returns the head view (the target rides with the base and may leave it), then nav_map instead of the wrist view: " +
		fmt.Sprintf("%dx%d from above, forward up, left left, rings every 0.1 m to 0.5 m, gray the real base, red with a nose the staged one. ", view.MapSize, view.MapSize) +
		"Then JSON staged_base_delta {dx_m, dy_m, dyaw_deg}, all calls together, on the axes of the real base; proprio; and check. The real robot does not move. " + oneKind
	return []*definition{
		{
			name: "nav_translate", title: "Move the base", access: edit, run: quick(s.navTranslate),
			params: []param{within("dx_m", "m", "Metres forward, - backward.", c.NavStep), within("dy_m", "m", "Metres left, - right.", c.NavStep)},
			desc: fmt.Sprintf("Stages a base translation along the staged heading (after a staged nav_rotate, forward is the turned forward), each within +-%s m per call, at least one not 0; at most %s m in all per waypoint. ", plain(c.NavStep), plain(c.NavTravel)) +
				"The gripper rides along, fixed to the base. " + returns + robotAxes,
		},
		{
			name: "nav_rotate", title: "Turn the base", access: edit, run: quick(s.navRotate),
			params: []param{{name: "angle_deg", unit: "deg", desc: "Degrees; + counter-clockwise, turn left; - turn right.", min: -deg(c.NavTurn), max: deg(c.NavTurn), required: true}},
			desc:   fmt.Sprintf("Stages a turn of the base in place, within +-%s degrees per call and %s in all per waypoint, not 0. The head camera turns with it: to search, turn 45 to 60 degrees at a time so that views overlap. ", plain(deg(c.NavTurn)), plain(deg(c.NavHeading))) + returns,
		},
	}
}

func (s *Server) run2D() []*definition {
	return []*definition{
		{
			name: "execute_waypoint", title: "Move the real robot", access: motion, hints: hints{destructive: true}, run: s.execute,
			desc: "MOVES THE REAL ROBOT to what is staged: base (nav), end effector with arm and base together (pose), or jaws (gripper), along a straight line. " +
				"Takes no arguments; blocks until standstill, at most 30 s of motion from the call and 40 s in all; progress comes every second. " +
				"Refused, with nothing moved, when nothing is staged, the target is unreachable, outside the workspace or the way is blocked, when you have not looked since the robot or scene changed, while a motion runs, or when the robot is not armed. " +
				"Then the target snaps onto the real gripper and the mode is none. Returns the views and JSON: ordered_vs_realized {mode, ordered, realized} (nav: base displacement on the heading before; pose: gripper poses on the robot axes after; gripper: jaw states), outcome, proprio, and message when the motion was cut short or the task succeeded. " +
				"Calling it again moves nothing by itself. When it says TASK SUCCEEDED, stop and call no further tool.",
		},
		{
			name: "end_episode", title: "End the episode", access: motion, hints: hints{destructive: true}, run: s.endEpisode2D,
			desc: "Saves and ends the episode, discards what is staged and frees the driver's seat; a simulated world is reset, a real robot does not move. Call it when the task is done or cannot be done. Refused while a motion runs. Text only.",
		},
	}
}

// wristTravel is the travel of the wrist's joints from neutral, from the robot's own limits. Joints are told
// apart by what a 3-DOF wrist's joints are called; a robot without them has no such sentence.
func wristTravel(mod *robot.Model) string {
	if mod == nil {
		return ""
	}
	var parts []string
	for _, w := range []struct{ name, sign string }{
		{"roll", "near neutral +roll_deg moves physical roll down"},
		{"pitch", "near neutral +tilt_up_deg moves physical pitch down"},
		{"yaw", "near neutral +tilt_left_deg moves physical yaw up"},
	} {
		for _, j := range mod.Joints {
			if strings.Contains(j.Name, "wrist") && strings.Contains(j.Name, w.name) && !j.Prismatic {
				parts = append(parts, fmt.Sprintf("%s %s to %s deg (%s)", w.name, signed(geom.Deg(j.Min)), signed(geom.Deg(j.Max)), w.sign))
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Travel of the wrist from neutral, one joint at a time: " + strings.Join(parts, "; ") + ". These are limits of single joints, not promises for combined turns, and not per-call allowances. "
}

func signed(v float64) string {
	s := fixed(v, 1)
	if v > 0 {
		s = "+" + s
	}
	return s
}
