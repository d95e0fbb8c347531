package robottest

import (
	"context"
	"math"
	"time"

	"viad/drivers/robot"
)

// jawAt is the jaw's reading at t: it moves at the model's speed.
func (b *Body) jawAt(t time.Time) robot.Jaw {
	j := b.jaw
	x := math.Min(1, math.Max(0, t.Sub(j.start).Seconds())/b.jawTime(j))
	r := robot.Jaw{Known: true, Aperture: j.from + x*(j.to-j.from), Open: j.open}
	if x < 1 {
		r.Speed = (j.to - j.from) / b.jawTime(j)
	} else {
		r.Holding = j.held
	}
	return r
}

func (b *Body) jawTime(j jaw) float64 {
	speed := b.model.Jaw.Speed
	if speed <= 0 {
		speed = 0.1
	}
	return math.Max(math.Abs(j.to-j.from)/speed, 1e-9)
}

func (b *Body) haltJaw(now time.Time) {
	r := b.jawAt(now)
	if r.Speed != 0 || b.gripping {
		b.jaw = jaw{from: r.Aperture, to: r.Aperture, start: now, open: b.jaw.open}
	}
}

// Grip moves the jaw and blocks until it is at rest or on the object.
func (b *Body) Grip(ctx context.Context, t robot.JawTarget) error {
	b.mu.Lock()
	if err := b.mayMove(); err != nil {
		b.mu.Unlock()
		return err
	}
	if b.f.GripErr != nil {
		defer b.mu.Unlock()
		return b.f.GripErr
	}
	now := b.clock.Now()
	j := jaw{from: b.jawAt(now).Aperture, to: b.model.Jaw.Min, start: now, open: t.Open}
	switch {
	case t.Open:
		j.to = b.model.Jaw.Max
	case b.f.Object > 0:
		j.to, j.held = math.Min(b.f.Object, j.from), true
	}
	if b.f.JawStuck {
		j.to, j.held = j.from, false
	}
	b.jaw, b.gripping = j, true
	hangs := b.f.GripHangs
	b.mu.Unlock()
	return b.waitJaw(ctx, j, hangs)
}

func (b *Body) waitJaw(ctx context.Context, j jaw, hangs bool) error {
	defer func() {
		b.mu.Lock()
		b.gripping = false
		b.mu.Unlock()
	}()
	tick := b.clock.Ticker(Period / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C():
		case <-ctx.Done():
			b.brake()
			return ctx.Err()
		}
		b.mu.Lock()
		changed, moving := b.jaw != j, b.jawAt(b.clock.Now()).Speed != 0
		b.mu.Unlock()
		if changed {
			return ErrHalted
		}
		if !moving && !hangs {
			return nil
		}
	}
}
