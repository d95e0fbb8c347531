package tool

import (
	"fmt"
	"image"

	"viad/drivers/geom"
	"viad/interface/stage"
	"viad/interface/view"
)

// frame3D stands at the head of every gripper tool but gripper_toggle.
const frame3D = "Frame: the robot frame, metres, fixed at the arm's base with its origin at the foot of the arm; X red, Y green, Z blue and up. " +
	"Every pose, delta and camera target is given and taken in it. A gripper pose is the closure point (midway between the finger pads) with two unit vectors: " +
	"approach, the direction the fingers reach, and opening, the line from finger to finger along which the jaws move. "

// where is a rectangle of the 3D picture in fractions.
func where(r image.Rectangle) string {
	return fmt.Sprintf("u %s to %s, v %s to %s",
		plain(float64(r.Min.X)/view.UIWidth), plain(float64(r.Max.X)/view.UIWidth),
		plain(float64(r.Min.Y)/view.UIHeight), plain(float64(r.Max.Y)/view.UIHeight))
}

// rectangles publishes the layout of the one picture.
func rectangles() string {
	return fmt.Sprintf("The picture is %dx%d; u runs right and v down, 0 to 1 over the whole picture. third_person feed: %s. wrist feed: %s. Cloud view: %s. ",
		view.UIWidth, view.UIHeight, where(view.Layout.Third), where(view.Layout.Wrist), where(view.Layout.Cloud))
}

func fraction(name, desc string) param {
	return param{name: name, desc: desc, max: 1, required: true}
}

func uv() []param {
	return []param{
		fraction("u", "Fraction across the picture, 0 left, 1 right."),
		fraction("v", "Fraction down the picture, 0 top, 1 bottom."),
	}
}

func within(name, unit, desc string, size float64) param {
	return param{name: name, unit: unit, desc: desc, min: -size, max: size}
}

// deg rounds away what the way through radians left behind.
func deg(rad float64) float64 { return float64(int64(geom.Deg(rad)*1e6+0.5)) / 1e6 }

const teleportBack = "It lands 0.07 m back from that point against the approach axis, orientation and jaw kept; pointing straight down that is 0.07 m above it. "

func (s *Server) definitions() []*definition {
	if s.o.Face == stage.Face2D {
		return append(s.look2D(), append(append(s.edit2D(), s.nav2D()...), append(s.run2D(), s.stopTool())...)...)
	}
	return append(s.look3D(), append(append(s.edit3D(), s.camera3D()...), append(s.run3D(), s.stopTool())...)...)
}

// stopName is the tool that is never refused.
const stopName = "stop"

func (s *Server) stopTool() *definition {
	return &definition{
		name: stopName, title: "Stop the robot", access: halt, hints: hints{idempotent: true}, run: s.halt,
		desc: "Stop the robot now. Anybody may call it at any time, also while execute_waypoint runs. Takes no arguments. " +
			"Returns once standstill is measured: 'stopped, confirmed', or an error 'stop NOT confirmed: use the e-stop'. What was staged stays staged.",
	}
}

func (s *Server) look3D() []*definition {
	return []*definition{
		{
			name: "screenshot", looks: true, title: "Take a screenshot", access: observe, run: quick(s.screenshot),
			desc: "Picture of the whole interface, with the state in words; changes nothing. Call it first, and whenever you want a fresh look. " +
				"Left: two camera feeds of the real scene, in which the target is not drawn; third_person sees table and arm and is best for the layout, wrist looks between the fingers and is best for closeness and centring. " +
				"Right: the fused point cloud with the robot's axes (X red, Y green, Z blue), the solid blue target gripper that you command, and the real gripper as gray sensor points. " +
				rectangles() + "The text gives target and real pose, whether the target can be reached and the way is clear, the camera and the picture's age.",
		},
		{
			name: "hover", title: "Probe a point", access: observe, params: uv(), run: quick(s.hover3D),
			desc: "Crosshair at (u,v), its centre dot exactly there, and the contact point under it: x y z in metres in the robot frame, or none. " +
				"Works over the cloud view and both camera feeds; the nearest cloud point within a small radius counts. It is the very point that gripper_teleport_via_click at the same (u,v) would select, not the pose 0.07 m back. " +
				"none over empty space, over the blue target and outside cloud and feeds. Moves nothing. " + rectangles(),
		},
		{
			name: "gripper_get_pose", looks: true, title: "Read the target pose", access: observe, run: quick(s.getPose),
			desc: frame3D + "Returns the pose of the blue target gripper (metres, unit vectors, open or closed) and draws its approach axis: the line along which gripper_advance_or_retreat f and b would move. Moves nothing.",
		},
		{
			name: "gripper_show_rotation_gizmo", looks: true, title: "Show the rotation rings", access: observe, run: quick(s.gizmo),
			desc: frame3D + "Draws the three rings x, y, z that gripper_rotate turns about, each with an arrow in its + direction, and the approach axis; returns the target's pose. Call it before each gripper_rotate and choose axis and sign from what you see. Moves nothing.",
		},
		{
			name: "camera_get_pose", title: "Read the camera", access: observe, run: quick(s.cameraPose),
			desc: "Text only: the point the cloud view's camera looks at (target, metres, robot frame), its distance from it in metres, azimuth and elevation in degrees. " +
				"Azimuth 90 is a camera on the +X side that looks along -X, growing counter-clockwise seen from above; elevation 0 is level and 85, the most, nearly straight down.",
		},
	}
}

func (s *Server) edit3D() []*definition {
	c := s.o.Caps
	return []*definition{
		{
			name: "gripper_teleport_via_click", title: "Teleport the target to a click", access: edit, params: uv(), run: quick(s.teleport3D),
			desc: frame3D + "Sends the blue target to the scene point drawn at (u,v), in the cloud view or in either camera feed. " + teleportBack +
				"Click the middle of an object, not its edge; hover first to be sure. Then go on with gripper_advance_or_retreat, gripper_translate or gripper_rotate. " +
				"Returns the selected salient point and the resulting pose, which differ. Empty space, the blue target itself and places outside cloud and feeds are refused. The real robot does not move. " + rectangles(),
		},
		{
			name: "gripper_drag", title: "Drag the target", access: edit, run: quick(s.drag),
			params: []param{
				fraction("u1", "Start, fraction across the picture; must be on the blue target."), fraction("v1", "Start, fraction down the picture."),
				fraction("u2", "End, fraction across the picture; inside the cloud view."), fraction("v2", "End, fraction down the picture."),
				{name: "constraint", kind: text, desc: "free follows the cursor in the plane of the view; x, y or z keeps to that axis of the robot frame.", enum: []string{"free", "x", "y", "z"}, defText: "free"},
				{name: "steps", kind: integer, desc: "Mouse positions on the way; without effect on the result.", min: 1, max: 200, def: 25},
			},
			desc: frame3D + "Drags the blue target from (u1,v1) to (u2,v2) in the cloud view: 0.0006 m per pixel of the 1280x800 picture, whatever the zoom. " +
				"The start must be on the solid blue gripper (finger, wrist or body), not on the gap between the fingers nor on the gray real one. " +
				"With x, y or z only that component is taken, exactly; marker and gripper may then part, so trust the readout. Returns the pose delta. The real robot does not move. Cloud view: " + where(view.Layout.Cloud) + ".",
		},
		{
			name: "gripper_translate", title: "Translate the target", access: edit, run: quick(s.translate3D),
			params: []param{
				within("d_x", "m", "Metres along robot X.", c.Translate), within("d_y", "m", "Metres along robot Y.", c.Translate),
				within("d_z", "m", "Metres along robot Z; + lifts, - lowers.", c.Translate),
			},
			desc: frame3D + fmt.Sprintf("Moves the blue target by metres along the fixed axes of the robot frame (not the gizmo's), orientation kept. Each within +-%s m per call, at least one not 0; call again for more. Returns the pose delta. The real robot does not move.", plain(c.Translate)),
		},
		{
			name: "gripper_advance_or_retreat", title: "Advance or retreat the target", access: edit, run: quick(s.advance),
			params: []param{
				{name: "direction", kind: text, desc: "f along the approach axis, the way the fingers point; b back.", enum: []string{"f", "b"}, required: true},
				{name: "steps", kind: integer, desc: "Steps of 0.006 m.", min: 1, max: float64(c.Steps), def: 1},
			},
			desc: frame3D + fmt.Sprintf("Moves the blue target along its approach axis, 0.006 m a step, 1 to %d steps. Pointing straight down, f is -Z (down) and b is +Z. After a teleport about 12 steps f bring the closure point to the clicked point. Returns the pose delta. The real robot does not move.", c.Steps),
		},
		{
			name: "gripper_rotate", title: "Rotate the target", access: edit, run: quick(s.rotate3D),
			params: []param{
				{name: "axis", kind: text, desc: "Gizmo ring: y about the opening line, z about the approach axis, x about the third.", enum: []string{"x", "y", "z"}, required: true},
				{name: "angle", unit: "deg", desc: "Degrees; + is the way of the ring's arrow.", min: -deg(c.Rotate), max: deg(c.Rotate), required: true},
			},
			desc: frame3D + fmt.Sprintf("Turns the blue target in place about one of its own gizmo axes, within +-%s degrees per call and not 0; the closure point stays. x re-aims approach and opening, y keeps opening, z keeps approach (a twist). "+
				"The gizmo axes ride with the gripper and agree with the robot's X, Y, Z only when it points straight down, where + about z is counter-clockwise seen from above. Call gripper_show_rotation_gizmo first; prefer 10 to 45 degrees at a time. The real robot does not move.", plain(deg(c.Rotate))),
		},
		{
			name: "gripper_toggle", title: "Open or close the target", access: edit, run: quick(s.toggle),
			params: []param{{name: "state", kind: text, desc: "toggle flips; open and closed make sure.", enum: []string{"toggle", "open", "closed"}, defText: "toggle"}},
			desc:   "Opens or closes the jaw of the blue target; the real jaw follows at execute_waypoint. Asking for the state it has is no error. Give a jaw change an execute_waypoint of its own. Returns the resulting state.",
		},
		{
			name: "gripper_reset", title: "Reset the target", access: edit, hints: hints{idempotent: true}, run: quick(s.reset3D),
			desc: frame3D + "Puts the blue target back onto the real gripper: position, orientation and jaw. Discards what was staged. The real robot does not move and no waypoint is recorded.",
		},
	}
}

func (s *Server) camera3D() []*definition {
	c := s.o.Caps
	must := func(p param) param { p.required = true; return p }
	return []*definition{
		{
			name: "camera_orbit_via_key", title: "Orbit the camera", access: edit, run: quick(s.orbit),
			params: []param{
				must(within("d_azimuth", "deg", "Degrees about the vertical; + counter-clockwise seen from above.", deg(c.OrbitStep))),
				must(within("d_elevation", "deg", "Degrees up; + towards looking down.", deg(c.OrbitStep))),
			},
			desc: fmt.Sprintf("Turns the cloud view's camera around the point it looks at, by degrees relative to now, each within +-%s per call. From the initial azimuth 90, + swings the camera towards +Y. Elevation is clamped to 0..85 (the result says so), azimuth wraps at 360. Neither target nor robot moves. Returns the camera.", plain(deg(c.OrbitStep))),
		},
		{
			name: "camera_pan_via_key", title: "Pan the camera", access: edit, run: quick(s.pan),
			params: []param{
				must(within("d_right", "m", "Metres to the right of the screen.", c.PanStep)),
				must(within("d_up", "m", "Metres up along robot Z.", c.PanStep)),
			},
			desc: fmt.Sprintf("Slides camera and look-at point together, each within +-%s m per call: + d_right shows more of the right, + d_up (along robot Z, not the screen) more of what is above. Angles and distance stay. Neither target nor robot moves. Returns the camera.", plain(c.PanStep)),
		},
		{
			name: "camera_zoom", title: "Zoom the camera", access: edit, run: quick(s.zoom),
			params: append(uv(), param{name: "steps", kind: integer, desc: "+ in, - out, not 0; 0.03 m each.", min: float64(-c.Steps), max: float64(c.Steps), def: 1}),
			desc: fmt.Sprintf("Moves the camera 0.03 m per step nearer (+) or farther (-) along the line through (u,v), so that what is under (u,v) stays there; off-centre it shifts the view. 1 to %d steps in size; the distance stays within %s to %s m (a clamp is reported). (u,v) must be in the cloud view: %s. Neither target nor robot moves. Returns the camera.",
				c.Steps, plain(c.ZoomMin), plain(c.ZoomMax), where(view.Layout.Cloud)),
		},
		{
			name: "camera_reset", title: "Reset the camera", access: edit, hints: hints{idempotent: true}, run: quick(s.cameraReset),
			desc: "Restores the initial view (azimuth 90), which suits most work; come back to it after looking around. Neither target nor robot moves. Returns the camera.",
		},
	}
}

func (s *Server) run3D() []*definition {
	return []*definition{
		{
			name: "execute_waypoint", title: "Move the real robot", access: motion, hints: hints{destructive: true}, run: s.execute,
			desc: "MOVES THE REAL ROBOT to the blue target: position, orientation and jaw, along a straight line from where it is, not along your edits. If pose and jaw both changed, pose comes first, then the jaw; better give the jaw a waypoint of its own. " +
				"Takes no arguments; blocks until standstill, at most 30 s of motion from the call and 40 s in all; progress comes every second. " +
				"Refused, with nothing moved, when the target is on the real gripper (nothing to do), unreachable, outside the workspace or the way is blocked, when you have not looked since the last edit or since the robot or scene changed, while a motion runs, or when the robot is not armed. " +
				"Returns the new picture with ordered and realized pose, the outcome (reached, stopped_short, contact, faulted, unknown) and whether the stop was confirmed. The target stays as commanded and is the base of later edits. Calling it again moves nothing by itself. " +
				"When it says TASK SUCCEEDED, stop and call no further tool.",
		},
		{
			name: "end_episode", title: "End the episode", access: motion, hints: hints{destructive: true}, run: s.endEpisode3D,
			desc: "Saves and ends the episode, discards what is staged, restores the camera and frees the driver's seat; a simulated world is reset, a real robot does not move. Call it after the last waypoint. Refused while a motion runs.",
		},
	}
}
