package launch

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// A quantity in a launch file is a number and a unit in one word or two: 5 mm, 0.25 m/s, 200ms. A bare
// number is refused, because a bare number is how a limit in millimetres becomes one in metres.

// Length is metres; written in mm, cm or m.
type Length float64

// Angle is radians; written in deg or rad.
type Angle float64

// Speed is metres per second; written in mm/s, cm/s or m/s.
type Speed float64

// Turn is radians per second; written in deg/s or rad/s.
type Turn float64

// Rate is cycles per second; written in Hz.
type Rate float64

// Ratio is a share of one; written in % or as a bare fraction with the unit "x", as in 0.5x.
type Ratio float64

// Force is newtons; written in N.
type Force float64

// Duration is written in ms, s, min or h.
type Duration time.Duration

// Size is bytes; written in B, KiB, MiB or GiB.
type Size int64

// unit is one spelling of a unit and its worth in the inside unit.
type unit struct {
	name  string
	worth float64
}

// quantity says how one kind of value is written.
type quantity struct {
	what    string // "a length"
	example string // "0.1 m"
	units   []unit
}

func lengthQ() quantity {
	return quantity{"a length", "0.1 m", []unit{{"mm", 1e-3}, {"cm", 1e-2}, {"m", 1}}}
}

func angleQ() quantity {
	return quantity{"an angle", "45 deg", []unit{{"deg", math.Pi / 180}, {"rad", 1}}}
}

func speedQ() quantity {
	return quantity{"a speed", "0.25 m/s", []unit{{"mm/s", 1e-3}, {"cm/s", 1e-2}, {"m/s", 1}}}
}

func turnQ() quantity {
	return quantity{"a turning speed", "60 deg/s", []unit{{"deg/s", math.Pi / 180}, {"rad/s", 1}}}
}

func rateQ() quantity { return quantity{"a rate", "5 Hz", []unit{{"Hz", 1}}} }

func ratioQ() quantity { return quantity{"a share", "50 %", []unit{{"%", 0.01}, {"x", 1}}} }

func forceQ() quantity { return quantity{"a force", "20 N", []unit{{"N", 1}}} }

func durationQ() quantity {
	return quantity{"a time", "30 s", []unit{{"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}}}
}

func sizeQ() quantity {
	return quantity{"a size", "2 GiB", []unit{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}}
}

func (q quantity) names() string {
	s := make([]string, len(q.units))
	for i, u := range q.units {
		s[i] = u.name
	}
	return strings.Join(s, ", ")
}

// parse is the value of s in the inside unit.
func (q quantity) parse(s string) (float64, error) {
	cut := strings.LastIndexAny(s, "0123456789.") + 1
	number, name := strings.TrimSpace(s[:cut]), strings.TrimSpace(s[cut:])
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v-v != 0 {
		return 0, fmt.Errorf("%q is not %s: write a number and a unit (%s), for example %s", s, q.what, q.names(), q.example)
	}
	for _, u := range q.units {
		if u.name == name {
			return v * u.worth, nil
		}
	}
	if name == "" {
		return 0, fmt.Errorf("%q has no unit: %s needs one of %s, for example %s", s, q.what, q.names(), q.example)
	}
	return 0, fmt.Errorf("%q has the unit %q, which is not one of %s: write %s as, for example, %s", s, name, q.names(), q.what, q.example)
}

// decode reads one scalar node; the error points at it.
func (q quantity) decode(n ast.Node) (float64, error) {
	var text string
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		text = n.GetToken().Value
	default:
		return 0, at(n, fmt.Sprintf("this must be %s, for example %s", q.what, q.example))
	}
	v, err := q.parse(text)
	if err != nil {
		return 0, at(n, err.Error())
	}
	return v, nil
}

// at is an error that shows the line and a caret below n.
func at(n ast.Node, sentence string) error {
	return &yaml.SyntaxError{Message: sentence, Token: n.GetToken()}
}

// UnmarshalYAML reads a number with a unit.
func (v *Length) UnmarshalYAML(n ast.Node) error { return set(v, lengthQ(), n) }

// UnmarshalYAML reads a number with a unit.
func (v *Angle) UnmarshalYAML(n ast.Node) error { return set(v, angleQ(), n) }

// UnmarshalYAML reads a number with a unit.
func (v *Speed) UnmarshalYAML(n ast.Node) error { return set(v, speedQ(), n) }

// UnmarshalYAML reads a number with a unit.
func (v *Turn) UnmarshalYAML(n ast.Node) error { return set(v, turnQ(), n) }

// UnmarshalYAML reads a number with a unit.
func (v *Rate) UnmarshalYAML(n ast.Node) error { return set(v, rateQ(), n) }

// UnmarshalYAML reads a number with a unit.
func (v *Ratio) UnmarshalYAML(n ast.Node) error { return set(v, ratioQ(), n) }

// UnmarshalYAML reads a number with a unit.
func (v *Force) UnmarshalYAML(n ast.Node) error { return set(v, forceQ(), n) }

func set[T ~float64](v *T, q quantity, n ast.Node) error {
	x, err := q.decode(n)
	if err == nil {
		*v = T(x)
	}
	return err
}

// UnmarshalYAML reads a number with a unit.
func (v *Duration) UnmarshalYAML(n ast.Node) error {
	x, err := durationQ().decode(n)
	if err != nil {
		return err
	}
	if math.Abs(x) > 1e9 {
		return at(n, "a time of over 30 years is not meant")
	}
	*v = Duration(math.Round(x * 1e9))
	return nil
}

// D is the standard library's duration.
func (v Duration) D() time.Duration { return time.Duration(v) }

// UnmarshalYAML reads a number with a unit.
func (v *Size) UnmarshalYAML(n ast.Node) error {
	x, err := sizeQ().decode(n)
	if err != nil {
		return err
	}
	if x < 0 || x > 1<<60 {
		return at(n, "a size is between 0 B and 1 EiB")
	}
	*v = Size(x)
	return nil
}
