// Package mj binds MuJoCo 2.2.2 (Debian's libmujoco2.2.2), opened by dlopen when first asked for.
//
// MuJoCo's own answer to an error is to write a log file, wait for Enter on stdin and exit; its answer
// to a NaN is to reset the simulation silently. Here both become Go errors and neither happens: the
// state is what it was before the call that failed. Two faults of its collider of boxes are mended (box.c).
//
// Models and data are C memory. They are freed by Close and by nothing else, and slices that an
// accessor returned must not be used afterwards. A Model may be shared by many Data on many
// goroutines as long as nobody writes to it; a Data belongs to one goroutine at a time.
package mj

/*
#cgo CFLAGS: -O2 -Wall
#cgo LDFLAGS: -ldl -lm
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Kind is a kind of named model element.
type Kind int

// The kinds that names are looked up for.
const (
	Body     Kind = C.mjOBJ_BODY
	Joint    Kind = C.mjOBJ_JOINT
	Geom     Kind = C.mjOBJ_GEOM
	Site     Kind = C.mjOBJ_SITE
	Camera   Kind = C.mjOBJ_CAMERA
	Tendon   Kind = C.mjOBJ_TENDON
	Actuator Kind = C.mjOBJ_ACTUATOR
)

// BadStateError says that a position, velocity, acceleration or control was not a usable number. The
// data was put back to the state before the call.
type BadStateError struct {
	What string  // qpos, qvel, qacc or ctrl
	At   int     // index of the offending value
	Time float64 // physics time of the state that was put back, seconds
}

// Error names the value and the time.
func (e *BadStateError) Error() string {
	return fmt.Sprintf("mujoco: %s[%d] is not a usable number after t = %.3f s; the state before it was kept", e.What, e.At, e.Time)
}

// openMu serialises dlopen and mj_loadXML, which keeps process-wide state of the last model read.
var openMu sync.Mutex

func open() error {
	if C.vmj_is_open() != 0 {
		return nil
	}
	var e [512]C.char
	if C.vmj_open(&e[0], C.int(len(e))) != 0 {
		return fmt.Errorf("MuJoCo 2.2.2 cannot be used (%s): install the Debian package libmujoco2.2.2 (or libmujoco-dev)", C.GoString(&e[0]))
	}
	return nil
}

// Model is a compiled model.
type Model struct{ p *C.mjModel }

// Load compiles an MJCF text. It opens libmujoco when nobody has yet.
func Load(xml string) (*Model, error) {
	openMu.Lock()
	defer openMu.Unlock()
	if err := open(); err != nil {
		return nil, err
	}
	cs := C.CString(xml)
	defer C.free(unsafe.Pointer(cs))
	var e [1024]C.char
	p := C.vmj_load(cs, C.int(len(xml)), &e[0], C.int(len(e)))
	if p == nil {
		return nil, errors.New("mujoco: the model does not load: " + oneLine(C.GoString(&e[0])))
	}
	p.vis.quality.offsamples = 0 // a multisampled depth is taken 3/8 of a pixel off the centre
	return &Model{p}, nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Close frees the model; every Data of it must be closed already. Closing twice does nothing.
func (m *Model) Close() {
	if m.p != nil {
		C.vmj_free_model(m.p)
		m.p = nil
	}
}

// ID is the index of a named element, -1 when there is none.
func (m *Model) ID(k Kind, name string) int {
	cs := C.CString(name)
	defer C.free(unsafe.Pointer(cs))
	return int(C.vmj_id(m.p, C.int(k), cs))
}

// Name is an element's name, empty when it has none.
func (m *Model) Name(k Kind, id int) string {
	if s := C.vmj_name(m.p, C.int(k), C.int(id)); s != nil {
		return C.GoString(s)
	}
	return ""
}

// Data is the state of one simulation of a model and everything computed from it.
type Data struct {
	M *Model
	v *C.vmj_data
}

// NewData makes a simulation at the model's reference state.
func (m *Model) NewData() (*Data, error) {
	var e [512]C.char
	v := C.vmj_new_data(m.p, &e[0], C.int(len(e)))
	if v == nil {
		return nil, errors.New("mujoco: no memory for the simulation: " + C.GoString(&e[0]))
	}
	return &Data{M: m, v: v}, nil
}

// Close frees the data. Closing twice does nothing.
func (d *Data) Close() {
	if d.v != nil {
		C.vmj_free_data(d.v)
		d.v = nil
	}
}

var warnNames = map[C.int]string{C.mjWARN_BADQPOS: "qpos", C.mjWARN_BADQVEL: "qvel", C.mjWARN_BADQACC: "qacc", C.mjWARN_BADCTRL: "ctrl"}

func (d *Data) result(rc C.int) error {
	switch rc {
	case C.VMJ_OK:
		return nil
	case C.VMJ_BAD_STATE:
		return &BadStateError{What: warnNames[d.v.bad], At: int(d.v.badinfo), Time: d.Time()}
	}
	return errors.New("mujoco: " + oneLine(C.GoString(&d.v.msg[0])))
}

// Step advances n time steps with the controls as they are.
func (d *Data) Step(n int) error { return d.result(C.vmj_step(d.v, C.int(n))) }

// Step1 is the first half of a time step: everything that follows from position and velocity.
// A control law reads its results and writes Ctrl and Applied before Step2.
func (d *Data) Step1() error { return d.result(C.vmj_step1(d.v)) }

// Step2 is the second half of a time step: forces, accelerations, integration.
func (d *Data) Step2() error { return d.result(C.vmj_step2(d.v)) }

// Forward computes everything from the present state without advancing time.
func (d *Data) Forward() error { return d.result(C.vmj_forward(d.v)) }

// CopyTo makes dst, a Data of the same model, equal to d to the bit.
func (d *Data) CopyTo(dst *Data) error { return dst.result(C.vmj_copy(dst.v, d.v)) }

// CopyPoseTo copies positions and time only, and places bodies, cameras and lights of dst: enough to
// render and to cast rays, a hundred times cheaper than CopyTo.
func (d *Data) CopyPoseTo(dst *Data) error { return dst.result(C.vmj_copy_pose(dst.v, d.v)) }

// MulM is the inertia matrix times vec, both NV long.
func (d *Data) MulM(res, vec []float64) error {
	return d.result(C.vmj_mul_m(d.v, num(res), num(vec)))
}

// JacSite fills the 3 x NV row-major Jacobians of a site's position and rotation.
func (d *Data) JacSite(site int, pos, rot []float64) error {
	return d.result(C.vmj_jac_site(d.v, C.int(site), num(pos), num(rot)))
}

func num(s []float64) *C.mjtNum { return (*C.mjtNum)(unsafe.Pointer(unsafe.SliceData(s))) }

// NoBody excludes nothing in Rays.
const NoBody = -1

// Rays casts rays from one point; dirs holds 3 numbers per unit direction. dist gets metres, -1 for
// nothing hit; geom gets geom ids. Only geoms of groups that are set are seen, and none of body skip.
// It only reads d: several goroutines may cast at once while nobody steps.
func (d *Data) Rays(from [3]float64, dirs []float64, groups [6]bool, skip int, dist []float64, geom []int32) error {
	n := len(dirs) / 3
	if n == 0 {
		return nil
	}
	if len(dist) < n || len(geom) < n {
		return fmt.Errorf("mujoco: %d rays need as many results, got room for %d and %d", n, len(dist), len(geom))
	}
	var g [6]C.mjtByte
	for i, on := range groups {
		if on {
			g[i] = 1
		}
	}
	var e [256]C.char
	if C.vmj_rays(d.v, num(from[:]), num(dirs), C.int(n), &g[0], C.int(skip), num(dist),
		(*C.int)(unsafe.Pointer(unsafe.SliceData(geom))), &e[0], C.int(len(e))) != C.VMJ_OK {
		return errors.New("mujoco: " + C.GoString(&e[0]))
	}
	return nil
}

// Warnings returns and clears what MuJoCo warned of since the last call, one line each, whole process.
func Warnings() string {
	b := make([]byte, 8192)
	n := C.vmj_drain_warnings((*C.char)(unsafe.Pointer(&b[0])), C.int(len(b)))
	return string(b[:n])
}
