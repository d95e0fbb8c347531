package sim

import (
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/sim/mj"
)

// Truth is what only the assertions of tests may know. Poses are in the odometry frame.
type Truth struct {
	Time     time.Time
	Objects  map[string]geom.Pose // loose bodies
	Joints   map[string]float64   // every sliding or turning joint of the model, furniture too
	Q        []float64            // the robot's joints in State.Q order, exact
	Tool     geom.Pose
	Base     geom.SE2
	Aperture float64
	Contacts []Contact
	// MaxSpeed is the largest speed of each joint since the last reset, by name, per second.
	MaxSpeed map[string]float64
}

// Contact is two bodies that touch.
type Contact struct {
	A, B  string  // body names; the world's own geoms belong to "world"
	Force float64 // newtons
	At    r3.Vec
}

// Truth looks behind the sensors.
func (t *Twin) Truth() Truth {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return Truth{}
	}
	p := t.p
	out := Truth{
		Time: t.clk.Now(), Objects: map[string]geom.Pose{}, Joints: map[string]float64{}, MaxSpeed: map[string]float64{},
		Tool: p.odom.Mul(p.toolPose()),
	}
	q, v := p.d.Qpos(), p.d.Qvel()
	for j := range p.m.NJoint() {
		switch info := p.m.JointInfo(j); info.Type {
		case mj.Free:
			x := q[info.Qpos : info.Qpos+7]
			out.Objects[p.m.Name(mj.Body, info.Body)] = p.odom.Mul(poseOf(x[:3], x[3:]))
		case mj.Slide, mj.Hinge:
			out.Joints[info.Name] = q[info.Qpos]
		default: // no ball joints here
		}
	}
	for i := range p.axes {
		x, _ := p.axes[i].x(q, v)
		out.MaxSpeed[p.axes[i].spec.name] = p.sawMax[i]
		switch {
		case !t.mach.mobile || i > 2:
			out.Q = append(out.Q, x)
		case i == 0:
			out.Base.X = x
		case i == 1:
			out.Base.Y = x
		default:
			out.Base.Yaw = x
		}
	}
	out.Aperture, _ = p.jaw.x(q, v)
	for i := range p.d.NContact() {
		c := p.d.Contact(i)
		out.Contacts = append(out.Contacts, Contact{
			A: p.m.Name(mj.Body, p.m.GeomBody(c.Geom1)), B: p.m.Name(mj.Body, p.m.GeomBody(c.Geom2)),
			Force: r3.Norm(p.contactForce(i, c.Frame)), At: p.odom.Point(r3.Vec{X: c.Pos[0], Y: c.Pos[1], Z: c.Pos[2]}),
		})
	}
	return out
}
