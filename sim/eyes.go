package sim

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"viad/sim/mj"
)

// pose is a copy of where everything is at one instant, for rendering and for casting rays while physics
// goes on.
type pose struct {
	shape *shared
	d     *mj.Data
	world uint64
	stamp time.Time
}

// sync copies the twin's present.
func (v *pose) sync(t *Twin) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrOver
	}
	if v.shape != t.p.shape {
		v.close()
		d, err := t.p.m.NewData()
		if err != nil {
			return err
		}
		v.shape, v.d = t.p.shape.retain(), d
	}
	v.world, v.stamp = t.world, t.clk.Now()
	return t.p.d.CopyPoseTo(v.d)
}

func (v *pose) close() {
	if v.shape != nil {
		v.d.Close()
		v.shape.release()
		v.shape, v.d = nil, nil
	}
}

// eyes renders. One OS thread owns the GL context, the renderer and the pose it draws; it starts with the
// first picture.
type eyes struct {
	t    *Twin
	jobs chan shot

	mu     sync.Mutex
	begun  bool
	closed bool
	done   chan struct{}
}

// shot is one picture to be drawn and where its answer goes.
type shot struct {
	mj.Shot
	answer chan<- exposure
}

// exposure says when and in which world a picture was taken.
type exposure struct {
	stamp time.Time
	world uint64
	err   error
}

func newEyes(t *Twin) *eyes {
	return &eyes{t: t, jobs: make(chan shot), done: make(chan struct{})}
}

// draw fills the shot's buffers.
func (e *eyes) draw(ctx context.Context, s mj.Shot) exposure {
	if err := e.start(); err != nil {
		return exposure{err: err}
	}
	answer := make(chan exposure, 1)
	select {
	case e.jobs <- shot{s, answer}:
		return <-answer // the thread answers every job that it took
	case <-ctx.Done():
		return exposure{err: ctx.Err()}
	case <-e.t.stop:
		return exposure{err: ErrOver}
	}
}

func (e *eyes) start() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrOver
	}
	if !e.begun {
		e.begun = true
		go e.run()
	}
	return nil
}

// close waits for the thread to end; the twin's stop channel is closed already.
func (e *eyes) close() {
	e.mu.Lock()
	e.closed = true
	begun := e.begun
	e.mu.Unlock()
	if begun {
		<-e.done
	}
}

func (e *eyes) run() {
	runtime.LockOSThread() // never unlocked: the thread dies with its GL context
	defer close(e.done)
	b := brush{t: e.t}
	defer b.close()
	for {
		select {
		case s := <-e.jobs:
			err := b.draw(s.Shot)
			s.answer <- exposure{b.pose.stamp, b.pose.world, err}
		case <-e.t.stop:
			return
		}
	}
}

// brush is what the render thread owns.
type brush struct {
	t     *Twin
	gl    *mj.GL
	r     *mj.Renderer
	shape *shared // the model that r has uploaded
	pose  pose
}

var errBlack = errors.New("twin: the renderer returned an empty picture")

func (b *brush) draw(s mj.Shot) error {
	if b.gl == nil {
		gl, err := mj.OpenGL()
		if err != nil {
			return err
		}
		b.gl = gl
	}
	if err := b.pose.sync(b.t); err != nil {
		return err
	}
	if b.shape != b.pose.shape {
		if err := b.upload(); err != nil {
			return err
		}
	}
	if err := b.r.Draw(b.pose.d, s); err != nil {
		return err
	}
	for _, c := range s.RGB {
		if c != 0 {
			return nil
		}
	}
	return errBlack
}

// upload makes a renderer for the pose's model: textures and meshes live in the GL.
func (b *brush) upload() error {
	if b.r != nil {
		b.r.Close()
		b.r, b.shape = nil, nil
	}
	r, err := b.gl.NewRenderer(b.pose.shape.m)
	if err != nil {
		return err
	}
	b.r, b.shape = r, b.pose.shape
	return nil
}

func (b *brush) close() {
	if b.r != nil {
		b.r.Close()
	}
	b.pose.close()
	if b.gl != nil {
		b.gl.Close()
	}
}
