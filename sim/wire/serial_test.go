package wire

import (
	"bytes"
	"math"
	"testing"
	"time"
)

const (
	liftMetre = 2 * math.Pi / 0.11                      // motor radians per metre: 22 teeth of 5 mm
	armMetre  = 0.009525 * 15 / 2.33333 / (2 * math.Pi) // metres per motor radian
)

// The vectors of the framing, as robots.md has them, and an independent frame.
func TestSerialVectors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ content, line []byte }{
		{[]byte{206, 3}, []byte{0x05, 0xce, 0x03, 0xd1, 0x15, 0}},
		{[]byte{206, 17}, []byte{0x05, 0xce, 0x11, 0xdc, 0x95, 0}},
		{[]byte{206, 7}, []byte{0x05, 0xce, 0x07, 0x12, 0x14, 0}},
		{[]byte{0, 0, 5, 0}, packed(0, 0, 5, 0)},
	} {
		if got := frame(c.content); !bytes.Equal(got, c.line) {
			t.Errorf("% x is framed % x, not % x", c.content, got, c.line)
		}
		if got, ok := unframe(c.line[:len(c.line)-1]); !ok || !bytes.Equal(got, c.content) {
			t.Errorf("% x is unframed % x", c.line, got)
		}
	}
	for _, c := range [][]byte{
		{0xff, 0xff, 20, 2, 1, 0xe8},
		{0xff, 0xff, 20, 4, 2, 0x38, 2, 0xab},
		{0xff, 0xff, 21, 4, 3, 0x28, 0, 0xbb},
	} {
		if id, inst, params, n := packet(c); n != len(c) || id != c[2] || inst != c[4] || !bytes.Equal(params, c[5:len(c)-1]) {
			t.Errorf("% x: servo %d, instruction %d, % x, of %d bytes", c, id, inst, params, n)
		}
	}
}

func TestSerialBoardInfo(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{Stepper: "p7"})
	ask := func(kind byte, content ...byte) []byte {
		in, err := b.turn("hello-motor-arm", append([]byte{kind}, content...)...)
		must(t, err)
		return in
	}
	// The older transport: begin, the request, and the answer in blocks of 32.
	if in := ask(100); in[0] != 101 {
		t.Fatalf("% x", in)
	}
	if in := ask(104, 17); in[0] != 105 {
		t.Fatalf("% x", in)
	}
	first, second := ask(106), ask(106)
	if first[0] != 107 || len(first) != 33 || second[0] != 108 {
		t.Fatalf("% x, % x", first, second)
	}
	info := append(first[1:], second[1:]...)
	if len(info) != 42 || info[0] != 18 || !bytes.HasPrefix(info[1:], []byte("Stepper.6\x00")) ||
		!bytes.HasPrefix(info[21:], []byte("Stepper.v")) || !bytes.Contains(info[21:], []byte("p7\x00")) || info[41] != 4 {
		t.Errorf("%q", info)
	}
	power := b.pull("hello-power-periph", 7)
	if len(power) != 41 || !bytes.Contains(power[21:], []byte("p12\x00")) {
		t.Errorf("%q", power)
	}
}

// A goal of the lift waits for the sync, and then the physics moves it.
func TestSerialLift(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{})
	from := b.status("hello-motor-lift")
	if q := b.joint("lift_joint"); !near(from.Pos, q*liftMetre, 0.01) || from.Mode != 0 || from.Diag&1 == 0 || from.Diag&16384 == 0 {
		t.Fatalf("the lift is at %.4f m: %+v", q, from)
	}
	b.order("hello-motor-lift", 5, from.Pos+0.1*liftMetre, 0.3*liftMetre, 0.3*liftMetre, 0)
	b.until("hello-motor-lift", "waiting for the sync", func(r reading) bool { return r.Diag&2048 != 0 })
	time.Sleep(200 * time.Millisecond)
	if r := b.status("hello-motor-lift"); r.Mode != 0 || !near(r.Pos, from.Pos, 0.05) {
		t.Errorf("without a sync: %+v", r)
	}
	b.sync()
	b.until("hello-motor-lift", "moving", func(r reading) bool { return r.Diag&128 != 0 && r.Vel > 0.1*liftMetre })
	r := b.until("hello-motor-lift", "there", func(r reading) bool { return r.Diag&4 != 0 && r.Diag&128 == 0 })
	if !near(r.Pos, from.Pos+0.1*liftMetre, 0.1) || r.Mode != 5 {
		t.Errorf("%+v", r)
	}
	if q := b.joint("lift_joint"); !near(q, from.Pos/liftMetre+0.1, 0.002) {
		t.Errorf("the physics has the lift at %.4f m", q)
	}
	if v := b.face.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// Three wheels ahead, by hand: two roll by half of the way, the third that lies across it by the whole, backwards. A
// velocity that is not repeated ends after a second.
func TestSerialWheelsWatchdog(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{NoSync: true})
	const v = 0.1 // m/s ahead: motors 0 and 1 at 6 * v / r / 2, motor 2 at -6 * v / r
	x0 := b.twin.State().Base.X
	send := func() {
		b.order("hello-motor-omni-0", 6, 0, 3*v/0.1, 20, 0)
		b.order("hello-motor-omni-1", 6, 0, 3*v/0.1, 20, 0)
		b.order("hello-motor-omni-2", 6, 0, -6*v/0.1, 20, 0)
	}
	send()
	began := b.status("hello-motor-omni-2").Time
	b.until("hello-motor-omni-2", "speed", func(r reading) bool { return near(float64(r.Vel), -6, 0.3) })
	if s := b.twin.State(); !near(s.BaseV.X, v, 0.02) || !near(s.BaseV.Y, 0, 0.02) {
		t.Errorf("the base does %+v", s.BaseV)
	}
	r := b.until("hello-motor-omni-2", "the watchdog", func(r reading) bool { return r.Mode == 0 })
	if d := r.Time - began; d < 950e3 || d > 1200e3 { // by the board's own clock, in microseconds
		t.Errorf("the watchdog took %d us", d)
	}
	r = b.until("hello-motor-omni-2", "rest", func(r reading) bool { return math.Abs(float64(r.Vel)) < 0.05 })
	if x := b.twin.State().Base.X - x0; !near(x, -r.Pos*0.1/6, 0.01) || x < 0.05 || x > 0.2 {
		t.Errorf("the base went %.3f m, and its motor %.3f", x, r.Pos)
	}
}

func TestSerialServo(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{})
	if e, _, err := b.servoAsk(20, 1); e != 0 || err != nil {
		t.Fatal(e, err)
	}
	// yaw: 2 turns of the servo for one, backwards; its zero 1478 ticks before where it was homed, at -65 degrees
	zero := -1478 + word(b.servoRead(20, 52, 2))
	if x := word(b.servoRead(20, 56, 2)); !near(x, zero-b.joint("wrist_yaw_joint")*4096/math.Pi, 4) || b.servoRead(20, 50, 1)[0] != 1 {
		t.Fatalf("yaw at %v ticks, zero at %v, %v rad, flags %v", x, zero, b.joint("wrist_yaw_joint"), b.servoRead(20, 50, 1))
	}
	goal := b.joint("wrist_yaw_joint") + 0.5
	b.servoWrite(20, append([]byte{46}, words(1.0*4096/math.Pi)...)...)
	b.servoWrite(20, 41, 30)
	b.servoWrite(20, append([]byte{42}, words(zero-goal*4096/math.Pi)...)...)
	for end := time.Now().Add(10 * time.Second); !near(b.joint("wrist_yaw_joint"), goal, 0.01); {
		if time.Now().After(end) {
			t.Fatalf("yaw is at %v, not %v", b.joint("wrist_yaw_joint"), goal)
		}
		_ = b.servoRead(20, 56, 15)
	}
	if f := b.face.Fastest(); f < 0.7 || f > 1.3 {
		t.Errorf("yaw did %v rad/s", f)
	}
	if v := b.face.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// To the left, and counter-clockwise, by hand: wheel 2 stands across the way to the left and the others take cos 30 of it,
// wheel 0 backwards; all three turn backwards when the base turns counter-clockwise, by 0.174 m of arm.
func TestSerialWheelsLeftAndTurn(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{})
	send := func(u ...float64) {
		for i, port := range []string{"hello-motor-omni-0", "hello-motor-omni-1", "hello-motor-omni-2"} {
			b.order(port, 6, 0, u[i], 30, 0)
		}
		b.sync() // one for all three
	}
	send(-0.1*51.96, 0.1*51.96, 0)
	b.await("to the left", func() bool {
		v := b.twin.State().BaseV
		return near(v.Y, 0.1, 0.01) && near(v.X, 0, 0.01) && near(v.Yaw, 0, 0.03)
	})
	send(-0.5*10.44, -0.5*10.44, -0.5*10.44)
	b.await("the turn", func() bool {
		v := b.twin.State().BaseV
		return near(v.Yaw, 0.5, 0.05) && near(v.X, 0, 0.02) && near(v.Y, 0, 0.02)
	})
	send(0, 0, 0)
	b.await("rest", func() bool { v := b.twin.State().BaseV; return math.Abs(v.Yaw) < 0.01 })
	b.violated()
}
