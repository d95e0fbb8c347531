package perception

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/sensor"
)

// Options say what is fused and how. Lengths are metres. A zero takes the value in brackets.
type Options struct {
	Sources []sensor.Source
	Kin     robot.Kinematics
	Clock   robot.Clock
	State   func() robot.State // the newest reading; never blocks
	Log     *slog.Logger       // [silent]

	RateHz  float64 // fuse this often in Run; 0 fuses only on Refresh
	StateHz float64 // keep states this often in Run; 0 keeps only those read around each exposure

	Voxel  float64 // edge of a voxel [0.004]
	Bounds r3.Box  // what is kept, about the base's x, y and the odometry frame's z [-1..1, -1..1, -0.2..1.4]

	Calib         map[string]geom.Pose // correction by source, applied on the sensor's side of its mount [none]
	SelfMargin    float64              // points this near to hand or fingers are the robot's [0.015]
	BodyMargin    float64              // likewise to arm or base, which capsules outline more coarsely [0.030]
	Held          HeldBox              // [0.03 back, 0.07 ahead, 0.01 beside the pads, 0.05 thick, within 0.25, over gaps of 0.012]
	MoveTol       float64              // a camera that moves more within its latency bound is not fused [0.003]
	TurnTol       float64              // likewise in radians [0.006]
	StateGap      time.Duration        // the farthest a state may be from an exposure [100 ms]
	SourceTimeout time.Duration        // after this a silent source is left out; 0 waits as long as the caller
}

func (o *Options) defaults() {
	zero := func(x *float64, d float64) {
		if *x == 0 {
			*x = d
		}
	}
	zero(&o.Voxel, 0.004)
	zero(&o.SelfMargin, 0.015)
	zero(&o.BodyMargin, 0.030)
	zero(&o.MoveTol, 0.003)
	zero(&o.TurnTol, 0.006)
	if o.Bounds == (r3.Box{}) {
		o.Bounds = r3.Box{Min: r3.Vec{X: -1, Y: -1, Z: -0.2}, Max: r3.Vec{X: 1, Y: 1, Z: 1.4}}
	}
	if o.Held == (HeldBox{}) {
		o.Held = HeldBox{Back: 0.03, Ahead: 0.07, Side: 0.01, Thick: 0.05, Reach: 0.25, Gap: 0.012}
	}
	if o.StateGap == 0 {
		o.StateGap = 100 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// validate names the first option that cannot work.
func (o *Options) validate() error {
	switch {
	case o.Kin == nil || o.Clock == nil || o.State == nil:
		return errors.New("perception: Kin, Clock and State are required")
	case len(o.Sources) == 0:
		return errors.New("perception: no sensor source; a robot without one cannot be driven by pictures")
	case !(o.RateHz >= 0 && o.RateHz <= 100):
		return fmt.Errorf("perception rate: got %g Hz, limit 0..100", o.RateHz)
	case !(o.StateHz >= 0 && o.StateHz <= 1000):
		return fmt.Errorf("perception state rate: got %g Hz, limit 0..1000", o.StateHz)
	case !(o.Voxel >= 1e-3 && o.Voxel <= 0.2):
		return fmt.Errorf("perception voxel: got %g m, limit 0.001..0.2", o.Voxel)
	}
	m := o.Kin.Model()
	seen := map[string]bool{}
	for _, s := range o.Sources {
		in := s.Info()
		if seen[in.Name] {
			return fmt.Errorf("perception: two sources are named %q", in.Name)
		}
		seen[in.Name] = true
		if c, ok := o.Calib[in.Name]; !in.Mount.Pose.Finite() || ok && !c.Finite() {
			return fmt.Errorf("perception: the mount or calibration of source %q is no rigid transform", in.Name)
		}
		if in.Mount.Link == "" {
			continue
		}
		if _, ok := o.Kin.Link(in.Mount.Link, geom.SE2{}, make([]float64, len(m.Joints)), 0); !ok {
			return fmt.Errorf("perception: source %q is mounted on %q, a link that %s does not have", in.Name, in.Mount.Link, m.Name)
		}
	}
	_, err := newLattice(o.Bounds, o.Voxel)
	return err
}

// Fuser turns frames into Scenes. Every frame is placed by the pose of its mount's link at its exposure, from a
// ring of states; only the newest frame of each source is in a scene.
type Fuser struct {
	opt   Options
	turn  chan struct{} // holds one token: whoever has it may refresh
	scene atomic.Pointer[Scene]

	mu     sync.Mutex // guards ring
	ring   *states
	seq    uint64 // with the token
	pile   pile
	unproj unprojector
	scan   lidarScratch
	vox    voxels
	self   selfFilter
}

// NewFuser checks the options.
func NewFuser(o Options) (*Fuser, error) {
	o.defaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &Fuser{opt: o, turn: make(chan struct{}, 1), ring: newStates(o.Kin.Model(), 256)}
	f.turn <- struct{}{}
	return f, nil
}

// Scene is the newest scene, nil before the first. It never blocks.
func (f *Fuser) Scene() *Scene { return f.scene.Load() }

// Run keeps states and scenes at the rates of the options until ctx ends, and returns its error.
func (f *Fuser) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	every := func(hz float64, do func()) {
		if hz == 0 {
			return
		}
		tick := f.opt.Clock.Ticker(time.Duration(float64(time.Second) / hz))
		wg.Go(func() {
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C():
					do()
				}
			}
		})
	}
	every(f.opt.StateHz, func() { _ = f.sample() }) // Refresh says so when states are missing
	var said time.Time
	every(f.opt.RateHz, func() {
		_, err := f.refresh(ctx, time.Time{})
		if now := f.opt.Clock.Now(); err != nil && ctx.Err() == nil && now.Sub(said) >= time.Second {
			said = now
			f.opt.Log.Warn("no new scene", "err", err)
		}
	})
	<-ctx.Done()
	wg.Wait()
	return ctx.Err()
}

// sample puts the newest state into the ring.
func (f *Fuser) sample() error {
	s := f.opt.State()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ring.add(s)
}

// Refresh returns a scene whose exposures are all at or after t, fusing a new one unless the newest already is;
// a zero t always fuses the newest frames. It blocks until every source has delivered or failed. It fails when
// ctx ends, when the robot's state is incomplete, and when no source delivered.
func (f *Fuser) Refresh(ctx context.Context, t time.Time) (*Scene, error) { return f.refresh(ctx, t) }

func (f *Fuser) refresh(ctx context.Context, t time.Time) (*Scene, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.turn:
	}
	defer func() { f.turn <- struct{}{} }()
	if s := f.scene.Load(); s != nil && !t.IsZero() && !s.At.Before(t) && len(s.Missing) == 0 {
		return s, nil
	}
	if err := f.sample(); err != nil {
		return nil, err
	}
	frames, gaps := f.fetch(ctx, t)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(frames) == 0 {
		return nil, fmt.Errorf("no sensor delivered a frame: %s: %s", gaps[0].Source, gaps[0].Why)
	}
	if err := f.sample(); err != nil {
		return nil, err
	}
	s, err := f.build(frames, gaps)
	if err != nil {
		return nil, err
	}
	f.scene.Store(s)
	return s, nil
}

// fetch asks all sources at once.
func (f *Fuser) fetch(ctx context.Context, t time.Time) (frames []*sensor.Frame, gaps []Gap) {
	if d := f.opt.SourceTimeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = robot.WithTimeout(ctx, f.opt.Clock, d)
		defer cancel()
	}
	got := make([]*sensor.Frame, len(f.opt.Sources))
	errs := make([]error, len(f.opt.Sources))
	var wg sync.WaitGroup
	for i, s := range f.opt.Sources {
		wg.Go(func() { got[i], errs[i] = s.Frame(ctx, t) })
	}
	wg.Wait()
	for i, fr := range got {
		err := errs[i]
		switch {
		case err != nil && ctx.Err() != nil:
			err = context.Cause(ctx)
		case err == nil && fr == nil:
			err = errors.New("no frame")
		case err == nil:
			if err = checkFrame(fr); err == nil && fr.Stamp.Before(t) {
				err = fmt.Errorf("frame is %v older than was asked for", t.Sub(fr.Stamp))
			}
		}
		if err != nil {
			gaps = append(gaps, Gap{Source: f.opt.Sources[i].Info().Name, Why: err.Error()})
			continue
		}
		frames = append(frames, fr)
	}
	return frames, gaps
}
