package mj

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// GL is an EGL context without a surface. It is current on the OS thread that opened it, and
// everything about it must happen on that thread: open it after runtime.LockOSThread.
type GL struct{ p *C.vmj_gl }

// OpenGL opens libEGL (by dlopen) and a context on the calling thread.
func OpenGL() (*GL, error) {
	openMu.Lock()
	defer openMu.Unlock()
	var e [512]C.char
	p := C.vmj_gl_open(&e[0], C.int(len(e)))
	if p == nil {
		return nil, fmt.Errorf("no picture can be rendered (%s): install the Debian packages libegl1, libegl-mesa0 and libgl1-mesa-dri", C.GoString(&e[0]))
	}
	return &GL{p}, nil
}

// Close destroys the context.
func (g *GL) Close() {
	if g.p != nil {
		C.vmj_gl_close(g.p)
		g.p = nil
	}
}

// Name is the GL's own name of its renderer.
func (g *GL) Name() string { return C.GoString(C.vmj_gl_name()) }

// Renderer draws one model. Its textures belong to that model: another model needs another Renderer.
type Renderer struct {
	g *GL
	p *C.vmj_render
}

// NewRenderer uploads the model to the context.
func (g *GL) NewRenderer(m *Model) (*Renderer, error) {
	var e [512]C.char
	p := C.vmj_render_new(g.p, m.p, 4000, &e[0], C.int(len(e)))
	if p == nil {
		return nil, errors.New("mujoco: no renderer: " + oneLine(C.GoString(&e[0])))
	}
	return &Renderer{g: g, p: p}, nil
}

// Close frees the renderer, on the context's thread.
func (r *Renderer) Close() {
	if r.p != nil {
		C.vmj_render_free(r.p)
		r.p = nil
	}
}

// Shot says what to draw.
type Shot struct {
	Camera  int
	W, H    int
	RGB     []byte    // W*H*3, rows from the top, or nil
	Depth   []float32 // W*H metres along the optical axis, 0 where there is nothing, or nil
	Sky     bool      // draw the sky: not with depth, the sky's box would have one
	Shadows bool
}

// Draw renders d, a Data of the renderer's model, into the shot's buffers.
func (r *Renderer) Draw(d *Data, s Shot) error {
	var rgb *C.uchar
	var depth *C.float
	if s.RGB != nil {
		if len(s.RGB) != s.W*s.H*3 {
			return fmt.Errorf("mujoco: a picture of %dx%d needs %d bytes, got %d", s.W, s.H, s.W*s.H*3, len(s.RGB))
		}
		rgb = (*C.uchar)(unsafe.Pointer(&s.RGB[0]))
	}
	if s.Depth != nil {
		if len(s.Depth) != s.W*s.H {
			return fmt.Errorf("mujoco: a depth picture of %dx%d needs %d numbers, got %d", s.W, s.H, s.W*s.H, len(s.Depth))
		}
		depth = (*C.float)(unsafe.Pointer(&s.Depth[0]))
	}
	var flags C.int
	if s.Sky {
		flags |= C.VMJ_SKY
	}
	if s.Shadows {
		flags |= C.VMJ_SHADOWS
	}
	return d.result(C.vmj_render_frame(r.p, r.g.p, d.v, C.int(s.Camera), C.int(s.W), C.int(s.H), rgb, depth, flags))
}
