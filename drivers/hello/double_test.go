package hello

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"

	"viad/drivers/serial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A codec of the tests' own: the CRC from a table of the CRC's powers, COBS by cutting at the zeros.

func otherCRC(b []byte) uint16 {
	var table [256]uint16
	for i := range table {
		x := uint16(i)
		for range 8 {
			if x&1 == 1 {
				x = x>>1 ^ 0xa001
			} else {
				x >>= 1
			}
		}
		table[i] = x
	}
	crc := ^uint16(0)
	for _, x := range b {
		crc = table[byte(crc)^x] ^ crc>>8
	}
	return crc
}

func otherFrame(content []byte) []byte {
	raw := binary.BigEndian.AppendUint16(bytes.Clone(content), otherCRC(content))
	var out []byte
	for part := range bytes.SplitSeq(raw, []byte{0}) {
		out = append(append(out, byte(len(part)+1)), part...)
	}
	return append(out, 0)
}

func otherUnframe(wire []byte) ([]byte, bool) {
	var parts [][]byte
	for len(wire) > 0 {
		n := int(wire[0])
		if n == 0 || n > len(wire) {
			return nil, false
		}
		parts = append(parts, wire[1:n])
		wire = wire[n:]
	}
	raw := bytes.Join(parts, []byte{0})
	if len(raw) < 3 {
		return nil, false
	}
	n := len(raw) - 2
	return raw[:n], otherCRC(raw[:n]) == binary.BigEndian.Uint16(raw[n:])
}

// board is a board at the other end of a pseudo-terminal.
type board struct {
	tty    *os.File
	mangle func([]byte) []byte // what becomes of the bytes of an answer; nil: nothing
	old    bool                // knows the old way of chunking only

	mu      sync.Mutex
	answer  func(request []byte) []byte
	asked   [][]byte
	pending []byte // a request that is still coming
	reply   []byte // blocks of the reply that were not fetched yet
	frames  int
}

func newBoard(t *testing.T, answer func([]byte) []byte) (*board, string) {
	t.Helper()
	device, tty, err := pty.Open()
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	path := tty.Name()
	if err := tty.Close(); err != nil {
		t.Fatal(err)
	}
	b := &board{tty: device, answer: answer}
	done := make(chan struct{})
	go func() { defer close(done); b.live() }()
	t.Cleanup(func() { _ = device.Close(); <-done })
	return b, path
}

func (b *board) live() {
	var in []byte
	buf := make([]byte, 512)
	for {
		n, err := b.tty.Read(buf)
		if errors.Is(err, io.EOF) || err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			if pe := new(os.PathError); errors.As(err, &pe) && pe.Err.Error() == "input/output error" {
				continue // nobody has it open
			}
			return
		}
		in = append(in, buf[:n]...)
		for {
			i := bytes.IndexByte(in, 0)
			if i < 0 {
				break
			}
			content, ok := otherUnframe(in[:i])
			in = in[i+1:]
			if ok {
				b.heard(content)
			}
		}
	}
}

func (b *board) heard(c []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.frames++
	switch c[0] {
	case 100:
		b.pending = nil
		b.say(101)
	case 102:
		b.pending = append(b.pending, c[1:]...)
		b.say(103)
	case 104:
		b.take(append(b.pending, c[1:]...))
		b.say(105)
	case 106:
		b.block(32, 107, 108)
	case 201:
		b.pending = bytes.Clone(c[1:])
		b.ifNew(205)
	case 203:
		b.pending = append(b.pending, c[1:]...)
		b.ifNew(205)
	case 202, 204:
		if c[0] == 202 {
			b.pending = nil
		}
		b.take(append(b.pending, c[1:]...))
		if !b.old {
			b.block(58, 205, 205)
		}
	case 206:
		b.take(c[1:])
		if !b.old {
			b.block(58, 208, 209)
		}
	case 207:
		b.block(58, 208, 209)
	}
}

func (b *board) ifNew(kind byte) {
	if !b.old {
		b.say(kind)
	}
}

func (b *board) take(request []byte) {
	b.pending = nil
	b.asked = append(b.asked, bytes.Clone(request))
	b.reply = append([]byte{request[0] + 1}, b.answer(request)...)
}

func (b *board) block(most int, more, last byte) {
	n := min(most, len(b.reply))
	part := b.reply[:n]
	b.reply = b.reply[n:]
	if len(b.reply) == 0 {
		more = last
	}
	b.say(append([]byte{more}, part...)...)
}

func (b *board) say(content ...byte) {
	out := otherFrame(content)
	if b.mangle != nil {
		out = b.mangle(out)
	}
	if len(out) > 0 {
		_, _ = b.tty.Write(out)
	}
}

func (b *board) requests() [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([][]byte(nil), b.asked...)
}

func open(t *testing.T, path string) *serial.Port {
	t.Helper()
	p, err := serial.Open(serial.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// infoOf is the reply of a board of that firmware.
func infoOf(variant, firmware string, motor byte) []byte {
	n := 20
	if len(firmware) > 20 || bytes.HasPrefix([]byte(firmware), []byte("hello-")) {
		n = 30
	}
	b := make([]byte, 20+n+1)
	copy(b, variant)
	copy(b[20:], firmware)
	b[20+n] = motor
	return b
}

// packed is a C structure of its arguments, little-endian and without gaps.
func packed(fields ...any) []byte {
	var w bytes.Buffer
	for _, f := range fields {
		if err := binary.Write(&w, binary.LittleEndian, f); err != nil {
			return nil
		}
	}
	return w.Bytes()
}

func stepperStatusOf(pos float64, vel float32, diag uint32, us uint64) []byte {
	return packed(uint8(ModePositionTrajectory), float32(12), pos, vel, float32(0), diag, us, float32(0), uint32(3), float32(math.NaN()), uint16(0))
}
