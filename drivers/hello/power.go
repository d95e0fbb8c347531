package hello

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

// Remote procedures of the power board; a reply has the number after.
const (
	powerStatus  = 3
	powerTrigger = 5
	powerInfo    = 7
	powerSync    = 9

	powerStatusSize = imuSize + 3*4 + 4 + 8 + 2 + 4 + 4 + 1 + 4 + 1 + 1 + 2 + 6*4 + 1 + 1
	imuSize         = 17 * 4
)

// SyncEvery is the shortest time between two motor syncs: the board answers faster ones with a runstop. The robot's own
// body sends up to 100 a second on Stretch 4, 20 on Stretch 3; the slower of the two is kept.
const SyncEvery = 50 * time.Millisecond

// PowerState are the bits of the power board's state.
type PowerState uint32

// The bits.
const (
	PowerRunstop       PowerState = 16
	PowerLowCharge     PowerState = 256
	PowerTilted        PowerState = 512
	PowerHighCurrent   PowerState = 1024
	PowerAdapter       PowerState = 2048 // its voltage is there
	PowerBooted        PowerState = 4096
	PowerCharging      PowerState = 16384
	PowerHandCurrent   PowerState = 1 << 17 // too much current at the end of the arm
	PowerAdapterOn     PowerState = 1 << 18
	PowerAdapterFaulty PowerState = 1 << 19
)

// Has reports whether all of the bits are set.
func (s PowerState) Has(bits PowerState) bool { return s&bits == bits }

// Cause is why the runstop is on.
type Cause uint8

// String is the cause in words.
func (c Cause) String() string {
	names := [...]string{"no cause given", "its button was pressed", "a program asked for it", "the battery is nearly empty", "the robot drew too much current", "the end of the arm drew too much current"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("cause %d", c)
}

// CauseProgram is the runstop that a program asked for.
const CauseProgram Cause = 2

// PowerStatus is a reading of the power board.
type PowerStatus struct {
	Roll, Pitch float64 // degrees
	Voltage     float64 // V
	Current     float64 // A
	Temperature float64 // degrees Celsius
	State       PowerState
	Stamp       time.Duration // the board's own clock
	Charge      int           // of the battery, percent
	Health      int           // of the battery, percent
	Cause       Cause
}

// Runstopped reports whether the runstop is on.
func (s PowerStatus) Runstopped() bool { return s.State.Has(PowerRunstop) }

// Triggers of the power board that are sent, each by a function of its own.
const (
	triggerRunstopReset = 2
	triggerRunstopOn    = 256
	triggerBeep         = 512
)

// Power is the power board. Calls are made one at a time, from any goroutine.
type Power struct {
	link *link
	info Info

	mu     sync.Mutex
	last   clock
	synced time.Time
	syncs  chan struct{} // holds one token: whose sync it is
}

func powerKind() kind {
	return kind{"power", []string{"PowerPeriph", "Pimu", "Pimu2", "hello-pimu2", "hello_pimu2"}, []int{8, 9, 10, 11, 12, 13}, powerInfo}
}

// OpenPower greets the board behind a port. The port stays the caller's.
func OpenPower(ctx context.Context, p Port) (*Power, error) {
	l := newLink(p)
	i, err := greet(ctx, l, powerKind())
	if err != nil {
		return nil, err
	}
	w := &Power{link: l, info: i, syncs: make(chan struct{}, 1)}
	w.syncs <- struct{}{}
	return w, nil
}

// Info is what the board said of itself.
func (p *Power) Info() Info { return p.info }

// Counters are what the line has seen.
func (p *Power) Counters() Counters { return p.link.counters() }

// Status asks for a reading. One that is not newer than the last is ErrStale, or ErrRestarted when it must be.
func (p *Power) Status(ctx context.Context) (PowerStatus, error) {
	b, err := p.link.pull(ctx, "status", []byte{powerStatus})
	if err != nil {
		return PowerStatus{}, err
	}
	st, err := parsePowerStatus(b)
	if err != nil {
		return PowerStatus{}, &LineError{"status", err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.last.take(st.Stamp); err != nil {
		p.link.strange.Add(1)
		return PowerStatus{}, &LineError{"status", err}
	}
	return st, nil
}

// parsePowerStatus reads what all protocols have in common; newer ones append to it.
func parsePowerStatus(b []byte) (PowerStatus, error) {
	if len(b) < powerStatusSize {
		return PowerStatus{}, fmt.Errorf("the status has %d bytes, at least %d are needed", len(b), powerStatusSize)
	}
	r := reader{b: b}
	var imu [imuSize / 4]float64 // acceleration, rates, field, roll, pitch, heading, quaternion, bump
	for i := range imu {
		imu[i] = r.loose()
	}
	s := PowerStatus{Roll: imu[9], Pitch: imu[10], Voltage: r.f32(), Current: r.f32(), Temperature: r.f32(), State: PowerState(r.u32())}
	us := r.u64()
	if us > uint64(1<<63-1)/1000 {
		return PowerStatus{}, errNumber
	}
	s.Stamp = time.Duration(us) * time.Microsecond
	r.take(2) // bumps
	r.loose() // debug
	r.loose() // charging current
	r.u8()    // kind of tilt
	r.loose() // battery current
	s.Charge, s.Health = int(r.u8()), int(r.u8())
	r.take(2) // cycles
	for range 6 {
		r.loose() // voltages
	}
	r.u8() // computer is on
	s.Cause = Cause(r.u8())
	if r.bad {
		return PowerStatus{}, errNumber
	}
	return s, nil
}

// Sync lets every stepper in sync mode take the command that it waits with. It waits until SyncEvery has passed since the
// one before.
func (p *Power) Sync(ctx context.Context) error {
	select {
	case <-p.syncs:
	case <-ctx.Done():
		return &LineError{"motor sync", ctx.Err()}
	}
	defer func() { p.syncs <- struct{}{} }()
	if d := time.Until(p.synced.Add(SyncEvery)); !p.synced.IsZero() && d > 0 {
		wait := time.NewTimer(d)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
			return &LineError{"motor sync", ctx.Err()}
		}
	}
	_, err := p.link.push(ctx, "motor sync", []byte{powerSync})
	p.synced = time.Now() // also when no answer came: it may have been heard
	return err
}

// Runstop engages the runstop: every stepper goes into safety, wheels and arm are free.
func (p *Power) Runstop(ctx context.Context) error {
	return p.trigger(ctx, "runstop", triggerRunstopOn)
}

// Beep beeps once.
func (p *Power) Beep(ctx context.Context) error { return p.trigger(ctx, "beep", triggerBeep) }

// OperatorReleasesRunstop releases the runstop. Only a person who looked why it was engaged may ask for it: it is never
// called by a program's own decision.
func (p *Power) OperatorReleasesRunstop(ctx context.Context) error {
	return p.trigger(ctx, "runstop reset", triggerRunstopReset)
}

func (p *Power) trigger(ctx context.Context, name string, bits uint32) error {
	_, err := p.link.push(ctx, name, binary.LittleEndian.AppendUint32([]byte{powerTrigger}, bits))
	return err
}
