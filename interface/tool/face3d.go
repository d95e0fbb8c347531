package tool

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/interface/view"
	"viad/safety"
)

// ui is a reply of the 3D face: its one picture with ov, then one text block with lines.
func (c *call) ui(sn *stage.Snapshot, ov view.Overlay, lines ...string) (*reply, error) {
	if sn.Scene == nil {
		return nil, blind()
	}
	jpeg, err := c.s.encode(c.s.o.Painter.UI(sn, ov))
	if err != nil {
		return nil, err
	}
	r := &reply{shown: sn}
	r.picture("ui", jpeg)
	r.say(strings.Join(lines, "\n"))
	return r, nil
}

// state3D are the lines that every staging result ends with: target, real gripper, check and picture age.
func state3D(sn *stage.Snapshot) []string {
	if !sn.HasReal {
		return []string{"real gripper: unknown, the robot reports no complete state", age(sn)}
	}
	return slices.Concat([]string{
		"target gripper: " + gripperText(sn.Target),
		fmt.Sprintf("real gripper: %s; aperture %s%s", gripperText(sn.Real), m(sn.Aperture), jawNote(sn)),
	}, check3D(sn), []string{age(sn)})
}

func check3D(sn *stage.Snapshot) []string {
	if sn.Moving {
		return []string{"motion: running; the pictures and the real pose are of this moment"}
	}
	c := &sn.Check
	if !c.Staged {
		lines := []string{"staged: nothing, the target is on the real gripper"}
		if sn.Barred != nil {
			lines = append(lines, "nothing may move now: "+oneLine(sn.Barred.Error()))
		}
		return lines
	}
	lines := make([]string, 0, 4+len(c.Notes))
	lines = append(lines, "reach: "+oneLine(c.Reach), "way: "+oneLine(c.Way))
	for _, n := range c.Notes {
		lines = append(lines, "note: "+oneLine(n))
	}
	if c.Plan != nil {
		lines = append(lines, "planned time: "+seconds(c.Duration.Seconds()))
	}
	if c.Refused != nil {
		lines = append(lines, "execute_waypoint would refuse now: "+oneLine(c.Refused.Error()))
	}
	return lines
}

// jawNote says what open and closed do not: that the jaw rests on something, or halfway.
func jawNote(sn *stage.Snapshot) string {
	switch {
	case sn.JawBetween:
		return ", neither open nor closed: its last command was cut short; toggle asks for either"
	case sn.State.Jaw.Known && sn.State.Jaw.Holding:
		return ", on something that it holds"
	}
	return ""
}

func age(sn *stage.Snapshot) string {
	return fmt.Sprintf("scene: %d, %s old", sn.Scene.Seq, seconds(math.Max(0, sn.Now.Sub(sn.Scene.At).Seconds())))
}

// edited is the reply to an edit of the 3D face.
func (c *call) edited(ov view.Overlay, lines ...string) (*reply, error) {
	sn := c.s.o.Stage.Show()
	return c.ui(sn, ov, append(lines, state3D(sn)...)...)
}

func (s *Server) screenshot(c *call) (*reply, error) {
	sn := c.look()
	if sn.Scene == nil {
		return nil, blind()
	}
	return c.ui(sn, view.Overlay{}, append(append([]string{"screenshot"}, state3D(sn)...), cameraText(sn.Orbit))...)
}

func (s *Server) hover3D(c *call) (*reply, error) {
	u, v := c.args.number("u"), c.args.number("v")
	sn := c.pinned()
	if sn.Scene == nil {
		return nil, blind()
	}
	sn = s.aged(sn)
	h := s.o.Painter.Pick(sn, u, v)
	point := "none"
	if h.OK() {
		point = xyz(h.Point)
	}
	lines := []string{fmt.Sprintf("hover at u %s v %s", m(u), m(v)), "contact point: " + point}
	if !h.OK() {
		lines = append(lines, "under the cursor: "+under(h)+"; a teleport here would be refused")
	}
	return c.ui(sn, view.Overlay{Crosshair: &view.Mark{U: u, V: v}}, append(lines, age(sn))...)
}

// aged is a pinned picture at its age of now: it may have been pinned long ago.
func (s *Server) aged(sn *stage.Snapshot) *stage.Snapshot {
	now := *sn
	now.Now = s.o.Clock.Now()
	return &now
}

// under says what a pixel shows.
func under(h view.Hit) string {
	var what string
	switch h.Kind {
	case view.Target:
		return "the blue target gripper"
	case view.Chrome:
		what = "a part of the interface itself"
	case view.Cloud, view.Feed:
		return "a scene point at " + xyz(h.Point)
	default:
		what = "no point near enough"
	}
	if h.Why != "" {
		what += " (" + h.Why + ")"
	}
	return what
}

func (s *Server) getPose(c *call) (*reply, error) {
	return c.pose("target pose", view.Overlay{Axis: true})
}

func (s *Server) gizmo(c *call) (*reply, error) {
	return c.pose("rotation gizmo: x, y, z rings with an arrow in the + direction, and the approach axis", view.Overlay{Gizmo: true, Axis: true})
}

func (c *call) pose(what string, ov view.Overlay) (*reply, error) {
	sn := c.look()
	if sn.Scene == nil {
		return nil, blind()
	}
	return c.ui(sn, ov, append([]string{what}, state3D(sn)...)...)
}

func (s *Server) cameraPose(c *call) (*reply, error) {
	return message(cameraText(c.look().Orbit)), nil
}

func (s *Server) teleport3D(c *call) (*reply, error) {
	u, v := c.args.number("u"), c.args.number("v")
	h := s.o.Painter.Pick(s.o.Stage.Pinned(), u, v)
	if !h.OK() {
		next := "Use hover to find a place with a contact point, then click there."
		if h.Kind == view.Target {
			next = "Clicking the target is for gripper_drag. Use hover to find a point of the scene."
		}
		return nil, &safety.Refused{Rule: "no scene point under the click", Value: under(h), Limit: "a point of the cloud or of a camera feed", Next: next}
	}
	if err := s.o.Stage.TeleportTo(h.Point); err != nil {
		return nil, err
	}
	return c.edited(view.Overlay{Salient: &h.Point},
		"teleported: the closure point is 0.07 m back from the salient point, against the approach axis",
		"selected salient point: "+xyz(h.Point))
}

func (s *Server) drag(c *call) (*reply, error) {
	d := view.Drag{U1: c.args.number("u1"), V1: c.args.number("v1"), U2: c.args.number("u2"), V2: c.args.number("v2")}
	sn := s.o.Stage.Pinned()
	if h := s.o.Painter.Pick(sn, d.U1, d.V1); h.Kind != view.Target {
		return nil, &safety.Refused{
			Rule: "the drag does not start on the blue target gripper", Value: under(h), Limit: "a finger, the wrist or the body of the target",
			Next: "Use hover to find the target, which reads none there, or use gripper_translate.",
		}
	}
	if _, _, ok := cloudPoint(d.U2, d.V2); !ok {
		return nil, &safety.Refused{
			Rule: "the drag ends outside the cloud view", Value: fmt.Sprintf("u2 %s v2 %s", m(d.U2), m(d.V2)), Limit: cloudLimits(),
			Next: "End the drag inside the cloud view; several drags add up.",
		}
	}
	constraint := c.args.word("constraint")
	delta, err := s.o.Stage.Drag((d.U2-d.U1)*view.UIWidth, (d.V2-d.V1)*view.UIHeight, constraint)
	if err != nil {
		return nil, err
	}
	lines := []string{"dragged, constraint " + constraint, "pose delta: " + xyz(delta)}
	if constraint != "free" {
		lines = append(lines, "note: under a constraint the end marker and the gripper may part; the readout is exact")
	}
	return c.edited(view.Overlay{Drag: &d}, lines...)
}

func (s *Server) translate3D(c *call) (*reply, error) {
	delta, err := s.o.Stage.Translate(r3.Vec{X: c.args.number("d_x"), Y: c.args.number("d_y"), Z: c.args.number("d_z")})
	if err != nil {
		return nil, err
	}
	return c.edited(view.Overlay{}, "translated", "pose delta: "+xyz(delta))
}

func (s *Server) advance(c *call) (*reply, error) {
	n, what := int(c.args.number("steps")), "advanced"
	if c.args.word("direction") == "b" {
		n, what = -n, "retreated"
	}
	delta, err := s.o.Stage.Advance(n)
	if err != nil {
		return nil, err
	}
	return c.edited(view.Overlay{}, what, "pose delta: "+xyz(delta))
}

func (s *Server) rotate3D(c *call) (*reply, error) {
	axis, angle := c.args.word("axis"), c.args.number("angle")
	if err := s.o.Stage.RotateGizmo(axis, geom.Rad(angle)); err != nil {
		return nil, err
	}
	return c.edited(view.Overlay{}, fmt.Sprintf("rotated about gizmo %s by %s deg, in place", axis, fixed(angle, 2)))
}

func (s *Server) toggle(c *call) (*reply, error) {
	changed, err := s.o.Stage.Toggle(c.args.word("state"))
	if err != nil {
		return nil, err
	}
	sn := s.o.Stage.Show()
	line := "target jaw: " + jaw(sn.Target.Open)
	if !changed {
		line += ", as it already was"
	}
	return c.ui(sn, view.Overlay{}, append([]string{line}, state3D(sn)...)...)
}

func (s *Server) reset3D(c *call) (*reply, error) {
	if err := s.o.Stage.ResetToReal(); err != nil {
		return nil, err
	}
	return c.edited(view.Overlay{}, "reset: the target is on the real gripper")
}

// viewed is the reply to a camera tool.
func (c *call) viewed(what string) (*reply, error) {
	sn := c.s.o.Stage.Show()
	if sn.Scene == nil {
		return nil, blind()
	}
	return c.ui(sn, view.Overlay{}, what, cameraText(sn.Orbit), age(sn))
}

func (s *Server) orbit(c *call) (*reply, error) {
	clamped, err := s.o.Stage.OrbitBy(geom.Rad(c.args.number("d_azimuth")), geom.Rad(c.args.number("d_elevation")))
	if err != nil {
		return nil, err
	}
	what := "orbited"
	if clamped {
		what += "; elevation clamped to the range 0 to 85 degrees"
	}
	return c.viewed(what)
}

func (s *Server) pan(c *call) (*reply, error) {
	if err := s.o.Stage.PanBy(c.args.number("d_right"), c.args.number("d_up")); err != nil {
		return nil, err
	}
	return c.viewed("panned")
}

func (s *Server) zoom(c *call) (*reply, error) {
	u, v := c.args.number("u"), c.args.number("v")
	cu, cv, ok := cloudPoint(u, v)
	if !ok {
		return nil, &safety.Refused{
			Rule: "the zoom point is outside the cloud view", Value: fmt.Sprintf("u %s v %s", m(u), m(v)), Limit: cloudLimits(),
			Next: "Point inside the cloud view.",
		}
	}
	clamped, err := s.o.Stage.ZoomBy(cu, cv, int(c.args.number("steps")))
	if err != nil {
		return nil, err
	}
	what := "zoomed"
	if clamped {
		what += fmt.Sprintf("; distance clamped to the range %s to %s m", plain(s.o.Caps.ZoomMin), plain(s.o.Caps.ZoomMax))
	}
	return c.viewed(what)
}

func (s *Server) cameraReset(c *call) (*reply, error) {
	if err := s.o.Stage.CameraReset(); err != nil {
		return nil, err
	}
	return c.viewed("initial view")
}

// executed3D is the reply after a motion.
func (s *Server) executed3D(c *call, rep *stage.Report) (*reply, error) {
	sn := s.o.Stage.Show()
	lines := []string{outcomeText(rep)}
	if rep.Success && !strings.Contains(rep.Message, "TASK SUCCEEDED") {
		lines = append(lines, succeeded)
	}
	lines = append(lines, "ordered: "+gripperText(rep.Ordered), "realized: "+gripperText(rep.Realized),
		fmt.Sprintf("off by: %s m; %s deg", m(rep.Ordered.Pose.Dist(rep.Realized.Pose)), degText(rep.Ordered.Pose.Angle(rep.Realized.Pose))))
	if rep.Kind == robot.KindPoseJaw {
		lines = append(lines, "note: pose and jaw changed in one waypoint; give the jaw a waypoint of its own")
	}
	r, err := c.ui(sn, view.Overlay{}, append(lines, state3D(sn)...)...)
	if err != nil {
		return nil, err
	}
	r.report = rep
	return r, nil
}

func (s *Server) endEpisode3D(ctx context.Context, c *call) (*reply, error) {
	v, err := s.endEpisode(ctx, c)
	if err != nil {
		return nil, err
	}
	sn := s.o.Stage.Show()
	if sn.Scene == nil {
		return message(verdictText(v) + " No picture yet."), nil
	}
	return c.ui(sn, view.Overlay{}, append(append([]string{verdictText(v)}, state3D(sn)...), cameraText(sn.Orbit))...)
}

// cloudPoint takes fractions of the picture to fractions of the cloud view; ok is false outside it.
func cloudPoint(u, v float64) (cu, cv float64, ok bool) {
	r := view.Layout.Cloud
	x, _ := view.Pixel(u, view.UIWidth)
	y, _ := view.Pixel(v, view.UIHeight)
	if x < r.Min.X || x >= r.Max.X || y < r.Min.Y || y >= r.Max.Y {
		return 0, 0, false
	}
	cu = (u*view.UIWidth - float64(r.Min.X)) / float64(r.Dx())
	cv = (v*view.UIHeight - float64(r.Min.Y)) / float64(r.Dy())
	return math.Max(0, math.Min(1, cu)), math.Max(0, math.Min(1, cv)), true
}

func cloudLimits() string { return "the cloud view, " + where(view.Layout.Cloud) }
