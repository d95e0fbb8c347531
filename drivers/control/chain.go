package control

import (
	"fmt"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// maxDOF bounds the arrays of the inner loops.
const maxDOF = 8

// chain is the serial arm from the base to the tool with fixed parts folded together: tool = the product
// of fixed[i] motion[i], then end.
type chain struct {
	n         int
	fixed     [maxDOF]frame
	axis      [maxDOF]r3.Vec
	prismatic [maxDOF]bool
	end       frame
}

// jacobian columns: translation of the tool, and rotation, per joint, in the base's axes.
type jacobian struct {
	n    int
	v, w [maxDOF]r3.Vec
}

var unit = frame{x: r3.Vec{X: 1}, y: r3.Vec{Y: 1}, z: r3.Vec{Z: 1}}

// buildChain folds the links from root to tool. Links that share a drive (the stages of a telescope) must
// follow each other along one axis with only fixed parts between them: they become one joint.
func (k *Kinematics) buildChain() error {
	var path []int
	for i := k.tool; k.links[i].parent >= 0; i = k.links[i].parent {
		path = append(path, i)
	}
	c := chain{n: len(k.model.Joints), end: unit}
	if c.n > maxDOF {
		return fmt.Errorf("%s: %d joints, planning is built for %d", k.desc.Name, c.n, maxDOF)
	}
	next := 0
	for i := len(path) - 1; i >= 0; i-- {
		l := k.links[path[i]]
		c.end = c.end.mul(l.origin)
		switch {
		case l.drive < 0:
		case l.drive == next && next < c.n:
			c.fixed[next], c.axis[next], c.prismatic[next] = c.end, l.axis, l.prismatic
			c.end = unit
			next++
		case l.drive == next-1 && l.prismatic && r3.Norm(r3.Sub(c.end.dir(l.axis), c.axis[l.drive])) < 1e-9:
		default:
			return fmt.Errorf("%s: joint of link %q is out of order on the way to the tool", k.desc.Name, l.name)
		}
	}
	if next != c.n {
		return fmt.Errorf("%s: only %d of %d joints lie between base and tool", k.desc.Name, next, c.n)
	}
	k.chain = c
	return nil
}

func (c *chain) motion(i int, q float64) frame {
	if c.prismatic[i] {
		f := unit
		f.p = r3.Scale(q, c.axis[i])
		return f
	}
	return turned(c.axis[i], q)
}

// forward is the tool in the base frame.
func (c *chain) forward(q []float64) frame {
	f := unit
	for i := range c.n {
		f = f.mul(c.fixed[i]).mul(c.motion(i, q[i]))
	}
	return f.mul(c.end)
}

// derive is the tool in the base frame and how it moves with each joint.
func (c *chain) derive(q *[maxDOF]float64, j *jacobian) frame {
	j.n = c.n
	var at [maxDOF]r3.Vec
	f := unit
	for i := range c.n {
		f = f.mul(c.fixed[i])
		j.w[i], at[i] = f.dir(c.axis[i]), f.p
		f = f.mul(c.motion(i, q[i]))
	}
	f = f.mul(c.end)
	for i := range c.n {
		if c.prismatic[i] {
			j.v[i], j.w[i] = j.w[i], r3.Vec{}
			continue
		}
		j.v[i] = r3.Cross(j.w[i], r3.Sub(f.p, at[i]))
	}
	return f
}

// Jacobian is how the tool moves with each joint in the odometry frame, base at rest: column i holds the
// translation in metres and the rotation in radians per radian or metre of joint i. Nil when q is not the
// model's length.
func (k *Kinematics) Jacobian(base geom.SE2, q []float64) (v, w []r3.Vec) {
	if len(q) != k.chain.n {
		return nil, nil
	}
	var a [maxDOF]float64
	copy(a[:], q)
	var j jacobian
	k.chain.derive(&a, &j)
	f := baseFrame(base)
	for i := range k.chain.n {
		v, w = append(v, f.dir(j.v[i])), append(w, f.dir(j.w[i]))
	}
	return v, w
}
