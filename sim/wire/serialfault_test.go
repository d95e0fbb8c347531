package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// await polls until f is true.
func (b *bench) await(what string, f func() bool) {
	b.t.Helper()
	for end := time.Now().Add(15 * time.Second); !f(); {
		if time.Now().After(end) {
			b.t.Fatalf("%s: did not come; %v, %v", what, b.twin.State().Q, b.face.Violations())
		}
		_ = b.pull("hello-power-periph", 3) // takes some of the time
	}
}

// violated says whether exactly these words are in the violations, one in each.
func (b *bench) violated(words ...string) {
	b.t.Helper()
	v := b.face.Violations()
	if len(v) != len(words) {
		b.t.Fatalf("%d violations, not %d: %v", len(v), len(words), v)
	}
	for i, w := range words {
		if !strings.Contains(v[i], w) {
			b.t.Errorf("%q says nothing of %q", v[i], w)
		}
	}
}

// powerState is the state and the cause of a runstop, from a status of p12: 145 bytes with its number.
func (b *bench) powerState() (state uint32, cause byte) {
	b.t.Helper()
	in := b.pull("hello-power-periph", 3)
	if len(in) != 145 {
		b.t.Fatalf("the power board's status has %d bytes", len(in))
	}
	return binary.LittleEndian.Uint32(in[81:]), in[137]
}

// The lengths by the board's protocol, counted by hand: 17 floats of the IMU, 3 more, u32, u64, u16, 2 floats, u8, float,
// 2 u8, u16, 6 floats, 2 u8; p11 has a u16 more, p12 a float and a u8.
func TestSerialPowerLayouts(t *testing.T) {
	t.Parallel()
	for p, n := range map[string]int{"p8": 137, "p10": 137, "p11": 139, "p12": 144, "p13": 144} {
		b := onSerial(t, SerialFaults{Power: p, LongNames: true})
		in := b.pull("hello-power-periph", 3)
		if in[0] != 4 || len(in) != n+1 {
			t.Errorf("%s: %d bytes", p, len(in)-1)
		}
		if info := b.pull("hello-power-periph", 7); len(info) != 51 || !bytes.Contains(info, []byte("hello-pimu2.v")) || !bytes.Contains(info, []byte(p+"\x00")) {
			t.Errorf("%s: %q", p, info)
		}
		if info := b.pull("hello-motor-omni-1", 17); len(info) != 52 || info[51] != 2 {
			t.Errorf("%q", info)
		}
	}
}

// A runstop puts the boards into SAFETY; after it is reset they stay there until a new command comes.
func TestSerialRunstop(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{NoSync: true})
	from := b.status("hello-motor-lift").Pos
	up := func() { b.order("hello-motor-lift", 5, from+0.2*liftMetre, 0.2*liftMetre, 1*liftMetre, 0) }
	up()
	b.until("hello-motor-lift", "moving", func(r reading) bool { return r.Pos > from+0.05*liftMetre })
	b.face.Runstop(true)
	r := b.until("hello-motor-lift", "the runstop", func(r reading) bool { return r.Diag&2 != 0 && math.Abs(float64(r.Vel)) < 0.01 })
	if r.Mode != 0 {
		t.Errorf("%+v", r)
	}
	up() // while it is stopped: lost
	if s, c := b.powerState(); s&16 == 0 || c != 1 {
		t.Errorf("state %b, cause %d", s, c)
	}
	b.push("hello-power-periph", 5, 2, 0, 0, 0)
	if s, c := b.powerState(); s&16 != 0 || c != 0 {
		t.Errorf("after the reset: state %b, cause %d", s, c)
	}
	time.Sleep(300 * time.Millisecond)
	if now := b.status("hello-motor-lift"); now.Mode != 0 || !near(now.Pos, r.Pos, 0.05) {
		t.Errorf("it moved by itself: %+v", now)
	}
	up()
	b.until("hello-motor-lift", "the end", func(r reading) bool { return near(r.Pos, from+0.2*liftMetre, 0.1) })
	b.push("hello-power-periph", 5, 0, 1, 0, 0)
	if s, c := b.powerState(); s&16 == 0 || c != 2 {
		t.Errorf("runstop by trigger: state %b, cause %d", s, c)
	}
	b.violated()
}

func TestSerialSyncTooFast(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{})
	for range 25 {
		b.sync()
		time.Sleep(12 * time.Millisecond)
	}
	if s, _ := b.powerState(); s&16 != 0 {
		t.Fatal("a sync every 12 ms is not too fast")
	}
	for range 60 {
		b.sync()
	}
	if s, c := b.powerState(); s&16 == 0 || c != 2 {
		t.Errorf("state %b, cause %d", s, c)
	}
	if v := b.face.Violations(); len(v) != 1 || !strings.Contains(v[0], "syncs") {
		t.Error(v)
	}
}

// A relative move counts once, whatever its number is told again.
func TestSerialRelativeMoveRepeated(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{NoSync: true, Stepper: "p8"})
	const move = math.Pi // half a turn of the motor
	for _, k := range []byte{7, 7, 7} {
		b.order("hello-motor-omni-2", 8, move, 10, 20, k)
	}
	b.until("hello-motor-omni-2", "the end", func(r reading) bool { return r.Diag&128 == 0 && r.Pos > 1 })
	time.Sleep(200 * time.Millisecond)
	if r := b.status("hello-motor-omni-2"); !near(r.Pos, move, 0.15) {
		t.Errorf("it went %.3f rad, not %.3f", r.Pos, move)
	}
	b.order("hello-motor-omni-2", 8, move, 10, 20, 8)
	b.until("hello-motor-omni-2", "the second", func(r reading) bool { return near(r.Pos, 2*move, 0.15) })
}

func TestSerialUnplug(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{NoSync: true})
	port, link := "hello-motor-lift", filepath.Join(b.dir, "hello-motor-lift")
	was, err := os.Readlink(link)
	must(t, err)
	from := b.status(port).Pos
	b.order(port, 5, from+0.1*liftMetre, 0.3*liftMetre, 1*liftMetre, 0)
	must(t, b.face.Unplug(port))
	if _, err := os.Lstat(link); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the name is still there: %v", err)
	}
	if n, err := b.port(port).Read(make([]byte, 8)); n > 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	b.await("the board goes on", func() bool { return near(b.joint("lift_joint"), from/liftMetre+0.1, 0.01) })
	hold, err := os.OpenFile(was, os.O_RDWR|syscall.O_NOCTTY, 0) // a name that something else may get
	if err == nil {
		defer func() { must(t, hold.Close()) }()
	}
	must(t, b.face.Replug(port))
	must(t, b.ports[port].Close())
	delete(b.ports, port)
	b.until(port, "the end, after the replug", func(r reading) bool { return near(r.Pos, from+0.1*liftMetre, 0.03) })
	// Whoever closes a port and opens it again finds it as it was.
	must(t, b.ports[port].Close())
	delete(b.ports, port)
	if r := b.status(port); !near(r.Pos, from+0.1*liftMetre, 0.1) || r.Diag&1 == 0 {
		t.Errorf("after another opening: %+v", r)
	}
	if err := b.face.Unplug("hello-motor-left"); err == nil {
		t.Error("there is no such port")
	}
}

// A board that starts anew in the middle of a motion holds still, is not homed and counts from where it is.
func TestSerialReboot(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{NoSync: true})
	port := "hello-motor-lift"
	from := b.status(port).Pos
	b.order(port, 5, from+0.2*liftMetre, 0.2*liftMetre, 1*liftMetre, 0)
	b.until(port, "moving", func(r reading) bool { return r.Pos > from+0.05*liftMetre })
	must(t, b.face.Reboot(port))
	r := b.until(port, "rest", func(r reading) bool { return math.Abs(float64(r.Vel)) < 0.01 })
	if r.Mode != 0 || r.Diag&1 != 0 || math.Abs(r.Pos) > 2 || r.Time > 5e6 {
		t.Errorf("%+v", r)
	}
	b.order(port, 5, 1, 5, 5, 0)
	b.violated("not homed")
}

// What a goal without a speed does, and what one with a speed does not.
func TestSerialSpeedZero(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{})
	const per = 4096 / math.Pi
	x := word(b.servoRead(22, 56, 2))
	b.servoWrite(22, append([]byte{46}, words(0.5*per)...)...)
	b.servoWrite(22, append([]byte{42}, words(x+0.4*per)...)...)
	b.await("slowly", func() bool { return near(word(b.servoRead(22, 56, 2)), x+0.4*per, 15) })
	if f := b.face.Fastest(); f > 0.8 {
		t.Errorf("with a limit it did %.2f rad/s", f)
	}
	b.violated()
	b.servoWrite(22, 46, 0, 0)
	b.servoWrite(22, append([]byte{42}, words(x-0.9*per)...)...)
	b.await("fast", func() bool { return near(word(b.servoRead(22, 56, 2)), x-0.9*per, 15) })
	if f := b.face.Fastest(); f < 5 {
		t.Errorf("without a limit it did %.2f rad/s", f)
	}
	b.violated("speed 0")
}

// The parallel gripper's servo and its aperture, by the linkage drawn with points: the crank's pin, the rod, the slider.
func TestSerialGripper(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{})
	home := word(b.servoRead(24, 52, 2))
	aperture := func(ticks float64) float64 {
		phi := (ticks-home)*-1*2*math.Pi/4096 + (90-44)*math.Pi/180 // of the crank, from the side of the finger's way
		pinX, pinY := 22*math.Cos(phi), 22*math.Sin(phi)
		for side := 5.0; side < 60; side += 0.001 { // where the rod's other end meets the finger's line
			if math.Hypot(side+pinX, pinY) >= 30.25 && side > -pinX {
				return (side - 10.5) * 2e-3
			}
		}
		return -1
	}
	if x := word(b.servoRead(24, 56, 2)); !near(aperture(x), b.twin.State().Jaw.Aperture, 1e-3) {
		t.Errorf("at %v ticks the aperture is %.4f, by the linkage %.4f", x, b.twin.State().Jaw.Aperture, aperture(x))
	}
	b.servoWrite(24, append([]byte{46}, words(1500)...)...)
	for _, goal := range []float64{home - 400, home - 1325, home} {
		b.servoWrite(24, append([]byte{42}, words(goal)...)...)
		b.await("the jaw", func() bool { return near(b.twin.State().Jaw.Aperture, aperture(goal), 1e-3) })
	}
	b.violated()
}

func TestSerialServoFaults(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{DropReplies: 0.3, Seed: 5})
	lost := 0
	for range 60 {
		if _, _, err := b.quick(20, 1); err != nil {
			lost++
		}
	}
	if lost < 8 || lost > 30 {
		t.Errorf("%d of 60 replies were lost, of 3 in 10", lost)
	}
	b.face.Set(func(f *SerialFaults) { f.DropReplies, f.Silent, f.Frozen = 0, 20, 21 })
	if _, _, err := b.quick(20, 1); !errors.Is(err, errSilent) {
		t.Errorf("a silent servo: %v", err)
	}
	was := b.servoRead(21, 56, 4)
	goal := word(was) - 300
	b.servoWrite(21, append([]byte{46}, words(2000)...)...)
	b.servoWrite(21, append([]byte{42}, words(goal)...)...)
	pitch := b.joint("wrist_pitch_joint")
	b.await("the frozen servo moves", func() bool { return near(b.joint("wrist_pitch_joint"), pitch+300*math.Pi/4096, 0.02) })
	if now := b.servoRead(21, 56, 4); !bytes.Equal(now, was) {
		t.Errorf("a frozen servo reads % x and then % x", was, now)
	}
	b.face.Set(func(f *SerialFaults) { f.Silent, f.Frozen, f.Overload = 0, 0, 22 })
	if e, _, err := b.servoAsk(22, 1); e != 32 || err != nil || b.servoRead(22, 65, 1)[0] != 32 {
		t.Errorf("overload: %d, %v", e, err)
	}
	b.violated()
}

// quick asks with little patience.
func (b *bench) quick(id, inst byte) (byte, []byte, error) {
	b.patience = 30 * time.Millisecond
	defer func() { b.patience = 0 }()
	return b.servoAsk(id, inst)
}

// Servos that lost their power have no torque, no limits of speed and are not homed.
func TestSerialServoPower(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{})
	b.servoWrite(20, append([]byte{46}, words(900)...)...)
	roll := word(b.servoRead(22, 56, 2))
	must(t, b.face.Reboot("hello-feetech-wrist"))
	if turns := (word(b.servoRead(22, 56, 2)) - roll) / 4096; !near(turns, 1, 0.01) || roll > 0 {
		t.Errorf("roll read %v ticks and now %.3f turns more, not within one", roll, turns)
	}
	if m := b.servoRead(20, 40, 14); !bytes.Equal(m, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0xe0, 1, 0, 0, 0, 0}) {
		t.Errorf("% x", m)
	}
	b.await("a loose wrist droops", func() bool { return math.Abs(b.joint("wrist_pitch_joint")) > 0.05 })
	b.servoWrite(21, 40, 1)
	x := b.joint("wrist_pitch_joint")
	time.Sleep(300 * time.Millisecond)
	if now := b.joint("wrist_pitch_joint"); !near(now, x, 0.15) {
		t.Errorf("with its torque back it went from %.3f to %.3f", x, now)
	}
}

func TestSerialBattery(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{Unhomed: true})
	if r := b.status("hello-motor-arm"); r.Diag&1 != 0 || b.servoRead(20, 50, 1)[0] != 0 {
		t.Errorf("%+v", r)
	}
	b.face.Set(func(f *SerialFaults) { f.LowBattery, f.Tilt = true, true })
	b.await("the runstop", func() bool { s, c := b.powerState(); return s&16 != 0 && c == 3 })
	in := b.pull("hello-power-periph", 3)[1:]
	if s, _ := b.powerState(); s&(256|512) != 256|512 || in[107] != 8 || in[102] != 3 {
		t.Errorf("state %b, charge %d, tilt %d", s, in[107], in[102])
	}
	pitch := math.Float32frombits(binary.LittleEndian.Uint32(in[40:]))
	if !near(float64(pitch), 12, 1e-3) {
		t.Errorf("a pitch of %v degrees", pitch)
	}
}

// What must not be written is known afterwards, each by its kind.
func TestSerialViolations(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{})
	b.push("hello-motor-arm", append([]byte{5}, make([]byte, 105)...)[:50]...)
	b.push("hello-motor-arm", append([]byte{9, 8, 0, 0, 0}, floats(0)...)...)
	b.push("hello-motor-arm", append([]byte{9, 2, 0, 0, 0}, floats(0)...)...) // the generator: harmless
	b.push("hello-power-periph", 5, 0, 0, 0x20, 0)
	b.push("hello-power-periph", 5, 0, 2, 0, 0) // a beep
	b.servoWrite(20, 5, 99)
	b.servoWrite(20, 52, 0, 0)
	b.order("hello-motor-arm", 5, 60, 10, 10, 0)
	b.order("hello-motor-arm", 6, 0, 200, 10, 0)
	b.servoWrite(20, 46, 100, 0)
	b.servoWrite(20, append([]byte{42}, words(-9000)...)...)
	b.violated("request 5", "trigger 8", "trigger 2097152", "register 5", "homed to", "outside 0 to 0.52", "speed of 200", "servo 20: a goal of")
	// Gains can be read: 20 floats, the flags of the arm, 8 bytes more, and 16 of p8.
	g := b.pull("hello-motor-arm", 13)
	if g[0] != 14 || len(g) != 1+80+1+8+16 || g[81] != 2|4|8|64 {
		t.Errorf("% x", g)
	}
}

// The lift that meets the table stops by itself, and says why.
func TestSerialContact(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{NoSync: true})
	b.order("hello-motor-lift", 6, 0, 0.3*liftMetre, 2*liftMetre, 0)
	for {
		r := b.status("hello-motor-lift")
		if r.Diag&512 != 0 {
			if r.Mode != 0 || r.Events != 1 || !near(b.joint("lift_joint"), 1.2, 0.03) {
				t.Errorf("at %.3f m: %+v", b.joint("lift_joint"), r)
			}
			break
		}
		if r.Mode == 0 {
			t.Fatalf("it stopped without a contact: %+v", r)
		}
		b.order("hello-motor-lift", 6, 0, 0.3*liftMetre, 2*liftMetre, 0)
		time.Sleep(50 * time.Millisecond)
	}
	b.order("hello-motor-lift", 5, 1.1*liftMetre, 0.3*liftMetre, liftMetre, 0)
	b.until("hello-motor-lift", "away from it", func(r reading) bool { return r.Diag&512 == 0 && near(r.Pos, 1.1*liftMetre, 0.1) })
}

// A line that spoils bytes: no command with a wrong checksum is taken, and the boards' lines find together again.
func TestSerialNoise(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{Seed: 3, NoSync: true, Lines: []LineFault{{Port: "hello-motor-lift", Flip: 0.01, Drop: 0.01, Duplicate: 0.01, Requests: true}}})
	port := b.port("hello-motor-lift")
	from := b.joint("lift_joint")
	c := append([]byte{202, 1, 5}, floats(from*liftMetre, 1, 1, 1, 0, 0, 0)...)
	c = append(append(c, 0), floats(1, 1)...)
	answers := 0
	for range 300 {
		_, err := port.Write(packed(c...))
		must(t, err)
		must(t, port.SetReadDeadline(time.Now().Add(5*time.Millisecond)))
		in := make([]byte, 64)
		if n, err := port.Read(in); err == nil && slices.Equal(in[:n], packed(205, 2, in[min(3, n-1)], in[min(4, n-1)])) {
			answers++
		}
	}
	if answers == 0 {
		t.Log("no answer came whole")
	}
	b.face.Set(func(f *SerialFaults) { f.Lines = nil })
	_, err := port.Write([]byte{0})
	must(t, err)
	must(t, port.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
	for junk := make([]byte, 4096); err == nil; {
		_, err = port.Read(junk)
	}
	r := b.status("hello-motor-lift")
	if q := b.joint("lift_joint"); !near(q, from, 0.002) || r.Mode != 5 {
		t.Errorf("the lift went from %.4f to %.4f: %+v", from, q, r)
	}
	b.violated()
}

// A late answer comes late.
func TestSerialDelay(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{Lines: []LineFault{{Delay: 150 * time.Millisecond}}})
	began := time.Now()
	b.status("hello-motor-arm")
	if d := time.Since(began); d < 150*time.Millisecond {
		t.Errorf("an answer after %v", d)
	}
}

// A world that is placed anew: the boards read where they stand, and go on from there.
func TestSerialReset(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{NoSync: true})
	b.order("hello-motor-lift", 5, 1.1*liftMetre, 0.3*liftMetre, 1*liftMetre, 0)
	b.until("hello-motor-lift", "moving", func(r reading) bool { return r.Pos > 0.9*liftMetre })
	must(t, b.twin.Reset(t.Context(), 2))
	r := b.until("hello-motor-lift", "the start posture", func(r reading) bool { return near(r.Pos, 0.85*liftMetre, 0.2) })
	time.Sleep(300 * time.Millisecond)
	if now := b.status("hello-motor-lift"); !near(now.Pos, r.Pos, 0.2) || math.Abs(float64(now.Vel)) > 0.1 {
		t.Errorf("it went on by itself: %+v", now)
	}
	b.order("hello-motor-lift", 5, 0.9*liftMetre, 0.3*liftMetre, 1*liftMetre, 0)
	b.until("hello-motor-lift", "a new goal", func(r reading) bool { return near(r.Pos, 0.9*liftMetre, 0.1) })
	b.violated()
}

// A lift that is pushed by hand while the runstop is engaged moves faster than a motor may, and no motor moves it.
func TestSerialPush(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{NoSync: true})
	b.face.Runstop(true)
	b.until("hello-motor-lift", "the runstop", func(r reading) bool { return r.Diag&2 != 0 })
	must(t, b.face.Push("hello-motor-lift", -0.6, 1.8))
	b.until("hello-motor-lift", "speed", func(r reading) bool { return float64(r.Vel) < -1.25*liftMetre && r.Mode == 0 })
	b.until("hello-motor-lift", "rest", func(r reading) bool { return near(r.Pos, 0.25*liftMetre, 0.2) })
	b.face.Runstop(false)
	b.face.Set(func(f *SerialFaults) { f.DriverFault = "hello-motor-arm" })
	b.order("hello-motor-arm", 5, 20, 10, 10, 0)
	if r := b.status("hello-motor-arm"); r.Mode != 0 || r.Diag&32 == 0 {
		t.Errorf("a driver with a fault: %+v", r)
	}
	b.violated()
}

// A base without current is not moved by its own arm.
func TestSerialBaseStands(t *testing.T) {
	t.Parallel()
	b := onSerial(t, SerialFaults{NoSync: true})
	from := b.twin.State().Base
	b.order("hello-motor-arm", 5, 45, 0.7/armMetre, 0.7/armMetre, 0)
	b.until("hello-motor-arm", "the end", func(r reading) bool { return near(r.Pos, 45, 0.2) })
	if d := b.twin.State().Base; math.Hypot(d.X-from.X, d.Y-from.Y) > 0.003 {
		t.Errorf("the base went from %+v to %+v", from, d)
	}
	if r := b.status("hello-motor-omni-0"); r.Mode != 0 || math.Abs(r.Pos) > 0.3 {
		t.Errorf("%+v", r)
	}
}
