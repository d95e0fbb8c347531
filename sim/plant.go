package sim

import (
	"fmt"
	"math"
	"sync"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/sim/mj"
	"viad/sim/model"
)

// plant is one simulation: a model, its live data, and where the robot's parts are in it.
type plant struct {
	meta  *model.Model
	shape *shared // the compiled model, shared with forks and the renderer
	m     *mj.Model
	d     *mj.Data
	dt    int64 // nanoseconds per step

	axes   []axis
	jaw    axis
	tool   int       // site
	odom   geom.Pose // takes world coordinates to the odometry frame
	body   []part    // per body: what it is
	free   []int     // joints of loose objects
	vec    []float64 // scratch, NV
	res    []float64
	sawMax []float64 // largest speed seen per axis, for Truth
}

// axis is a driven coordinate in the simulation.
type axis struct {
	spec axisSpec
	qpos []int
	dof  []int
	coef []float64 // dq/dx of each joint
	act  int
	law  mj.ActuatorLaw
	arm  float64 // force on the coordinate per unit of actuator force
	lo   float64
	hi   float64

	slides bool    // metres, not radians
	effort float64 // force of the last step
}

// part says whose a body is, for the force estimate.
type part int

const (
	partOther part = iota
	partArm
	partHand
	partFinger
	partLoose
)

// newPlant compiles the world and finds the robot in it.
func newPlant(mc *machine, meta *model.Model) (*plant, error) {
	m, err := mj.Load(meta.XML)
	if err != nil {
		return nil, err
	}
	for _, c := range meta.Cameras {
		m.SetOffscreen(c.Intrinsics.W, c.Intrinsics.H)
	}
	shape := &shared{m: m, refs: 1}
	p, err := attach(mc, meta, shape)
	if err != nil {
		shape.release()
		return nil, err
	}
	return p, nil
}

// attach makes a plant with data of its own over a model that is already compiled.
func attach(mc *machine, meta *model.Model, shape *shared) (*plant, error) {
	d, err := shape.m.NewData()
	if err != nil {
		return nil, err
	}
	p := &plant{meta: meta, shape: shape, m: shape.m, d: d, dt: int64(math.Round(shape.m.Timestep() * 1e9))}
	p.vec, p.res = make([]float64, p.m.NV()), make([]float64, p.m.NV())
	if err := p.locate(mc); err != nil {
		d.Close()
		return nil, err
	}
	return p, nil
}

func (p *plant) close() {
	p.d.Close()
	p.shape.release()
}

func (p *plant) locate(mc *machine) error {
	if err := p.d.Forward(); err != nil {
		return err
	}
	joints := map[string]mj.JointInfo{}
	for j := range p.m.NJoint() {
		info := p.m.JointInfo(j)
		joints[info.Name] = info
		if info.Type == mj.Free {
			p.free = append(p.free, j)
		}
	}
	for _, s := range mc.axes {
		a, err := p.bind(s, joints)
		if err != nil {
			return err
		}
		p.axes = append(p.axes, a)
	}
	var err error
	p.jaw, err = p.bind(axisSpec{name: "jaw", joint: mc.jaw.joint, force: mc.jaw.force}, joints)
	if err != nil {
		return err
	}
	for _, n := range mc.jaw.joint {
		p.m.HardenLimit(p.m.ID(mj.Joint, n), 2*p.m.Timestep()) // the stops of a jaw that closes on nothing
	}
	p.sawMax = make([]float64, len(p.axes))
	if p.tool = p.m.ID(mj.Site, p.meta.Tool); p.tool < 0 {
		return fmt.Errorf("twin: the model has no site %s", p.meta.Tool)
	}
	p.odom = p.meta.Odom.Inv()
	p.sort(mc)
	return p.home()
}

// bind finds a coordinate's joints and the one actuator that drives them and nothing else.
func (p *plant) bind(s axisSpec, joints map[string]mj.JointInfo) (axis, error) {
	a := axis{spec: s, act: -1}
	mine := map[int]bool{}
	for _, n := range s.joint {
		j, ok := joints[n]
		if !ok {
			return a, fmt.Errorf("twin: the model has no joint %s", n)
		}
		a.qpos, a.dof = append(a.qpos, j.Qpos), append(a.dof, j.Dof)
		a.coef = append(a.coef, 1/float64(len(s.joint)))
		mine[j.Dof] = true
		a.slides = j.Type == mj.Slide
		if j.Limited {
			a.lo, a.hi = a.lo+j.Range[0], a.hi+j.Range[1]
		} else {
			a.lo, a.hi = math.Inf(-1), math.Inf(1)
		}
	}
	for u := range p.m.NU() {
		only, arm := true, 0.0
		for dof, r := range p.d.ActuatorMoment(u) {
			only = only && (r == 0 || mine[dof])
		}
		for i, dof := range a.dof {
			arm += p.d.ActuatorMoment(u)[dof] * a.coef[i]
		}
		if only && arm != 0 {
			a.act, a.arm, a.law = u, arm, p.m.ActuatorLaw(u)
		}
	}
	if a.act < 0 || a.law.Gain == 0 {
		return a, fmt.Errorf("twin: no actuator drives %s", s.name)
	}
	if r, limited := p.m.ActuatorForceRange(a.act); limited {
		a.spec.force = math.Min(a.spec.force, math.Abs(r[1]*a.arm))
	}
	p.m.UnlimitCtrl(a.act) // the servo below commands forces, through whatever law the actuator has
	return a, nil
}

// x is the coordinate's position and speed.
func (a *axis) x(q, v []float64) (x, xd float64) {
	n := float64(len(a.qpos))
	for i := range a.qpos {
		x += q[a.qpos[i]] / a.coef[i] / n
		xd += v[a.dof[i]] / a.coef[i] / n
	}
	return x, xd
}

// place puts the coordinate at x.
func (a *axis) place(q []float64, x float64) {
	for i := range a.qpos {
		q[a.qpos[i]] = a.coef[i] * x
	}
}

// push commands a generalised force on the coordinate, within its drive's limit.
func (a *axis) push(d *mj.Data, force float64) {
	force = clamp(force, a.spec.force)
	a.effort = force
	f := force / a.arm
	l := a.law
	d.Ctrl()[a.act] = (f - l.Bias[0] - l.Bias[1]*d.ActuatorLength()[a.act] - l.Bias[2]*d.ActuatorVelocity()[a.act]) / l.Gain
}

func clamp(v, m float64) float64 { return math.Max(-m, math.Min(m, v)) }

// sort says whose each body is.
func (p *plant) sort(mc *machine) {
	p.body = make([]part, p.m.NBody())
	hand, finger := map[string]bool{}, map[int]bool{}
	for _, n := range mc.hand {
		hand[n] = true
	}
	for j := range p.m.NJoint() {
		info := p.m.JointInfo(j)
		for _, n := range mc.jaw.joint {
			if info.Name == n {
				finger[info.Body] = true
			}
		}
		if info.Type == mj.Free {
			p.body[info.Body] = partLoose
		}
	}
	root := p.m.ID(mj.Body, "link0")
	if mc.mobile {
		root = p.m.ID(mj.Body, "base_footprint")
	}
	for b := 1; b < len(p.body); b++ {
		up := p.m.BodyParent(b)
		switch {
		case p.body[b] == partLoose || p.body[up] == partLoose:
			p.body[b] = partLoose
		case finger[b] || p.body[up] == partFinger:
			p.body[b] = partFinger
		case hand[p.m.Name(mj.Body, b)] || p.body[up] == partHand:
			p.body[b] = partHand
		case b == root || p.body[up] == partArm:
			p.body[b] = partArm
		}
	}
}

// home puts the robot into its start posture.
func (p *plant) home() error {
	q := p.d.Qpos()
	first := len(p.axes) - len(p.meta.Joints)
	if first < 0 {
		return fmt.Errorf("twin: the model has %d joints, the robot %d", len(p.meta.Joints), len(p.axes))
	}
	for i, j := range p.meta.Joints {
		if got := p.axes[first+i].spec.name; got != j.Name {
			return fmt.Errorf("twin: joint %d is %s in the model and %s in the robot", i, j.Name, got)
		}
		p.axes[first+i].place(q, j.Home)
	}
	p.jaw.place(q, p.meta.Jaw.Home)
	return p.d.Forward()
}

func (p *plant) bodyPose(b int) geom.Pose {
	return poseOf(p.d.BodyPos(b), p.d.BodyQuat(b))
}

func poseOf(x, q []float64) geom.Pose {
	return geom.Pose{P: r3.Vec{X: x[0], Y: x[1], Z: x[2]}, R: geom.Normalize(quat.Number{Real: q[0], Imag: q[1], Jmag: q[2], Kmag: q[3]})}
}

// toolPose is the closure point in the world.
func (p *plant) toolPose() geom.Pose {
	x, r := p.d.SitePos(p.tool), p.d.SiteMat(p.tool)
	return geom.Pose{P: r3.Vec{X: x[0], Y: x[1], Z: x[2]}, R: geom.FromAxes(r3.Vec{X: r[0], Y: r[3], Z: r[6]}, r3.Vec{X: r[1], Y: r[4], Z: r[7]})}
}

// shared is a compiled model with its users: the plant, forks and the renderer's copy.
type shared struct {
	m    *mj.Model
	mu   sync.Mutex
	refs int
}

func (s *shared) retain() *shared {
	s.mu.Lock()
	s.refs++
	s.mu.Unlock()
	return s
}

func (s *shared) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs--; s.refs == 0 {
		s.m.Close()
	}
}
