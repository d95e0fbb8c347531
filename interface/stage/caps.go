package stage

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/safety"
)

// capTolerance forgives the last bits of a sum: .3 + .2 is within .5.
const capTolerance = 1e-9

// Caps are the bounds of the edits: metres, radians, seconds, whole steps. They come from the operator's file.
type Caps struct {
	// 3D face, per call.
	Translate  float64 // each axis of Translate
	Rotate     float64 // RotateGizmo
	Steps      int     // Advance and ZoomBy, in size
	OrbitStep  float64 // each angle of OrbitBy
	PanStep    float64 // each axis of PanBy
	ZoomMin    float64 // camera distance
	ZoomMax    float64
	Travel3D   float64 // operator's cap on the target's distance from the real gripper; 0 is none
	RobotStep  float64 // 2D: each axis of TranslateRobot
	WristStep  float64 // 2D: each axis of TranslateWrist
	WristTurn  float64 // 2D: each angle of RotateWrist
	Travel     float64 // 2D: net distance of the target from the real gripper
	NavStep    float64 // 2D: each axis of NavTranslate
	NavTurn    float64 // 2D: angle of NavRotate
	NavTravel  float64 // 2D: net staged base displacement
	NavHeading float64 // 2D: net staged base turn
	Motion     time.Duration
}

// DefaultCaps are the contract's bounds.
func DefaultCaps() Caps {
	return Caps{
		Translate: 0.1, Rotate: geom.Rad(90), Steps: 50, OrbitStep: geom.Rad(45), PanStep: 0.2, ZoomMin: 0.1, ZoomMax: 3,
		RobotStep: 0.5, WristStep: 0.2, WristTurn: geom.Rad(45), Travel: 1.5,
		NavStep: 0.5, NavTurn: geom.Rad(90), NavTravel: 0.5, NavHeading: geom.Rad(90), Motion: 30 * time.Second,
	}
}

// within refuses a value whose size is over limit; NaN fails.
func within(name string, v, limit float64, unit unit) *safety.Refused {
	if v >= -limit-capTolerance && v <= limit+capTolerance {
		return nil
	}
	return &safety.Refused{
		Rule:  name + " out of range",
		Value: unit.of(v), Limit: "-" + unit.of(limit) + " to " + unit.of(limit),
		Next: "Use a smaller value and call again for more.",
	}
}

// axes refuses a vector with a component over limit, or without any component.
func axes(names [3]string, v r3.Vec, limit float64) *safety.Refused {
	c := [3]float64{v.X, v.Y, v.Z}
	var used []string
	for i, n := range names {
		if n == "" {
			continue
		}
		used = append(used, n)
		if r := within(n, c[i], limit, meters); r != nil {
			return r
		}
	}
	if v == (r3.Vec{}) {
		return zero(used...)
	}
	return nil
}

func zero(names ...string) *safety.Refused {
	return &safety.Refused{
		Rule: "an edit needs a change", Value: strings.Join(names, " = ") + " = 0",
		Limit: "at least one not zero", Next: "Give " + strings.Join(names, " or ") + " a value.",
	}
}

func stepCount(steps, most int) *safety.Refused {
	if steps != 0 && steps >= -most && steps <= most {
		return nil
	}
	return &safety.Refused{
		Rule: "steps out of range", Value: strconv.Itoa(steps), Limit: fmt.Sprintf("1 to %d in size, whole", most),
		Next: "Use a count in that range and call again for more.",
	}
}

type unit int

const (
	meters unit = iota
	degrees
)

// of prints metres, or radians as degrees: plain decimals, no exponent, no minus zero.
func (u unit) of(v float64) string {
	if u == degrees {
		return number(geom.Deg(v)) + " deg"
	}
	return number(v) + " m"
}

// seconds prints a duration to the tenth of a second, without what is zero.
func seconds(d time.Duration) string {
	return number(math.Round(d.Seconds()*10)/10) + " s"
}

func number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', 6, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}
