package mj

/*
#include "shim.h"
*/
import "C"

import "unsafe"

func f64(p *C.mjtNum, n int) []float64 { return unsafe.Slice((*float64)(unsafe.Pointer(p)), n) }

func at[T any](p *T, n C.int, i int) *T { return &unsafe.Slice(p, int(n))[i] }

// NQ is the number of position coordinates.
func (m *Model) NQ() int { return int(m.p.nq) }

// NV is the number of degrees of freedom.
func (m *Model) NV() int { return int(m.p.nv) }

// NU is the number of actuators.
func (m *Model) NU() int { return int(m.p.nu) }

// NBody is the number of bodies, the world among them.
func (m *Model) NBody() int { return int(m.p.nbody) }

// NGeom is the number of geoms.
func (m *Model) NGeom() int { return int(m.p.ngeom) }

// NJoint is the number of joints.
func (m *Model) NJoint() int { return int(m.p.njnt) }

// NCamera is the number of cameras.
func (m *Model) NCamera() int { return int(m.p.ncam) }

// Timestep is the length of one step in seconds.
func (m *Model) Timestep() float64 { return float64(m.p.opt.timestep) }

// JointType is how a joint moves.
type JointType int

// The joint types.
const (
	Free  JointType = C.mjJNT_FREE
	Ball  JointType = C.mjJNT_BALL
	Slide JointType = C.mjJNT_SLIDE
	Hinge JointType = C.mjJNT_HINGE
)

// JointInfo describes one joint.
type JointInfo struct {
	Name    string
	Type    JointType
	Body    int
	Qpos    int // index of its first position coordinate
	Dof     int // index of its first degree of freedom
	Limited bool
	Range   [2]float64
}

// JointInfo describes joint j.
func (m *Model) JointInfo(j int) JointInfo {
	n := m.p.njnt
	r := f64(m.p.jnt_range, 2*int(n))
	return JointInfo{
		Name: m.Name(Joint, j), Type: JointType(*at(m.p.jnt_type, n, j)), Body: int(*at(m.p.jnt_bodyid, n, j)),
		Qpos: int(*at(m.p.jnt_qposadr, n, j)), Dof: int(*at(m.p.jnt_dofadr, n, j)),
		Limited: *at(m.p.jnt_limited, n, j) != 0, Range: [2]float64{r[2*j], r[2*j+1]},
	}
}

// HardenLimit makes the stops of joint j as stiff as a time constant in seconds says; two time steps is the
// stiffest that is stable.
func (m *Model) HardenLimit(j int, timeconst float64) {
	r := f64(m.p.jnt_solref, C.mjNREF*m.NJoint())
	r[C.mjNREF*j], r[C.mjNREF*j+1] = timeconst, 1
}

// DofDamping is the viscous damping of each degree of freedom.
func (m *Model) DofDamping() []float64 { return f64(m.p.dof_damping, m.NV()) }

// GeomBody is the body that geom g is part of.
func (m *Model) GeomBody(g int) int { return int(*at(m.p.geom_bodyid, m.p.ngeom, g)) }

// GeomGroup is the visibility group of geom g.
func (m *Model) GeomGroup(g int) int { return int(*at(m.p.geom_group, m.p.ngeom, g)) }

// GeomSize is the three size numbers of geom g.
func (m *Model) GeomSize(g int) []float64 { return f64(m.p.geom_size, 3*m.NGeom())[3*g : 3*g+3] }

// BodyParent is the body that carries body b.
func (m *Model) BodyParent(b int) int { return int(*at(m.p.body_parentid, m.p.nbody, b)) }

// BodyMass is the mass of body b in kg.
func (m *Model) BodyMass(b int) float64 { return f64(m.p.body_mass, m.NBody())[b] }

// CameraInfo is where a camera sits and how wide it looks.
type CameraInfo struct {
	Body int
	Pos  [3]float64 // in the body's frame
	Quat [4]float64 // w, x, y, z; the camera looks along its -z with y up
	Fovy float64    // degrees
}

// CameraInfo describes camera c.
func (m *Model) CameraInfo(c int) CameraInfo {
	n := m.NCamera()
	return CameraInfo{
		Body: int(*at(m.p.cam_bodyid, m.p.ncam, c)), Fovy: f64(m.p.cam_fovy, n)[c],
		Pos:  [3]float64(f64(m.p.cam_pos, 3*n)[3*c : 3*c+3]),
		Quat: [4]float64(f64(m.p.cam_quat, 4*n)[4*c : 4*c+4]),
	}
}

// ActuatorLaw is an actuator's force as gain*ctrl + bias[0] + bias[1]*length + bias[2]*velocity.
type ActuatorLaw struct {
	Gain float64
	Bias [3]float64
}

// ActuatorLaw gives the law of actuator a (fixed gain, none or affine bias).
func (m *Model) ActuatorLaw(a int) ActuatorLaw {
	g := f64(m.p.actuator_gainprm, int(m.p.nu)*C.mjNGAIN)
	b := f64(m.p.actuator_biasprm, int(m.p.nu)*C.mjNBIAS)
	l := ActuatorLaw{Gain: g[a*C.mjNGAIN]}
	if *at(m.p.actuator_biastype, m.p.nu, a) == C.mjBIAS_AFFINE {
		copy(l.Bias[:], b[a*C.mjNBIAS:])
	}
	return l
}

// ActuatorForceRange is the force limit of actuator a; false when it has none.
func (m *Model) ActuatorForceRange(a int) ([2]float64, bool) {
	r := f64(m.p.actuator_forcerange, 2*m.NU())
	return [2]float64{r[2*a], r[2*a+1]}, *at(m.p.actuator_forcelimited, m.p.nu, a) != 0
}

// UnlimitCtrl lifts the control range of actuator a, for a caller that commands forces through it.
func (m *Model) UnlimitCtrl(a int) { *at(m.p.actuator_ctrllimited, m.p.nu, a) = 0 }

// SetOffscreen makes room for pictures of w x h before a Renderer is made.
func (m *Model) SetOffscreen(w, h int) {
	m.p.vis.global.offwidth = max(m.p.vis.global.offwidth, C.int(w))
	m.p.vis.global.offheight = max(m.p.vis.global.offheight, C.int(h))
}

// Time is the physics time in seconds.
func (d *Data) Time() float64 { return float64(d.v.d.time) }

// SetTime sets the physics time in seconds.
func (d *Data) SetTime(t float64) { d.v.d.time = C.mjtNum(t) }

// Qpos is the position, NQ numbers.
func (d *Data) Qpos() []float64 { return f64(d.v.d.qpos, d.M.NQ()) }

// Qvel is the velocity, NV numbers.
func (d *Data) Qvel() []float64 { return f64(d.v.d.qvel, d.M.NV()) }

// Qacc is the acceleration, NV numbers.
func (d *Data) Qacc() []float64 { return f64(d.v.d.qacc, d.M.NV()) }

// Ctrl is the controls, NU numbers.
func (d *Data) Ctrl() []float64 { return f64(d.v.d.ctrl, d.M.NU()) }

// Applied is the generalised force put on each degree of freedom from outside, NV numbers.
func (d *Data) Applied() []float64 { return f64(d.v.d.qfrc_applied, d.M.NV()) }

// Bias is gravity, Coriolis and centrifugal force, NV numbers.
func (d *Data) Bias() []float64 { return f64(d.v.d.qfrc_bias, d.M.NV()) }

// Constraint is the generalised force of contacts, limits and equalities, NV numbers.
func (d *Data) Constraint() []float64 { return f64(d.v.d.qfrc_constraint, d.M.NV()) }

// ActuatorLength is each actuator's length, NU numbers.
func (d *Data) ActuatorLength() []float64 { return f64(d.v.d.actuator_length, d.M.NU()) }

// ActuatorVelocity is each actuator's speed, NU numbers.
func (d *Data) ActuatorVelocity() []float64 { return f64(d.v.d.actuator_velocity, d.M.NU()) }

// ActuatorMoment is the moment arm of actuator a about each degree of freedom, NV numbers.
func (d *Data) ActuatorMoment(a int) []float64 {
	nv := d.M.NV()
	return f64(d.v.d.actuator_moment, d.M.NU()*nv)[a*nv : (a+1)*nv]
}

// BodyPos is the origin of body b in the world, metres.
func (d *Data) BodyPos(b int) []float64 { return f64(d.v.d.xpos, 3*d.M.NBody())[3*b : 3*b+3] }

// BodyQuat is the rotation of body b in the world: w, x, y, z.
func (d *Data) BodyQuat(b int) []float64 { return f64(d.v.d.xquat, 4*d.M.NBody())[4*b : 4*b+4] }

// GeomPos is the centre of geom g in the world, metres.
func (d *Data) GeomPos(g int) []float64 { return f64(d.v.d.geom_xpos, 3*d.M.NGeom())[3*g : 3*g+3] }

// SitePos is the origin of site s in the world, metres.
func (d *Data) SitePos(s int) []float64 {
	return f64(d.v.d.site_xpos, 3*int(d.M.p.nsite))[3*s : 3*s+3]
}

// SiteMat is the row-major rotation matrix of site s in the world.
func (d *Data) SiteMat(s int) []float64 {
	return f64(d.v.d.site_xmat, 9*int(d.M.p.nsite))[9*s : 9*s+9]
}

// NContact is the number of contacts.
func (d *Data) NContact() int { return int(d.v.d.ncon) }

// ContactInfo is one contact point.
type ContactInfo struct {
	Geom1, Geom2 int
	Dist         float64    // metres, negative when they overlap
	Pos          [3]float64 // world, metres
	Frame        [9]float64 // rows: normal from geom 1 to geom 2, two tangents
}

// Contact describes contact i of the last step.
func (d *Data) Contact(i int) ContactInfo {
	c := at(d.v.d.contact, d.v.d.ncon, i)
	out := ContactInfo{Geom1: int(c.geom1), Geom2: int(c.geom2), Dist: float64(c.dist)}
	copy(out.Pos[:], f64(&c.pos[0], 3))
	copy(out.Frame[:], f64(&c.frame[0], 9))
	return out
}

// ContactGeoms is which two geoms touch in contact i.
func (d *Data) ContactGeoms(i int) (geom1, geom2 int) {
	c := at(d.v.d.contact, d.v.d.ncon, i)
	return int(c.geom1), int(c.geom2)
}

// ContactForce is the force of contact i on geom 2 in the contact's frame: newtons along its rows.
func (d *Data) ContactForce(i int) ([3]float64, error) {
	var f [6]C.mjtNum
	err := d.result(C.vmj_contact_force(d.v, C.int(i), &f[0]))
	return [3]float64{float64(f[0]), float64(f[1]), float64(f[2])}, err
}
