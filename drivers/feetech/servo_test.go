package feetech

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
)

const deg = math.Pi / 180

// yaw and roll are joints of a Stretch 4's wrist: one turns against its servo, one with it.
func yaw() Joint {
	return Joint{ID: 20, Name: "wrist yaw", Gear: 2, Reversed: true}.Range(-65*deg, 245*deg)
}

func roll() Joint { return Joint{ID: 22, Name: "wrist roll", Gear: 2}.Range(-65*deg, 245*deg) }

// The numbers are those of the robot's own arithmetic, done by hand: 65 degrees are 739.55 ticks, cut to 739, twice that is
// the way from the lower stop to zero; a quarter of a turn of the joint is 2048 ticks of its servo.
func TestTicks(t *testing.T) {
	for _, v := range []struct {
		name   string
		j      Joint
		ticks  int
		offset int
		rad    float64
	}{
		{"zero of yaw", yaw(), -1478, 0, 0},
		{"yaw at its stop, where homing found it", yaw(), 1420, 1420, -1478 * math.Pi / 4096},
		{"yaw, a quarter turn on", yaw(), 1420 - 1478 - 2048, 1420, math.Pi / 2},
		{"zero of roll", roll(), 1478, 0, 0},
		{"roll, a quarter turn on", roll(), 1478 + 2048 - 300, -300, math.Pi / 2},
		{"a gripper at its stop", Joint{ID: 24, Gear: 1, Reversed: true}.Range(0, 116.5*deg), 900, 900, 0},
		{"a gripper half a turn on", Joint{ID: 23, Gear: 1}.Range(-100*deg, 300*deg), 1137 + 2048, 0, math.Pi},
	} {
		if got := v.j.Radians(v.ticks, v.offset); math.Abs(got-v.rad) > 1e-12 {
			t.Errorf("%s: %v rad, want %v", v.name, got, v.rad)
		}
		if got := v.j.Ticks(v.rad, v.offset); got != v.ticks {
			t.Errorf("%s: %d ticks, want %d", v.name, got, v.ticks)
		}
	}
}

// Sign and magnitude, and not two's complement.
func TestSigned(t *testing.T) {
	for _, v := range []struct {
		w    uint16
		bit  int
		want int
	}{
		{0, 15, 0},
		{1, 15, 1},
		{0x8001, 15, -1},
		{0x7fff, 15, 32767},
		{0xffff, 15, -32767},
		{0x8000, 15, 0},
		{1023, 10, 1023},
		{1024 + 5, 10, -5},
	} {
		if got := signed(v.w, v.bit); got != v.want {
			t.Errorf("%#04x, sign in bit %d: %d, want %d", v.w, v.bit, got, v.want)
		}
		if v.want != 0 && unsigned(v.want, v.bit) != v.w {
			t.Errorf("%d: %#04x, want %#04x", v.want, unsigned(v.want, v.bit), v.w)
		}
	}
}

// A goal in one packet: 7 rad/s are 7 * 2 * 4096 / 2 pi = 9126.5 ticks/s, 7 rad/s² 91.3 units of 100 ticks/s²; both down.
func TestGoalBytes(t *testing.T) {
	got, err := yaw().encode(Goal{Position: math.Pi / 2, Speed: 7, Accel: 7}, 1420)
	want := []byte{91, 0x3a, 0x88, 0, 0, 0xa6, 0x23} // -2106 is 0x083a with its sign; 9126 is 0x23a6
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("% x, %v, want % x", got, err, want)
	}
}

// What would reach the servo as a zero, or past a limit, is refused, whatever the numbers are.
func TestNoGoalWithoutLimit(t *testing.T) {
	least, most := yaw().Accels()
	for _, v := range []struct {
		name string
		g    Goal
		ok   bool
	}{
		{"as slow as can be", Goal{0, yaw().Slowest(), 1}, true},
		{"slower", Goal{0, 0.0049, 1}, false},
		{"not at all", Goal{0, 0, 1}, false},
		{"backwards", Goal{0, -1, 1}, false},
		{"no number of a speed", Goal{0, math.NaN(), 1}, false},
		{"without end", Goal{0, math.Inf(1), 1}, false},
		{"faster than the register", Goal{0, 26, 1}, false},
		{"as gently as can be", Goal{0, 1, least}, true},
		{"more gently", Goal{0, 1, least * 0.99}, false},
		{"as hard as can be", Goal{0, 1, most}, true},
		{"harder", Goal{0, 1, most * 1.01}, false},
		{"no acceleration", Goal{0, 1, 0}, false},
		{"no number of an acceleration", Goal{0, 1, math.NaN()}, false},
		{"at the upper limit", Goal{245 * deg, 1, 1}, true},
		{"past it", Goal{245.1 * deg, 1, 1}, false},
		{"no number of a place", Goal{math.NaN(), 1, 1}, false},
	} {
		b, err := yaw().encode(v.g, 0)
		var no *Refused
		if v.ok != (err == nil) || !v.ok && !errors.As(err, &no) {
			t.Errorf("%s: % x, %v", v.name, b, err)
		}
		if err == nil && goalAllowed(20, b) != nil {
			t.Errorf("%s: % x is no goal", v.name, b)
		}
	}
}

func FuzzGoal(f *testing.F) {
	f.Add(0.5, 0.005, 0.1, 100)
	f.Add(-1.1, 1e-9, 1e300, -40000)
	f.Fuzz(func(t *testing.T, at, speed, accel float64, offset int) {
		b, err := roll().encode(Goal{at, speed, accel}, offset%65536)
		if err != nil {
			return
		}
		if err := goalAllowed(22, b); err != nil {
			t.Fatal(err)
		}
		ticks := signed(word(b[1:]), 15)
		if got := roll().Radians(ticks, offset%65536); math.Abs(got-at) > 4e-4 {
			t.Errorf("%v rad became %v", at, got)
		}
		if v := float64(word(b[5:])) * math.Pi / 4096; v > speed*(1+1e-5) {
			t.Errorf("%v rad/s became %v", speed, v)
		}
		if a := float64(b[0]) * 100 * math.Pi / 4096; a > accel*(1+1e-5) {
			t.Errorf("%v rad/s² became %v", accel, a)
		}
	})
}

// servoOn is a servo that is homed at 1420 ticks and stands at 358, in a chain.
func servoOn(j Joint, line func(*chain) *memory) (*chain, *Servo) {
	c := newChain(j.ID)
	c.put(j.ID, 50, 1, 0, 0x8c, 0x05)
	c.put(j.ID, 56, 0x66, 0x01, 0x64, 0x80, 0xfa, 0x04) // 358; -100 ticks/s; -250 of 1000
	c.put(j.ID, 65, 0, 1)
	c.put(j.ID, 69, 0xc8, 0x00)
	return c, NewServo(NewBus(line(c), Config{}), j)
}

func plain(c *chain) *memory { return &memory{chain: c} }

func TestReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := servoOn(yaw(), plain)
		r, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := Reading{ // by hand: 358 - 1420 + 1478 = 416 ticks against the joint; 100 ticks/s and 250/1000 against it too
			Position: -416 * math.Pi / 4096, Velocity: 100 * math.Pi / 4096, Load: 0.25, Current: 1.3, Voltage: 24, Celsius: 31,
			Moving: true, Torque: true, Calibrated: true, Offset: 1420, Ticks: 358, Speed: 100, Accel: 20,
		}
		if d := r.Position - want.Position; math.Abs(d) > 1e-12 {
			t.Errorf("%v rad, want %v", r.Position, want.Position)
		}
		r.Position, r.Velocity, r.Current = want.Position, math.Round(r.Velocity*1e12)/1e12, math.Round(r.Current*1e9)/1e9
		want.Velocity = math.Round(want.Velocity*1e12) / 1e12
		if r != want {
			t.Errorf("%+v\nwant %+v", r, want)
		}
		c.put(20, 50, 0) // its power was gone: it does not know where the joint is
		if r, err = s.Read(t.Context()); err != nil || r.Calibrated || !math.IsNaN(r.Position) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// Row 44: a servo that is limp, in another mode or not homed gets no goal, which would switch its torque on.
func TestField44NoGoalFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := servoOn(yaw(), plain)
		g := Goal{0.1, 1, 2}
		var no *Refused
		if err := s.Go(t.Context(), g); !errors.As(err, &no) {
			t.Errorf("unread: %v", err)
		}
		for _, v := range []struct {
			name string
			reg  byte
			bad  byte
			hold bool // it may be told to hold
		}{
			{"no torque", 40, 0, false}, {"PWM mode", 33, 2, false}, {"not homed", 50, 0, true},
		} {
			good := c.servos[20][v.reg]
			c.put(20, v.reg, v.bad)
			if _, err := s.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			was := *c.servos[20]
			if err := s.Go(t.Context(), g); !errors.As(err, &no) {
				t.Errorf("%s: %v", v.name, err)
			}
			if *c.servos[20] != was {
				t.Errorf("%s: something was written", v.name)
			}
			if err := s.Hold(t.Context(), 1, 2); v.hold != (err == nil) {
				t.Errorf("%s, hold: %v", v.name, err)
			}
			c.put(20, v.reg, good)
		}
		if _, err := s.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Hold(t.Context(), 1, 2); err != nil || !bytes.Equal(c.servos[20][42:44], []byte{0x66, 0x01}) {
			t.Errorf("it holds at % x, %v", c.servos[20][42:44], err)
		}
		if err := s.Torque(t.Context(), false); err != nil || c.servos[20][40] != 0 {
			t.Errorf("%v", err)
		}
		if err := s.Go(t.Context(), g); !errors.As(err, &no) {
			t.Errorf("a goal after the torque was switched: %v", err)
		}
	})
}

// Two flipped bits can leave the sum as it was. A position that came of it is far from the one before, is read again and
// is not believed.
func TestFlipsThatTheSumMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bent := 0
		_, s := servoOn(yaw(), func(c *chain) *memory {
			return &memory{chain: c, mangle: func(p []byte, toServo bool) ([][]byte, []held) {
				at := bytes.Index(p, []byte{0x66, 0x01, 0x64, 0x80}) // the position
				if toServo || at < 0 || bent == 0 {
					return [][]byte{p}, nil
				}
				bent--
				p = slices.Clone(p)
				p[at+1] |= 0x10 // 4096 ticks more
				p[at+3] &^= 0x80
				p[at+2] |= 0x10
				p[len(p)-1] = checksum(p[2 : len(p)-1])
				return [][]byte{p}, nil
			}}
		})
		good, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bent = 1
		var unsure *Unsure
		if r, err := s.Read(t.Context()); !errors.As(err, &unsure) {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := s.Read(t.Context()); err != nil || r.Position != good.Position {
			t.Errorf("afterwards: %+v, %v", r, err)
		}
	})
}

// While the servo is moved by hand (no goal of ours), readings follow it.
func TestFollowsAHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := servoOn(roll(), plain)
		at := 0
		c.lives = func(_ byte, r *[128]byte) {
			at += 300 // 15,000 ticks/s at 50 Hz
			r[56], r[57] = byte(at), byte(at>>8)
		}
		last := math.Inf(-1)
		for range 20 {
			r, err := s.Read(context.WithoutCancel(t.Context()))
			if err != nil || !(r.Position > last) {
				t.Fatalf("%+v after %v, %v", r, last, err)
			}
			last = r.Position
		}
	})
}
