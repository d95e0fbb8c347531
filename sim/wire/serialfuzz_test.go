package wire

import (
	"bytes"
	"math"
	"testing"
	"time"

	"viad/sim"
)

// still is the works of a robot that stands at 0, without a twin.
func still(t *testing.T) (*works, *sim.Reading) {
	t.Helper()
	w, err := newWorks(SerialFaults{NoSync: true})
	must(t, err)
	w.now = time.Unix(1, 0)
	r := &sim.Reading{Now: w.now, Step: 2 * time.Millisecond, Aperture: 0.04, Axes: make([]sim.Axis, axisMost)}
	w.begin(r, true)
	return w, r
}

// run lets a few time steps pass and returns what the axes were told.
func (w *works) run(r *sim.Reading, axes []sim.Drive, jaw *sim.JawDrive) {
	for range 3 {
		r.Now = r.Now.Add(r.Step)
		w.govern(r, axes, jaw)
	}
}

// Whatever a line brings, by whatever pieces: a board answers with whole frames alone, and keeps no more than a frame.
func FuzzSerialBoardLine(f *testing.F) {
	f.Add([]byte{0x05, 0xce, 0x03, 0xd1, 0x15, 0}, 3)
	f.Add(append(packed(100), append(packed(104, 17), packed(106)...)...), 5)
	f.Add(append(packed(201, 1, 2, 3), packed(204, 0, 0, 9)...), 1)
	f.Add([]byte{255, 254, 1, 0, 0, 0, 2, 0}, 2)
	f.Fuzz(func(t *testing.T, line []byte, cut int) {
		echo := func(q []byte) []byte { return append([]byte{q[0] + 1}, q...) }
		whole, parts := mainboard{answer: echo}, mainboard{answer: echo}
		out := whole.hear(line)
		cut = max(0, min(cut, len(line)))
		if got := append(parts.hear(line[:cut]), parts.hear(line[cut:])...); !bytes.Equal(got, out) {
			t.Errorf("cut at %d: % x, whole: % x", cut, got, out)
		}
		if len(whole.raw) >= frameMost || len(whole.in) > rpcMost {
			t.Errorf("it keeps %d and %d bytes", len(whole.raw), len(whole.in))
		}
		for _, one := range bytes.SplitAfter(out, []byte{0}) {
			if len(one) == 0 {
				continue
			}
			if content, ok := unframe(bytes.TrimSuffix(one, []byte{0})); !ok || len(one) > frameMost {
				t.Errorf("% x is an answer with % x in it", one, content)
			}
		}
	})
}

// Whatever a request says, no axis is told anything that is no number.
func FuzzSerialBoardRequest(f *testing.F) {
	f.Add(uint8(0), append([]byte{1, 5}, floats(1, 2, 3, 1, 0, 0, 0)...))
	f.Add(uint8(3), append(append([]byte{1, 6}, floats(0, 1e30, 1e30, 1, 0, 0, 0)...), 0))
	f.Add(uint8(5), []byte{5, 0, 1, 0, 0})
	f.Add(uint8(5), []byte{3})
	f.Add(uint8(1), append([]byte{9, 1, 0, 0, 0}, floats(math.Inf(1))...))
	f.Fuzz(func(t *testing.T, board uint8, q []byte) {
		if len(q) == 0 {
			return
		}
		w, r := still(t)
		var reply []byte
		if i := int(board) % (motors + 1); i < motors {
			reply = w.askMotor(i, q)
		} else {
			reply = w.askPower(q)
		}
		if len(reply) > 0 && reply[0] != q[0]+1 {
			t.Errorf("request %d was answered with %d", q[0], reply[0])
		}
		w.check(t, r)
	})
}

func (w *works) check(t *testing.T, r *sim.Reading) {
	t.Helper()
	axes, jaw := make([]sim.Drive, axisMost), sim.JawDrive{}
	w.run(r, axes, &jaw)
	for i, d := range axes {
		if s := d.X + d.V + d.A; math.IsNaN(s) || math.Abs(s) > 1e5 {
			t.Errorf("axis %d was told %+v", i, d)
		}
	}
	if s := jaw.Aperture + jaw.Speed; math.IsNaN(s) || math.Abs(s) > 1 {
		t.Errorf("the jaw was told %+v", jaw)
	}
}

// The servos' bus: by whatever pieces, it says the same, in whole packets.
func FuzzSerialServoLine(f *testing.F) {
	f.Add([]byte{0xff, 0xff, 20, 2, 1, 0xe8}, 2)
	f.Add([]byte{0xff, 0xff, 0xff, 20, 4, 2, 0x38, 2, 0xab, 0xff, 0xff, 21, 4, 3, 0x28, 0, 0xbb}, 9)
	f.Add([]byte{0xff, 0xff, 0xfe, 10, 0x83, 42, 2, 20, 0, 0x90, 24, 1, 1, 7}, 4)
	f.Fuzz(func(t *testing.T, line []byte, cut int) {
		w, r := still(t)
		other, _ := still(t)
		one, two := bus{works: w}, bus{works: other}
		out := one.hear(line)
		cut = max(0, min(cut, len(line)))
		if got := append(two.hear(line[:cut]), two.hear(line[cut:])...); !bytes.Equal(got, out) {
			t.Errorf("cut at %d: % x, whole: % x", cut, got, out)
		}
		if len(one.raw) > packetMost+4 {
			t.Errorf("it keeps %d bytes", len(one.raw))
		}
		for rest := out; len(rest) > 0; {
			n := 6
			if len(rest) >= 4 {
				n = int(rest[3]) + 4
			}
			if len(rest) < n || rest[0] != 0xff || rest[1] != 0xff || sum(rest[2:n-1]) != rest[n-1] {
				t.Fatalf("% x is no reply", rest)
			}
			rest = rest[n:]
		}
		if len(line) > 1 { // and as the content of a packet
			w.askServos(line[0], line[1], line[2:])
		}
		w.check(t, r)
	})
}
