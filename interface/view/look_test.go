package view

import (
	"testing"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
)

func TestLook(t *testing.T) {
	p := newPainter(t, Options{})
	sn := tabletop(t)
	t.Log("points", sn.Scene.Cloud.Len(), "spacing", spacing(sn.Scene.Cloud))
	dump(t, "ui_rest", p.UI(sn, Overlay{}))
	target := topDown(r3.Vec{X: .5, Y: .16, Z: .06})
	ok := staged(sn, target, false, stage.Check{Reachable: true, Clear: true, Reach: "reachable; joint4 comes closest to its limit, 0.42 rad away", Way: "way clear: nearest thing 3.4 cm away"})
	dump(t, "ui_ok", p.UI(ok, Overlay{Axis: true}))
	tilt := geom.Pose{P: r3.Vec{X: .45, Y: .05, Z: .15}, R: geom.FromAxes(r3.Unit(r3.Vec{X: .5, Y: .3, Z: -1}), r3.Unit(r3.Cross(r3.Vec{X: .5, Y: .3, Z: -1}, r3.Vec{X: 1, Y: -.2})))}
	dump(t, "ui_gizmo", p.UI(staged(sn, tilt, true, ok.Check), Overlay{Gizmo: true}))
	blk := staged(sn, topDown(r3.Vec{X: .62, Y: -.3, Z: .05}), true, stage.Check{Reachable: true, Reach: "reachable; joint2 comes closest to its limit, 0.31 rad away", Way: "hand would pass 1.2 cm inside something at x 0.62, y -0.30, z 0.10", Hit: r3.Vec{X: .62, Y: -.3, Z: .1}, HasHit: true})
	dump(t, "ui_blocked", p.UI(blk, Overlay{}))
	un := staged(sn, topDown(r3.Vec{X: .75, Y: .3, Z: .2}), true, stage.Check{Reach: "joint4 would have to go 0.21 rad past its limit; the nearest reachable place is 4.2 cm short"})
	dump(t, "ui_unreachable", p.UI(un, Overlay{Salient: &r3.Vec{X: .64, Y: .1, Z: .04}}))
	dump(t, "ui_drag", p.UI(ok, Overlay{Drag: &Drag{.62, .4, .75, .55}}))
	dump(t, "ui_hover", p.UI(ok, Overlay{Crosshair: &Mark{.7, .62, "x 0.512  y 0.031  z 0.000 m"}}))
}

func TestLookRoom(t *testing.T) {
	p := newPainter(t, Options{})
	sn := room(t)
	t.Log("points", sn.Scene.Cloud.Len(), "spacing", spacing(sn.Scene.Cloud))
	dump(t, "head_rest", p.Head(sn, Overlay{}))
	dump(t, "wrist_rest", p.Wrist(sn, Overlay{}))
	ok := staged(sn, level(r3.Vec{X: 1.05, Y: 0, Z: .735}, .2), true, stage.Check{Reachable: true, Clear: true, Reach: "reachable; arm_joint comes closest to its limit, 0.06 m away", Way: "way clear: nearest thing 5 cm away"})
	ok.Mode = stage.ModePose
	h := p.ApproachHit(ok)
	t.Log("approach", h)
	dump(t, "head_ok", p.Head(ok, Overlay{RedDot: &Mark{.5, .5, ""}}))
	dump(t, "wrist_ok", p.Wrist(ok, Overlay{X: &h.Point}))
	beh := staged(sn, level(r3.Vec{X: 1.35, Y: .1, Z: .6}, .2), false, stage.Check{Reachable: true, Reach: "reachable", Way: "hand would pass 3.1 cm inside something at x 1.12, y 0.05, z 0.68", Hit: r3.Vec{X: 1.12, Y: .05, Z: .68}, HasHit: true})
	beh.Mode = stage.ModePose
	dump(t, "head_hidden", p.Head(beh, Overlay{Crosshair: &Mark{.6, .4, "offset"}}))
	dump(t, "wrist_closed", p.Wrist(beh, Overlay{}))
	nav := staged(sn, level(r3.Vec{X: .3, Y: .9, Z: .82}, 1.2), true, stage.Check{Reachable: true, Clear: true, Reach: "reachable", Way: "way clear: nearest thing 12 cm away"})
	nav.Mode, nav.BaseDelta = stage.ModeNav, geom.SE2{X: .25, Y: .15, Yaw: geom.Rad(35)}
	dump(t, "head_off", p.Head(nav, Overlay{}))
	dump(t, "map", p.NavMap(nav))
	dump(t, "wrist_off", p.Wrist(nav, Overlay{}))
}
