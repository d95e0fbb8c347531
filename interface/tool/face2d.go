package tool

import (
	"context"
	"fmt"
	"image"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
	"viad/interface/view"
	"viad/safety"
)

// views are the pictures of one result of the 2D face, in order, with what is drawn into each.
type views struct {
	names []string
	ov    map[string]view.Overlay
}

func headAndWrist(ov view.Overlay) views {
	return views{[]string{"head", "wrist"}, map[string]view.Overlay{"head": {RedDot: ov.RedDot}, "wrist": {X: ov.X}}}
}

func headAndMap() views { return views{names: []string{"head", "nav_map"}} }

// seen2D is a reply of the 2D face: each view under its name, then the JSON block unless it is empty.
func (c *call) seen2D(sn *stage.Snapshot, vs views, j *resultJSON) (*reply, error) {
	if sn.Scene == nil {
		return nil, blind()
	}
	r := &reply{shown: sn}
	for _, n := range vs.names {
		p := c.s.o.Painter
		draw := p.Head
		switch n {
		case "wrist":
			draw = p.Wrist
		case "nav_map":
			draw = func(sn *stage.Snapshot, _ view.Overlay) *image.RGBA { return p.NavMap(sn) }
		}
		jpeg, err := c.s.encode(draw(sn, vs.ov[n]))
		if err != nil {
			return nil, err
		}
		r.say("view: " + n)
		r.picture(n, jpeg)
	}
	if j == nil || *j == (resultJSON{}) {
		return r, nil
	}
	t, err := j.text()
	if err != nil {
		return nil, err
	}
	r.say(t)
	return r, nil
}

// known refuses when there is no pose to speak of.
func known(sn *stage.Snapshot) error {
	if sn.Scene == nil {
		return blind()
	}
	if !sn.HasReal {
		return &safety.Refused{
			Rule: stage.RuleNoState, Value: "joints, base or jaw not reported", Limit: "all of them",
			Next: "Wait for the robot and call again; if it stays, the operator must look at it.",
		}
	}
	return nil
}

// staged2D is the reply to an edit.
func (c *call) staged2D(vs func(*stage.Snapshot) views, fill func(*stage.Snapshot, *resultJSON)) (*reply, error) {
	sn := c.s.o.Stage.Show()
	if err := known(sn); err != nil {
		return nil, err
	}
	shown := vs(sn)
	j := &resultJSON{Check: checkOf(&sn.Check), Proprio: proprioOf(sn)}
	if fill != nil {
		fill(sn, j)
	}
	return c.seen2D(sn, shown, j)
}

func plainViews(*stage.Snapshot) views { return headAndWrist(view.Overlay{}) }

func mapViews(*stage.Snapshot) views { return headAndMap() }

func (s *Server) observe2D(c *call) (*reply, error) {
	sn := c.look()
	if err := known(sn); err != nil {
		return nil, err
	}
	return c.seen2D(sn, plainViews(sn), &resultJSON{Proprio: proprioOf(sn)})
}

func (s *Server) hover2D(c *call) (*reply, error) {
	u, v, name := c.args.number("u"), c.args.number("v"), c.args.word("view")
	sn := c.pinned()
	if err := known(sn); err != nil {
		return nil, err
	}
	vs := views{[]string{name}, map[string]view.Overlay{name: {Crosshair: &view.Mark{U: u, V: v}}}}
	if name == "wrist" && !s.o.WristDepth {
		return c.seen2D(sn, vs, nil)
	}
	pick, what := s.o.Painter.PickHead, "an ee_teleport_via_click there would be rejected"
	if name == "wrist" {
		pick, what = s.o.Painter.PickWrist, "it has no depth there"
	}
	j := &resultJSON{}
	if h := pick(sn, u, v); h.OK() {
		o := vecOf(sn.Offset(h.Point))
		j.Offset = &o
	} else {
		j.Message = "no scene point resolves under the crosshair" + because(h) + "; " + what
	}
	return c.seen2D(sn, vs, j)
}

func (s *Server) showAxis(c *call) (*reply, error) {
	sn := c.look()
	if err := known(sn); err != nil {
		return nil, err
	}
	if sn.Teleported {
		return nil, &safety.Refused{
			Rule: "the approach axis is not shown after a teleport", Value: "a target placed by ee_teleport_via_click",
			Limit: "a target placed without it", Next: "Call execute_waypoint or reset_target first.",
		}
	}
	x, why := s.surface(sn)
	return c.seen2D(sn, views{[]string{"wrist"}, map[string]view.Overlay{"wrist": {X: x}}}, &resultJSON{Message: why})
}

// surface is where the target's approach axis first meets something, or why that is not known.
func (s *Server) surface(sn *stage.Snapshot) (*r3.Vec, string) {
	if !s.o.WristDepth {
		return nil, "no X: no wrist depth is available"
	}
	h := s.o.Painter.ApproachHit(sn)
	if h.OK() {
		return &h.Point, ""
	}
	if h.Why != "" {
		return nil, "no X: " + h.Why
	}
	return nil, "no X: the approach axis meets no surface within 2 m of the target"
}

// because is the reason of a pick that found nothing.
func because(h view.Hit) string {
	if h.Why == "" {
		return ""
	}
	return " (" + h.Why + ")"
}

func (s *Server) teleport2D(c *call) (*reply, error) {
	u, v := c.args.number("u"), c.args.number("v")
	sn := s.o.Stage.Pinned()
	if err := known(sn); err != nil {
		return nil, err
	}
	h := s.o.Painter.PickHead(sn, u, v)
	if !h.OK() {
		return nil, &safety.Refused{
			Rule: "no scene point under the click", Value: fmt.Sprintf("u %s v %s of the head view%s", m(u), m(v), because(h)), Limit: "a place with depth",
			Next: "Use hover to find a place that gives offset_m, then click there.",
		}
	}
	if err := s.o.Stage.TeleportTo(h.Point); err != nil {
		return nil, err
	}
	return c.staged2D(func(*stage.Snapshot) views { return headAndWrist(view.Overlay{RedDot: &view.Mark{U: u, V: v}}) },
		func(sn *stage.Snapshot, j *resultJSON) {
			o := vecOf(sn.Offset(h.Point))
			j.Offset = &o
		})
}

func (c *call) metres3() r3.Vec {
	return r3.Vec{X: c.args.number("dx_m"), Y: c.args.number("dy_m"), Z: c.args.number("dz_m")}
}

func (s *Server) translateRobot(c *call) (*reply, error) {
	if err := s.o.Stage.TranslateRobot(c.metres3()); err != nil {
		return nil, err
	}
	return c.staged2D(plainViews, nil)
}

func (s *Server) translateWrist(c *call) (*reply, error) {
	if err := s.o.Stage.TranslateWrist(c.metres3()); err != nil {
		return nil, err
	}
	return c.wristStaged()
}

func (s *Server) rotateWrist(c *call) (*reply, error) {
	roll, up, left := geom.Rad(c.args.number("roll_deg")), geom.Rad(c.args.number("tilt_up_deg")), geom.Rad(c.args.number("tilt_left_deg"))
	if err := s.o.Stage.RotateWrist(roll, up, left); err != nil {
		return nil, err
	}
	return c.wristStaged()
}

// wristStaged is the reply to an edit on the wrist axes: with the X, unless the waypoint holds a teleport.
func (c *call) wristStaged() (*reply, error) {
	var why string
	return c.staged2D(func(sn *stage.Snapshot) (vs views) {
		vs = plainViews(sn)
		if !sn.Teleported {
			var x *r3.Vec
			x, why = c.s.surface(sn)
			vs = headAndWrist(view.Overlay{X: x})
		}
		return vs
	}, func(_ *stage.Snapshot, j *resultJSON) { j.Message = why })
}

func (s *Server) setJaw(c *call) (*reply, error) {
	if err := s.o.Stage.SetJaw(c.args.word("state") == "open"); err != nil {
		return nil, err
	}
	return c.staged2D(plainViews, nil)
}

func (s *Server) resetTarget(c *call) (*reply, error) {
	was, err := s.o.Stage.ResetTarget()
	if err != nil {
		return nil, err
	}
	if !was {
		return message("reset_target: nothing is staged; the target is on the real gripper."), nil
	}
	return c.staged2D(plainViews, nil)
}

func (s *Server) navTranslate(c *call) (*reply, error) {
	if err := s.o.Stage.NavTranslate(c.args.number("dx_m"), c.args.number("dy_m")); err != nil {
		return nil, err
	}
	return c.navStaged()
}

func (s *Server) navRotate(c *call) (*reply, error) {
	if err := s.o.Stage.NavRotate(geom.Rad(c.args.number("angle_deg"))); err != nil {
		return nil, err
	}
	return c.navStaged()
}

func (c *call) navStaged() (*reply, error) {
	return c.staged2D(mapViews, func(sn *stage.Snapshot, j *resultJSON) {
		d := baseDeltaOf(sn.BaseDelta)
		j.Delta = &d
	})
}

// executed2D is the reply after a motion.
func (s *Server) executed2D(c *call, rep *stage.Report) (*reply, error) {
	sn := s.o.Stage.Show()
	if err := known(sn); err != nil {
		return nil, err
	}
	j := &resultJSON{Ordered: orderedOf(rep), Outcome: outcomeOf(rep), Message: oneLine(rep.Message), Proprio: proprioOf(sn)}
	r, err := c.seen2D(sn, plainViews(sn), j)
	if err != nil {
		return nil, err
	}
	r.report = rep
	return r, nil
}

func orderedOf(rep *stage.Report) *orderedJSON {
	o := &orderedJSON{Mode: rep.Mode.String()}
	switch rep.Mode {
	case stage.ModeNav:
		a, b := baseDeltaOf(rep.OrderedBase), baseDeltaOf(rep.RealizedBase)
		o.Ordered.base, o.Realized.base = &a, &b
	case stage.ModeGripper:
		o.Ordered.jaw = &jawJSON{Open: rep.Ordered.Open}
		o.Realized.jaw = &jawJSON{Open: rep.Realized.Open}
		if after := rep.Outcome.JawTo; after.Known {
			a := meters(after.Aperture)
			o.Realized.jaw.Aperture = &a
		}
	default:
		a, b := gripperOn(rep.Base, rep.Ordered), gripperOn(rep.Base, rep.Realized)
		o.Ordered.pose, o.Realized.pose = &a, &b
	}
	return o
}

func outcomeOf(rep *stage.Report) *outcomeJSON {
	o := &outcomeJSON{
		Result: rep.Outcome.Result.String(), Stop: rep.Outcome.Stop.String(), Why: oneLine(rep.Outcome.Why),
		Took: secs(rep.Outcome.Took.Seconds()), Planned: secs(rep.Outcome.Planned.Seconds()),
	}
	if rep.Mode == stage.ModePose {
		d := baseDeltaOf(rep.RealizedBase)
		o.Base = &d
	}
	return o
}

func (s *Server) endEpisode2D(ctx context.Context, c *call) (*reply, error) {
	v, err := s.endEpisode(ctx, c)
	if err != nil {
		return nil, err
	}
	return message(verdictText(v)), nil
}

// executed is the reply after a motion on this server's face.
func (s *Server) executed(c *call, rep *stage.Report) (*reply, error) {
	if s.o.Face == stage.Face3D {
		return s.executed3D(c, rep)
	}
	return s.executed2D(c, rep)
}
