package soak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"viad/drivers/sensor"
)

// faults are the ways in which a sensor fails.
const (
	fine    = iota
	failing // every frame is an error
	frozen  // the same frame again and again, with its old stamp
	garbage // readings that are no numbers
	halved  // half a frame
	kinds
)

// eye is a sensor that can be made to fail.
type eye struct {
	sensor.Source
	fault atomic.Int32
	mu    sync.Mutex
	last  *sensor.Frame
}

var errEye = errors.New("the cable is loose")

// Frame is the sensor's own, or a failure.
func (e *eye) Frame(ctx context.Context, t time.Time) (*sensor.Frame, error) {
	fault := e.fault.Load()
	if fault == failing {
		return nil, errEye
	}
	e.mu.Lock()
	old := e.last
	e.mu.Unlock()
	if fault == frozen && old != nil {
		return old, nil
	}
	f, err := e.Source.Frame(ctx, t)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.last = f
	e.mu.Unlock()
	switch fault {
	case garbage:
		return spoilt(f), nil
	case halved:
		g := *f
		g.RGB, g.Depth, g.Points = f.RGB[:len(f.RGB)/2], f.Depth[:len(f.Depth)/2], f.Points[:len(f.Points)/2]
		return &g, nil
	}
	return f, nil
}

func spoilt(f *sensor.Frame) *sensor.Frame {
	g := *f
	g.Depth, g.Points = make([]float32, len(f.Depth)), make([]float32, len(f.Points))
	for _, s := range [][]float32{g.Depth, g.Points} {
		for i := range s {
			s[i] = [...]float32{float32(math.NaN()), float32(math.Inf(1)), -3, 1e30}[i%4]
		}
	}
	if len(f.Depth) == 0 {
		g.Depth = nil
	}
	if len(f.Points) == 0 {
		g.Points = nil
	}
	return &g
}

// ledger counts what the daemon logs, and keeps what should not be there.
type ledger struct {
	mu     sync.Mutex
	lines  map[string]int // warnings and errors, by their words
	panics []string
}

// Enabled lets everything through.
func (l *ledger) Enabled(context.Context, slog.Level) bool { return true }

// Handle counts a line.
func (l *ledger) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		// What a client sent is repeated in some attributes, and is no evidence.
		if k := a.Key; k == "panic" || k == "stack" || k == "err" || k == "error" || k == "line" {
			text += " " + a.Value.String()
		}
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(text, "panic") {
		l.panics = append(l.panics, fmt.Sprintf("%.2000s", text))
	}
	if r.Level >= slog.LevelWarn || r.Message == "motion ended" {
		l.lines[r.Level.String()+" "+r.Message]++
	}
	return nil
}

// WithAttrs is the same ledger.
func (l *ledger) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup is the same ledger.
func (l *ledger) WithGroup(string) slog.Handler { return l }
