// Package tf keeps the tree of coordinate frames that a ROS graph publishes on /tf and /tf_static, and answers where one
// frame is in another at a time: interpolated between two known times, never invented beyond them.
package tf

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"
)

// Transform is where Child is in Parent: it takes a point given in Child to the same point given in Parent. Metres; the
// rotation is a unit quaternion.
type Transform struct {
	Parent, Child string
	Time          time.Time // by the clock of who published it; zero when all links are static
	Translation   r3.Vec
	Rotation      quat.Number
	Static        bool // holds at all times
}

// Point takes a point from Child to Parent.
func (t Transform) Point(p r3.Vec) r3.Vec { return r3.Add(t.Translation, t.Direction(p)) }

// Direction takes a direction from Child to Parent: it turns, and does not move.
func (t Transform) Direction(d r3.Vec) r3.Vec { return r3.Rotation(t.Rotation).Rotate(d) }

// Inverse is where Parent is in Child.
func (t Transform) Inverse() Transform {
	back := quat.Conj(t.Rotation)
	t.Parent, t.Child = t.Child, t.Parent
	t.Translation = r3.Scale(-1, r3.Rotation(back).Rotate(t.Translation))
	t.Rotation = back
	return t
}

// Then is where the child of o is in t's parent; o's parent is t's child.
func (t Transform) Then(o Transform) Transform {
	return Transform{
		Parent: t.Parent, Child: o.Child, Time: t.Time, Static: t.Static && o.Static,
		Translation: t.Point(o.Translation), Rotation: unit(quat.Mul(t.Rotation, o.Rotation)),
	}
}

func unit(q quat.Number) quat.Number { return quat.Scale(1/quat.Abs(q), q) }

// offUnit is how far the square of a quaternion's length may be off 1, for rounding on the way; tf2 allows as much.
const offUnit = 0.01

// check refuses what is no transform.
func (t Transform) check() error {
	if t.Parent == "" || t.Child == "" {
		return fmt.Errorf("a transform from %q to %q: a frame has no name", t.Parent, t.Child)
	}
	if t.Parent == t.Child {
		return fmt.Errorf("frame %s cannot be its own parent", t.Child)
	}
	q, v := t.Rotation, t.Translation
	for _, x := range []float64{v.X, v.Y, v.Z, q.Real, q.Imag, q.Jmag, q.Kmag} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("the transform from %s to %s holds a number that is none: translation %v, rotation %v", t.Parent, t.Child, v, q)
		}
	}
	if n := q.Real*q.Real + q.Imag*q.Imag + q.Jmag*q.Jmag + q.Kmag*q.Kmag; math.Abs(n-1) > offUnit {
		return fmt.Errorf("the rotation from %s to %s is no unit quaternion: its length is %.4g, not 1", t.Parent, t.Child, math.Sqrt(n))
	}
	return nil
}

// between is the transform at the fraction f of the way from a to b: the translation on a line, the rotation by the
// shorter way at an even rate.
func between(a, b Transform, f float64) Transform {
	out := a
	out.Translation = r3.Add(a.Translation, r3.Scale(f, r3.Sub(b.Translation, a.Translation)))
	out.Rotation = slerp(a.Rotation, b.Rotation, f)
	return out
}

func slerp(a, b quat.Number, f float64) quat.Number {
	dot := a.Real*b.Real + a.Imag*b.Imag + a.Jmag*b.Jmag + a.Kmag*b.Kmag
	if dot < 0 { // the same rotation by its other sign is nearer
		b, dot = quat.Scale(-1, b), -dot
	}
	u, v := 1-f, f
	if dot < 1-1e-9 {
		angle := math.Acos(dot)
		u, v = math.Sin((1-f)*angle)/math.Sin(angle), math.Sin(f*angle)/math.Sin(angle)
	}
	return unit(quat.Add(quat.Scale(u, a), quat.Scale(v, b)))
}
