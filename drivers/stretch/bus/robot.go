package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"viad/drivers/robot"
	"viad/drivers/stretch"
)

// Robot is the whole robot: base, lift, arm, wrist and gripper.
type Robot struct {
	config Config
	clock  robot.Clock
	log    *slog.Logger
	links  []*link
	closed chan struct{}
	once   sync.Once
	turn   chan struct{} // holds a token: whose commands go out

	mu       sync.Mutex
	model    *robot.Model
	axes     [axes]axis
	power    power
	wrist    wrist
	odometry odometry
	seq      uint64
	changed  time.Time
	running  func(error) // ends what runs: a motion, a grip or a task; nil: nothing does
	doing    string      // what runs, in words
	ended    time.Time   // when the last of them ended
	strange  time.Time   // since when it moves by itself; zero: it does not
	jawOpen  *bool       // the last jaw command that ended plausibly
	gripping bool
}

var (
	_ robot.Body     = (*Robot)(nil)
	_ robot.Examined = (*Robot)(nil)
	_ robot.Tended   = (*Robot)(nil)
)

// Errors of a motion that was not begun or was ended from outside.
var (
	ErrBusy   = errors.New("refused: a motion or a task is already running")
	ErrHalted = errors.New("halted")
	errClosed = errors.New("this daemon closes the robot's ports")
)

// Open makes the driver. It opens no port: Run does, and keeps them open.
func Open(_ context.Context, c Config) (*Robot, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	tool := c.Tool
	if tool == "" {
		tool = toolPG4 // until its servo answers
	}
	m, err := stretch.Model(tool)
	if err != nil {
		return nil, err
	}
	r := &Robot{config: c, clock: c.Clock, log: c.Log.With("robot", m.Name), model: m, closed: make(chan struct{}), turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	p := c.Ports
	paths := [axes]string{p.Lift, p.Arm, p.Omni0, p.Omni1, p.Omni2}
	for i, u := range axisTable() {
		r.axes[i] = axis{r: r, place: i, units: u}
		r.links = append(r.links, &link{r: r, name: "the board of " + u.name, path: paths[i], dev: &r.axes[i]})
	}
	r.power, r.wrist = power{r: r}, wrist{r: r}
	r.links = append(r.links,
		&link{r: r, name: "the power board", path: p.Power, dev: &r.power},
		&link{r: r, name: "the servo bus of the wrist", path: p.Wrist, baud: wristBaud, dev: &r.wrist})
	return r, nil
}

// Places of links after those of the axes.
const (
	powerLink = axes
	wristLink = axes + 1
)

// Run lives with the robot: it opens the ports, looks at what is behind them, and opens them anew whenever they were lost.
// When ctx ends or Close is called, what runs is ended and everything holds before the ports are closed.
func (r *Robot) Run(ctx context.Context) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var all sync.WaitGroup
	for _, l := range r.links {
		all.Go(func() { l.run(inner) })
	}
	select {
	case <-ctx.Done():
	case <-r.closed:
	}
	r.interrupt(errClosed)
	r.until(inner, haltTime, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.running == nil
	})
	cancel()
	all.Wait()
	return nil
}

// Close ends what runs, and Run.
func (r *Robot) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Model is the joint order and the limits.
func (r *Robot) Model() *robot.Model {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.model
}

// Deadman is how long the robot may go on when nobody renews its commands. Lift, arm and wrist: what the last goal covers,
// 0.4 s, and braking. The base: the wheels' own watchdog of a second, and rolling out from BaseSpeed.
func (r *Robot) Deadman() time.Duration { return 2 * time.Second }

// begin takes the robot for one thing at a time.
func (r *Robot) begin(ctx context.Context, what string) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running != nil {
		cancel(ErrBusy)
		return nil, nil, fmt.Errorf("%w: %s", ErrBusy, r.doing)
	}
	r.running, r.doing = cancel, what
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		r.running, r.doing, r.ended = nil, "", r.clock.Now()
		r.mu.Unlock()
	}, nil
}

// interrupt ends what runs.
func (r *Robot) interrupt(why error) {
	r.mu.Lock()
	if r.running != nil {
		r.running(why)
	}
	r.mu.Unlock()
}

// ended is why ctx has ended.
func ended(ctx context.Context) error {
	why := context.Cause(ctx)
	if errors.Is(why, context.Canceled) || errors.Is(why, context.DeadlineExceeded) {
		return fmt.Errorf("ended before its end: %w", why)
	}
	return why
}

// within is ctx with a bound of the driver's own, on the robot's clock.
func (r *Robot) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return robot.WithTimeout(ctx, r.clock, d)
}

// until looks at ok every tick until it is true; false when the time is over or ctx ends.
func (r *Robot) until(ctx context.Context, d time.Duration, ok func() bool) bool {
	tick := r.clock.Ticker(tickTime)
	defer tick.Stop()
	for end := r.clock.Now().Add(d); ; {
		if ok() {
			return true
		}
		if !r.clock.Now().Before(end) {
			return false
		}
		select {
		case <-tick.C():
		case <-ctx.Done():
			return false
		}
	}
}
