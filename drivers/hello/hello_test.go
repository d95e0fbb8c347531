package hello

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// The vectors of the robot's protocol, and frames made another way.
func TestFrames(t *testing.T) {
	for _, v := range []struct{ name, content, wire string }{
		{"stepper status", "ce03", "05ce03d11500"},
		{"stepper board info", "ce11", "05ce11dc9500"},
		{"power board info", "ce07", "05ce07121400"},
	} {
		content, _ := hex.DecodeString(v.content)
		wire, _ := hex.DecodeString(v.wire)
		got, err := frame(content)
		if err != nil || !bytes.Equal(got, wire) {
			t.Errorf("%s: %x, want %x (%v)", v.name, got, wire, err)
		}
		back, err := unframe(wire[:len(wire)-1])
		if err != nil || !bytes.Equal(back, content) {
			t.Errorf("%s back: %x, want %x (%v)", v.name, back, content, err)
		}
	}
	if crc := crc16([]byte("123456789")); crc != 0x4b37 { // the check value that is published with this CRC
		t.Errorf("CRC of 123456789 is %04x", crc)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= blockMost; n++ {
		b := make([]byte, n)
		for i := range b {
			if r.IntN(3) > 0 {
				b[i] = byte(r.Uint32())
			}
		}
		got, err := frame(b)
		if err != nil || !bytes.Equal(got, otherFrame(b)) {
			t.Fatalf("%x: %x, want %x (%v)", b, got, otherFrame(b), err)
		}
		if back, err := unframe(got[:len(got)-1]); err != nil || !bytes.Equal(back, b) {
			t.Fatalf("%x: back %x (%v)", b, back, err)
		}
	}
	for _, n := range []int{0, blockMost + 1} {
		if _, err := frame(make([]byte, n)); err == nil {
			t.Errorf("a frame of %d bytes was made", n)
		}
	}
}

// Every single flipped bit, lost byte and doubled byte of a frame is seen.
func TestFrameDamage(t *testing.T) {
	content := []byte{209, 4, 5, 0, 0, 0, 72, 66, 0, 0, 0, 0, 0, 0, 240, 63, 1, 2, 3}
	wire, err := frame(content)
	if err != nil {
		t.Fatal(err)
	}
	wire = wire[:len(wire)-1]
	wrong := func(what string, b []byte) {
		if got, err := unframe(b); err == nil && !bytes.Equal(got, content) {
			t.Errorf("%s: taken for %x", what, got)
		}
	}
	for i := range wire {
		for bit := range 8 {
			b := bytes.Clone(wire)
			b[i] ^= 1 << bit
			wrong("a flipped bit", b)
		}
		wrong("a lost byte", append(bytes.Clone(wire[:i]), wire[i+1:]...))
		wrong("a doubled byte", append(bytes.Clone(wire[:i+1]), wire[i:]...))
	}
}

func TestInfo(t *testing.T) {
	for _, v := range []struct {
		firmware string
		protocol int
		chunks   version
		bad      string
	}{
		{"Stepper.v0.5.0p7", 7, v1, ""},
		{"Stepper.v0.3.9p8", 8, v0, ""},
		{"Stepper2.v1.2.10p8", 8, v1, ""},
		{"hello-stepper2.v0.7.12p8", 8, v1, ""},
		{"Stepper.v0.7.5p9", 9, v0, "p9"},
		{"Stepper.v0.7.5p5", 5, v0, "p5"},
		{"Pimu.v0.7.5p8", 8, v0, "no stepper board"},
		{"Stepper.v0.7p8", 0, v0, "expected a name"},
		{"", 0, v0, "expected a name"},
		{"Stepper.v0.7.-5p8", 0, v0, "expected a name"},
	} {
		_, path := newBoard(t, func([]byte) []byte { return infoOf("Stepper.6", v.firmware, MotorLift) })
		s, err := OpenStepper(within(t, 5*time.Second), open(t, path))
		if v.bad != "" {
			if err == nil || !strings.Contains(err.Error(), v.bad) {
				t.Errorf("%q: %v, want words with %q", v.firmware, err, v.bad)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", v.firmware, err)
			continue
		}
		if want := (Info{"Stepper.6", v.firmware, v.protocol, MotorLift}); s.Info() != want || s.link.version != v.chunks {
			t.Errorf("%q: %+v in way %d, want %+v in way %d", v.firmware, s.Info(), s.link.version, want, v.chunks)
		}
	}
	_, path := newBoard(t, func([]byte) []byte { return infoOf("Stepper.6", "Stepper.v9.0.0p9", 0) })
	if _, err := OpenStepper(within(t, 5*time.Second), open(t, path)); !errors.Is(err, ErrProtocol) {
		t.Errorf("an unknown protocol: %v", err)
	}
}

// stepperBoard answers as a stepper does; its clock goes on with each status.
func stepperBoard(firmware string) func([]byte) []byte {
	us := uint64(1000)
	return func(q []byte) []byte {
		switch q[0] {
		case 17:
			return infoOf("Stepper.6", firmware, MotorArm)
		case 3:
			us += 10000
			return stepperStatusOf(float64(us)/8, 1.5, uint32(DiagHomed|DiagSyncMode), us)
		case 13:
			return append(make([]byte, 80), 0x46, 1, 2, 3, 4, 5, 6, 7, 8)
		}
		return []byte{1, 0}
	}
}

func TestStepper(t *testing.T) {
	for _, firmware := range []string{"Stepper.v0.2.0p7", "Stepper.v0.7.5p7", "Stepper.v0.7.5p8"} {
		t.Run(firmware, func(t *testing.T) {
			b, path := newBoard(t, stepperBoard(firmware))
			ctx := within(t, 20*time.Second)
			s, err := OpenStepper(ctx, open(t, path))
			if err != nil {
				t.Fatal(err)
			}
			st, err := s.Status(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if st.Pos != 11000.0/8 || st.Vel != 1.5 || st.Stamp != 11*time.Millisecond || st.Mode != ModePositionTrajectory || !st.Diag.Has(DiagHomed) || st.Diag.Has(DiagRunstop) || st.Contacts != 3 || st.Powered {
				t.Errorf("%+v", st)
			}
			c, err := s.FlashConfig(ctx) // more than one block
			if err != nil || !c.Has(ConfigWatchdog|ConfigRunstop|ConfigSync) || c.Has(ConfigGuarded) {
				t.Errorf("configuration %x, %v", c, err)
			}
			cmd := Command{Mode: ModePositionTrajectory, X: 1, V: 2, A: 3, Stiffness: 1, FeedForward: 0.5, ContactPos: 2, ContactNeg: -2, SensePos: 0.25, SenseNeg: 0.75}
			want := packed(uint8(1), uint8(5), float32(1), float32(2), float32(3), float32(1), float32(0.5), float32(2), float32(-2), uint8(0))
			if strings.HasSuffix(firmware, "p8") {
				want = append(want, packed(float32(0.25), float32(0.75))...)
			}
			if err := s.Command(ctx, cmd); err != nil {
				t.Fatal(err)
			}
			if got := b.requests(); !bytes.Equal(got[len(got)-1], want) {
				t.Errorf("command %x, want %x", got[len(got)-1], want)
			}
			cmd.Mode = ModePositionRelative
			for i := byte(1); i < 3; i++ {
				if err := s.Command(ctx, cmd); err != nil {
					t.Fatal(err)
				}
				if got := b.requests(); got[len(got)-1][30] != i {
					t.Errorf("relative move %d has number %d", i, got[len(got)-1][30])
				}
			}
			if err := s.Limits(ctx, -1, 300); err != nil {
				t.Error(err)
			}
			if got, want := b.requests(), packed(uint8(19), float32(-1), float32(300)); !bytes.Equal(got[len(got)-1], want) {
				t.Errorf("limits %x, want %x", got[len(got)-1], want)
			}
		})
	}
}

// What must not be sent is not sent.
func TestStepperRefuses(t *testing.T) {
	b, path := newBoard(t, stepperBoard("Stepper.v0.7.5p8"))
	ctx := within(t, 10*time.Second)
	s, err := OpenStepper(ctx, open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	good := Command{Mode: ModePositionTrajectory, Stiffness: 1}
	for name, spoil := range map[string]func(*Command){
		"NaN":             func(c *Command) { c.X = math.NaN() },
		"infinite":        func(c *Command) { c.V = math.Inf(1) },
		"too stiff":       func(c *Command) { c.Stiffness = 1.5 },
		"a current":       func(c *Command) { c.Mode = ModeCurrent },
		"no generator":    func(c *Command) { c.Mode = ModePosition },
		"a waypoint":      func(c *Command) { c.Mode = 9 },
		"backwards accel": func(c *Command) { c.A = -1 },
	} {
		c := good
		spoil(&c)
		if err := s.Command(ctx, c); err == nil {
			t.Errorf("%s was sent", name)
		}
	}
	for _, trigger := range []StepperTrigger{0, 1, 3, 4, 8, 16, 32, 64, 128, 512, 1024} {
		if err := s.Trigger(ctx, trigger); err == nil {
			t.Errorf("trigger %d was sent", trigger)
		}
	}
	for _, l := range [][2]float64{{1, 1}, {2, 1}, {math.NaN(), 1}, {0, math.Inf(1)}} {
		if err := s.Limits(ctx, l[0], l[1]); err == nil {
			t.Errorf("limits %v were sent", l)
		}
	}
	if n := len(b.requests()); n != 1 {
		t.Errorf("%d requests, want the one for its info", n)
	}
	if err := s.Trigger(ctx, TriggerResetGenerator); err != nil {
		t.Error(err)
	}
	if got := b.requests(); !bytes.Equal(got[1], []byte{9, 2, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("trigger %x", got[1])
	}
}

// powerBoard answers as a power board does.
func powerBoard(state uint32, tail int) func([]byte) []byte {
	us := uint64(5)
	return func(q []byte) []byte {
		switch q[0] {
		case 7:
			return infoOf("Pimu2.1", "hello-pimu2.v0.9.1p12", 0)
		case 3:
			us += 20000
			imu := make([]float32, 17)
			imu[9], imu[10], imu[0] = 1.5, -2.5, float32(math.NaN())
			return append(packed(imu, float32(29.5), float32(3.25), float32(41), state, us, uint16(1), float32(0), float32(0), uint8(0), float32(-3),
				uint8(87), uint8(99), uint16(12), make([]float32, 6), uint8(1), uint8(1)), make([]byte, tail)...)
		}
		return []byte{0, 0}
	}
}

func TestPower(t *testing.T) {
	for _, tail := range []int{0, 2, 7, 40} { // p8, p11, p12, and newer
		b, path := newBoard(t, powerBoard(16|1<<18, tail))
		ctx := within(t, 10*time.Second)
		p, err := OpenPower(ctx, open(t, path))
		if err != nil {
			t.Fatal(err)
		}
		st, err := p.Status(ctx)
		want := PowerStatus{Roll: 1.5, Pitch: -2.5, Voltage: 29.5, Current: 3.25, Temperature: 41, State: PowerRunstop | PowerAdapterOn, Stamp: 20005 * time.Microsecond, Charge: 87, Health: 99, Cause: 1}
		if err != nil || st != want || !st.Runstopped() {
			t.Errorf("%+v, want %+v (%v)", st, want, err)
		}
		for _, f := range []struct {
			name string
			do   func(context.Context) error
			want []byte
		}{
			{"runstop", p.Runstop, []byte{5, 0, 1, 0, 0}},
			{"beep", p.Beep, []byte{5, 0, 2, 0, 0}},
			{"runstop reset", p.OperatorReleasesRunstop, []byte{5, 2, 0, 0, 0}},
			{"sync", p.Sync, []byte{9}},
		} {
			if err := f.do(ctx); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
			if got := b.requests(); !bytes.Equal(got[len(got)-1], f.want) {
				t.Errorf("%s: %x, want %x", f.name, got[len(got)-1], f.want)
			}
		}
	}
}

// Motor syncs that are asked for together come one after another, as far apart as the board wants.
func TestField14SyncRate(t *testing.T) {
	var mu sync.Mutex
	var at []time.Time
	answer := powerBoard(0, 0)
	_, path := newBoard(t, func(q []byte) []byte {
		if q[0] == 9 {
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
		}
		return answer(q)
	})
	ctx := within(t, 10*time.Second)
	p, err := OpenPower(ctx, open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := p.Sync(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if d := at[len(at)-1].Sub(at[0]); len(at) != 8 || d < 7*SyncEvery-10*time.Millisecond {
		t.Errorf("%d syncs within %v, want 8 in no less than %v", len(at), d, 7*SyncEvery)
	}
}

// A line that drops, doubles, delays or flips bytes: each answer is an error or is what the board said, newer than the
// last, and afterwards the line works.
func TestField43BadLine(t *testing.T) {
	for _, kind := range []string{"drop", "double", "flip", "delay", "repeat a frame", "all"} {
		t.Run(kind, func(t *testing.T) { badLine(t, kind) })
	}
}

func badLine(t *testing.T, kind string) {
	b, path := newBoard(t, stepperBoard("Stepper.v0.7.5p8"))
	ctx := within(t, 60*time.Second)
	s, err := OpenStepper(ctx, open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, uint64(len(kind))))
	var late []byte
	b.mu.Lock()
	b.mangle = func(out []byte) []byte {
		k := kind
		if k == "all" {
			k = []string{"drop", "double", "flip", "delay", "repeat a frame"}[r.IntN(5)]
		}
		out = append(late, out...)
		late = nil
		i := r.IntN(len(out))
		switch {
		case r.IntN(4) > 0: // three of four are well
		case k == "drop":
			return append(bytes.Clone(out[:i]), out[i+1:]...)
		case k == "double":
			return append(bytes.Clone(out[:i+1]), out[i:]...)
		case k == "flip":
			out[i] ^= 1 << r.IntN(8)
		case k == "delay":
			late = out // comes with the next answer
			return nil
		default:
			return append(bytes.Clone(out), out...)
		}
		return out
	}
	b.mu.Unlock()
	last, good := time.Duration(0), 0
	for i := range 80 {
		once, cancel := context.WithTimeout(ctx, 60*time.Millisecond)
		st, err := s.Status(once)
		if err == nil {
			good++
			if us := float64(st.Stamp / time.Microsecond); st.Pos != us/8 || st.Vel != 1.5 || st.Stamp <= last {
				t.Fatalf("a wrong value was taken: %+v after %v", st, last)
			}
			last = st.Stamp
		}
		if i%3 == 0 {
			_ = s.Command(once, Command{Mode: ModeHold, Stiffness: 1})
		}
		cancel()
	}
	b.mu.Lock()
	b.mangle = nil
	for _, q := range b.asked {
		if q[0] == 1 && (len(q) != 39 || q[1] != 2) {
			t.Errorf("the board was told %x", q)
		}
	}
	b.mu.Unlock()
	if good < 10 {
		t.Errorf("only %d of 80 answers came through", good)
	}
	for range 3 {
		_, err = s.Status(ctx)
	}
	if err != nil {
		t.Errorf("the line is well again, and: %v (%+v)", err, s.Counters())
	}
	if c := s.Counters(); c.Calls == 0 || c.CRC+c.Strange+c.Late+c.Timeouts == 0 {
		t.Errorf("nothing was counted: %+v", c)
	}
}

// A board that falls silent is an error within its second, and its late answer is not taken for the next one.
func TestField43Silence(t *testing.T) {
	b, path := newBoard(t, stepperBoard("Stepper.v0.7.5p8"))
	ctx := within(t, 20*time.Second)
	s, err := OpenStepper(ctx, open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	var held []byte
	b.mu.Lock()
	b.mangle = func(out []byte) []byte { held = bytes.Clone(out); return nil }
	b.mu.Unlock()
	began := time.Now()
	if _, err := s.Status(ctx); !errors.Is(err, ErrSilent) {
		t.Errorf("%v", err)
	}
	if d := time.Since(began); d < 900*time.Millisecond || d > 3*time.Second {
		t.Errorf("it took %v", d)
	}
	b.mu.Lock()
	b.mangle = nil
	_, _ = b.tty.Write(held) // the answer, late
	b.mu.Unlock()
	st, err := s.Status(ctx)
	if err != nil || st.Stamp != 21*time.Millisecond {
		t.Errorf("%+v, %v", st, err)
	}
	if c := s.Counters(); c.Timeouts != 1 || c.Late != 1 {
		t.Errorf("%+v", c)
	}
}

// A board that says the same again, or whose clock goes back, is not believed.
func TestStaleAnswer(t *testing.T) {
	us := []uint64{5000, 6000, 6000, 10, 20}
	n := -1
	_, path := newBoard(t, func(q []byte) []byte {
		if q[0] == 17 {
			return infoOf("Stepper.6", "Stepper.v0.7.5p8", 0)
		}
		n++
		return stepperStatusOf(1, 0, 0, us[n])
	})
	ctx := within(t, 10*time.Second)
	s, err := OpenStepper(ctx, open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, nil, ErrStale, ErrStale, ErrRestarted} {
		if _, err := s.Status(ctx); !errors.Is(err, want) {
			t.Errorf("answer %d: %v, want %v", i, err, want)
		}
	}
}
