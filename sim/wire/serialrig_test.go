package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"viad/sim"
)

// bench is a Stretch on its serial wires, and a client of its ports that has its own bytes.
type bench struct {
	t     *testing.T
	twin  *sim.Twin
	face  *Serial
	dir   string
	ports map[string]*os.File

	patience time.Duration // with an answer; 0: a second
}

func onSerial(t *testing.T, f SerialFaults) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), ports: map[string]*os.File{}}
	var err error
	b.twin, err = sim.NewTwin(sim.Options{Robot: "stretch4", World: "room", Seed: 1, Pace: sim.PaceReal, Light: true})
	must(t, err)
	t.Cleanup(b.twin.Close)
	b.face, err = NewSerial(b.twin, b.dir, f)
	must(t, err)
	run, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.twin.Run(run) })
	wg.Go(func() { _ = b.face.Run(run) })
	t.Cleanup(func() {
		for _, p := range b.ports {
			_ = p.Close()
		}
		must(t, b.face.Close())
		stop()
		wg.Wait()
	})
	return b
}

// port opens one, once.
func (b *bench) port(name string) *os.File {
	b.t.Helper()
	if p := b.ports[name]; p != nil {
		return p
	}
	p, err := os.OpenFile(filepath.Join(b.dir, name), os.O_RDWR|0x100 /* O_NOCTTY */, 0)
	must(b.t, err)
	b.ports[name] = p
	return p
}

var errSilent = errors.New("no answer came")

// say writes bytes and reads until the answer is whole.
func (b *bench) say(port string, out []byte, whole func([]byte) bool) ([]byte, error) {
	b.t.Helper()
	p := b.port(port)
	_, err := p.Write(out)
	if err != nil {
		return nil, err
	}
	patience := time.Second
	if b.patience > 0 {
		patience = b.patience
	}
	must(b.t, p.SetReadDeadline(time.Now().Add(patience)))
	var in []byte
	for buf := make([]byte, 256); !whole(in); {
		n, err := p.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return in, errSilent
		}
		if err != nil {
			return in, err
		}
		in = append(in, buf[:n]...)
	}
	return in, nil
}

// bitwise is Modbus's checksum as a division of the reversed bits by 0x8005.
func bitwise(b []byte) uint16 {
	turn := func(x uint16, n int) (y uint16) {
		for i := range n {
			y |= x >> i & 1 << (n - 1 - i)
		}
		return y
	}
	crc := uint16(0xffff)
	for _, c := range b {
		crc ^= turn(uint16(c), 8) << 8
		for range 8 {
			if top := crc >> 15; top == 1 {
				crc = crc<<1 ^ 0x8005
			} else {
				crc <<= 1
			}
		}
	}
	return turn(crc, 16)
}

// packed is a frame made by splitting at its zeros; its pieces are short.
func packed(content ...byte) []byte {
	crc := bitwise(content)
	var out []byte
	for _, piece := range bytes.Split(append(slices.Clone(content), byte(crc>>8), byte(crc)), []byte{0}) {
		out = append(append(out, byte(len(piece)+1)), piece...)
	}
	return append(out, 0)
}

// unpacked joins the pieces again.
func (b *bench) unpacked(line []byte) []byte {
	b.t.Helper()
	var pieces [][]byte
	for line = bytes.TrimSuffix(line, []byte{0}); len(line) > 0; line = line[line[0]:] {
		pieces = append(pieces, line[1:line[0]])
	}
	plain := bytes.Join(pieces, []byte{0})
	n := len(plain) - 2
	if n < 1 || bitwise(plain[:n]) != binary.BigEndian.Uint16(plain[n:]) {
		b.t.Fatalf("% x is no frame with a right checksum", plain)
	}
	return plain[:n]
}

func framed(b []byte) bool { return len(b) > 0 && b[len(b)-1] == 0 }

func (b *bench) turn(port string, content ...byte) ([]byte, error) {
	b.t.Helper()
	in, err := b.say(port, packed(content...), framed)
	if err != nil {
		return nil, err
	}
	return b.unpacked(in), nil
}

// pull asks for a reply by pieces.
func (b *bench) pull(port string, rpc byte) []byte {
	b.t.Helper()
	var all []byte
	for kind := byte(206); ; kind = 207 {
		in, err := b.turn(port, kind, rpc)
		must(b.t, err)
		all = append(all, in[1:]...)
		if in[0] == 209 {
			return all
		}
		if in[0] != 208 {
			b.t.Fatalf("a pull was answered with %d", in[0])
		}
	}
}

// push sends a request of one piece and returns the reply.
func (b *bench) push(port string, content ...byte) []byte {
	b.t.Helper()
	in, err := b.turn(port, append([]byte{202}, content...)...)
	must(b.t, err)
	if in[0] != 205 {
		b.t.Fatalf("a push was answered with %d", in[0])
	}
	return in[1:]
}

func floats(x ...float64) (b []byte) {
	for _, f := range x {
		b, _ = binary.Append(b, binary.LittleEndian, float32(f))
	}
	return b
}

// order sends SET_COMMAND of p8, without contact settings.
func (b *bench) order(port string, mode byte, x, v, a float64, trigger byte) {
	b.t.Helper()
	c := append([]byte{1, mode}, floats(x, v, a, 1, 0, 0, 0)...)
	c = append(append(c, trigger), floats(1, 1)...)
	if r := b.push(port, c...); r[0] != 2 {
		b.t.Fatalf("a command was answered with %d", r[0])
	}
}

func (b *bench) sync() {
	b.t.Helper()
	if r := b.push("hello-power-periph", 9); r[0] != 10 || len(r) != 3 {
		b.t.Fatalf("a sync was answered with % x", r)
	}
}

// reading is a stepper's status, as a client sees it.
type reading struct {
	Mode     uint8
	Effort   float32
	Pos      float64
	Vel, Err float32
	Diag     uint32
	Time     uint64
	Debug    float32
	Events   uint32
	_        float32
	_        uint16
	Volt     float32
	Temp     float32
}

func (b *bench) status(port string) (r reading) {
	b.t.Helper()
	in := b.pull(port, 3)
	if in[0] != 4 || len(in) != 56 {
		b.t.Fatalf("a status is % x", in)
	}
	must(b.t, binary.Read(bytes.NewReader(in[1:]), binary.LittleEndian, &r))
	return r
}

// until asks a stepper until f is true.
func (b *bench) until(port, what string, f func(reading) bool) reading {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		r := b.status(port)
		if f(r) {
			return r
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s: did not come; %+v", what, r)
		}
	}
}

// servoAsk sends an instruction and returns error byte and data.
func (b *bench) servoAsk(id, inst byte, params ...byte) (byte, []byte, error) {
	b.t.Helper()
	p := append([]byte{0xff, 0xff, id, byte(len(params) + 2), inst}, params...)
	total := 0
	for _, c := range p[2:] {
		total += int(c)
	}
	p = append(p, byte(255-total%256))
	in, err := b.say("hello-feetech-wrist", p, func(r []byte) bool { return len(r) >= 6 && len(r) >= int(r[3])+4 })
	if err != nil {
		return 0, nil, err
	}
	total = 0
	for _, c := range in[2:] {
		total += int(c)
	}
	if in[0] != 255 || in[1] != 255 || in[2] != id || total%256 != 255 {
		b.t.Fatalf("% x is no reply of servo %d", in, id)
	}
	return in[4], in[5 : len(in)-1], nil
}

func (b *bench) servoRead(id, reg, n byte) []byte {
	b.t.Helper()
	_, data, err := b.servoAsk(id, 2, reg, n)
	must(b.t, err)
	if len(data) != int(n) {
		b.t.Fatalf("%d bytes of servo %d, not %d", len(data), id, n)
	}
	return data
}

func (b *bench) servoWrite(id byte, params ...byte) {
	b.t.Helper()
	_, _, err := b.servoAsk(id, 3, params...)
	must(b.t, err)
}

// word is a number of a servo: magnitude and a sign in bit 15.
func word(b []byte) float64 {
	x := float64(b[0]) + 256*float64(b[1]&0x7f)
	return x * (1 - 2*float64(b[1]>>7))
}

func words(x float64) []byte {
	m := uint16(math.Abs(math.Round(x)))
	if x < 0 {
		m += 0x8000
	}
	return []byte{byte(m), byte(m >> 8)}
}

// joint is what the twin itself says.
func (b *bench) joint(name string) float64 {
	b.t.Helper()
	for i, j := range b.twin.Model().Joints {
		if j.Name == name {
			return b.twin.State().Q[i]
		}
	}
	b.t.Fatalf("no joint %s", name)
	return 0
}
