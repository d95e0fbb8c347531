package safety

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// Span is [least, most].
type Span [2]float64

// Box bounds a point on three axes, metres.
type Box struct {
	X Span `yaml:"x"`
	Y Span `yaml:"y"`
	Z Span `yaml:"z"`
}

// outside is how far the finite p lies outside the box: the largest excess of any axis, and that axis; 0 inside.
func (b *Box) outside(p r3.Vec) (excess float64, axis int) {
	for k, x := range [3]float64{p.X, p.Y, p.Z} {
		s := b.span(k)
		if e := max(s[0]-x, x-s[1]); e > excess {
			excess, axis = e, k
		}
	}
	return excess, axis
}

func (b *Box) span(axis int) Span { return [3]Span{b.X, b.Y, b.Z}[axis] }

// Margins are the least distances in metres between the robot and what the sensors see. They must cover the
// sensors' noise, the accuracy of the capsules and 5 mm for what happens between two samples of a sweep.
type Margins struct {
	Arm    float64 `yaml:"arm"`    // nearer refuses
	Base   float64 `yaml:"base"`   // nearer refuses
	Hand   float64 `yaml:"hand"`   // nearer refuses
	Finger float64 `yaml:"finger"` // nearer warns
	Held   float64 `yaml:"held"`   // nearer warns
}

// of is the margin of a class of links, and whether being nearer refuses.
func (m *Margins) of(c robot.LinkClass) (margin float64, refuses bool) {
	switch c {
	case robot.ClassBase:
		return m.Base, true
	case robot.ClassHand:
		return m.Hand, true
	case robot.ClassFinger:
		return m.Finger, false
	case robot.ClassHeld:
		return m.Held, false
	default:
		return m.Arm, true
	}
}

// Limits are the operator's. No tool changes them. SI units and radians.
type Limits struct {
	ToolBox *Box         `yaml:"tool_box"` // where the closure point may go, base frame; nil: anywhere
	KeepIn  [][2]float64 `yaml:"keep_in"`  // polygon for the base's origin, odometry frame; empty: anywhere

	JointMargin float64 `yaml:"joint_margin"` // radians kept from a revolute joint's limit
	SlideMargin float64 `yaml:"slide_margin"` // metres kept from a prismatic joint's limit

	SpeedScale float64 `yaml:"speed_scale"` // share of the joints' and the base's own speed limits, over 0 to 1
	ToolSpeed  float64 `yaml:"tool_speed"`  // metres per second
	ToolTurn   float64 `yaml:"tool_turn"`   // radians per second
	BaseSpeed  float64 `yaml:"base_speed"`  // metres per second
	BaseTurn   float64 `yaml:"base_turn"`   // radians per second

	Clearance   Margins `yaml:"clearance"`
	FloorHeight float64 `yaml:"floor_height"` // a mobile base ignores what is lower than this above z = 0
	SceneNoise  float64 `yaml:"scene_noise"`  // margins shrink by this at execute, so that noise alone refuses nothing

	StateAge time.Duration `yaml:"state_age"` // oldest joint state that may move
	SceneAge time.Duration `yaml:"scene_age"` // oldest scene that a motion is checked in
	Motion   time.Duration `yaml:"motion"`    // longest motion, from the call
	StopTime time.Duration `yaml:"stop_time"` // longest stop ladder before standstill counts as not confirmed

	StartDist float64 `yaml:"start_dist"` // the tool may have moved this far since the plan was made
	StartTurn float64 `yaml:"start_turn"` // and turned this far
	RestSpeed float64 `yaml:"rest_speed"` // slower than this, per second, is standstill
}

// DefaultLimits suit m when nothing is known of the room: no box, no polygon, modest speeds.
func DefaultLimits(m *robot.Model) Limits {
	l := Limits{
		JointMargin: 0.005, SpeedScale: 1, ToolSpeed: 0.6, ToolTurn: 2, BaseSpeed: 0.4, BaseTurn: 0.8,
		Clearance:   Margins{Arm: 0.02, Base: 0.04, Hand: 0.01, Finger: 0.003, Held: 0.003},
		FloorHeight: 0.05, SceneNoise: 0.006,
		StateAge: 200 * time.Millisecond, SceneAge: time.Second, Motion: 30 * time.Second, StopTime: 4 * time.Second,
		StartDist: 0.005, StartTurn: geom.Rad(0.5), RestSpeed: 0.02,
	}
	if m.Mobile {
		l.Clearance.Arm, l.SceneNoise = 0.03, 0.015
	}
	return l
}

// Validate names the first limit that makes no sense. NaN never passes.
func (l *Limits) Validate() error {
	for _, c := range []struct {
		name      string
		v, lo, hi float64
		unit      string
	}{
		{"joint_margin", l.JointMargin, 0, 0.5, "rad"},
		{"slide_margin", l.SlideMargin, 0, 0.1, "m"},
		{"speed_scale", l.SpeedScale, 0.01, 1, ""},
		{"tool_speed", l.ToolSpeed, 0.01, 2, "m/s"},
		{"tool_turn", l.ToolTurn, 0.01, 6, "rad/s"},
		{"base_speed", l.BaseSpeed, 0.01, 1, "m/s"},
		{"base_turn", l.BaseTurn, 0.01, 3, "rad/s"},
		{"clearance.arm", l.Clearance.Arm, 0.005, 0.5, "m"},
		{"clearance.base", l.Clearance.Base, 0.005, 0.5, "m"},
		{"clearance.hand", l.Clearance.Hand, 0, 0.5, "m"},
		{"clearance.finger", l.Clearance.Finger, 0, 0.5, "m"},
		{"clearance.held", l.Clearance.Held, 0, 0.5, "m"},
		{"floor_height", l.FloorHeight, 0, 0.15, "m"},
		{"scene_noise", l.SceneNoise, 0, 0.05, "m"},
		{"state_age", l.StateAge.Seconds(), 0.01, 0.25, "s"},
		{"scene_age", l.SceneAge.Seconds(), 0.05, 60, "s"},
		{"motion", l.Motion.Seconds(), 0.1, 30, "s"},
		{"stop_time", l.StopTime.Seconds(), 0.5, 5, "s"},
		{"start_dist", l.StartDist, 0.001, 0.02, "m"},
		{"start_turn", l.StartTurn, 0.001, 0.05, "rad"},
		{"rest_speed", l.RestSpeed, 0.001, 0.05, "per second"},
	} {
		if !(c.v >= c.lo && c.v <= c.hi) {
			return fmt.Errorf("%s: got %g %s, must be between %g and %g %s", c.name, c.v, c.unit, c.lo, c.hi, c.unit)
		}
	}
	return l.validatePlaces()
}

func (l *Limits) validatePlaces() error {
	if l.ToolBox != nil {
		for k := range 3 {
			if s := l.ToolBox.span(k); !(s[0] < s[1] && s[0] >= -10 && s[1] <= 10) {
				return fmt.Errorf("tool_box.%c: got [%g, %g], must be [least, most] in metres within 10 m", 'x'+rune(k), s[0], s[1])
			}
		}
	}
	if n := len(l.KeepIn); n == 1 || n == 2 {
		return fmt.Errorf("keep_in: got %d corners, a polygon needs at least 3", n)
	}
	for i, p := range l.KeepIn {
		if !(math.Abs(p[0]) <= 1000 && math.Abs(p[1]) <= 1000) {
			return fmt.Errorf("keep_in: corner %d is [%g, %g], must be metres within 1000 m", i+1, p[0], p[1])
		}
	}
	return nil
}

// polygonOutside is how far (x, y) lies outside the polygon, in metres; 0 inside or without a polygon.
func polygonOutside(poly [][2]float64, x, y float64) float64 {
	if len(poly) == 0 {
		return 0
	}
	inside, near := false, math.Inf(1)
	for i, a := range poly {
		b := poly[(i+1)%len(poly)]
		if (a[1] > y) != (b[1] > y) && x < a[0]+(y-a[1])/(b[1]-a[1])*(b[0]-a[0]) {
			inside = !inside
		}
		edge := geom.Capsule{A: r3.Vec{X: a[0], Y: a[1]}, B: r3.Vec{X: b[0], Y: b[1]}}
		near = math.Min(near, edge.Dist(r3.Vec{X: x, Y: y}))
	}
	if inside {
		return 0
	}
	return near
}
