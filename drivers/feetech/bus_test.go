package feetech

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"

	"viad/drivers/serial"
)

var _ Line = (*serial.Port)(nil)

var goal = []byte{20, 0, 8, 0, 0, 100, 0}

func TestTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(20, 21)
		c.put(20, 56, 0x34, 0x92)
		b := NewBus(&memory{chain: c}, Config{})
		if err := b.Ping(t.Context(), 20); err != nil {
			t.Error(err)
		}
		for range 20 { // the same question again and again
			got, err := b.Read(t.Context(), 20, 56, 2)
			if err != nil || !bytes.Equal(got, []byte{0x34, 0x92}) {
				t.Fatalf("% x, %v", got, err)
			}
		}
		if got, err := b.Read(t.Context(), 20, 3, 2); err != nil || !bytes.Equal(got, []byte{9, 3}) { // near the table's begin
			t.Errorf("% x, %v", got, err)
		}
		if err := b.Write(t.Context(), 21, 40, []byte{0}); err != nil || c.servos[21][40] != 0 {
			t.Errorf("%v, torque %d", err, c.servos[21][40])
		}
		both := []Data{{20, goal}, {21, []byte{30, 1, 0x88, 0, 0, 9, 1}}}
		if err := b.SyncWrite(t.Context(), 41, both); err != nil {
			t.Error(err)
		}
		for _, d := range both {
			if got := c.servos[d.ID][41:48]; !bytes.Equal(got, d.Bytes) {
				t.Errorf("servo %d has % x", d.ID, got)
			}
		}
		c.fault = 32
		var f *Faulted
		if err := b.Write(t.Context(), 21, 40, []byte{1}); !errors.As(err, &f) || f.ID != 21 || f.Fault != FaultOverload {
			t.Errorf("%v", err)
		}
		if err := b.Ping(t.Context(), 21); !errors.As(err, &f) {
			t.Errorf("%v", err)
		}
		if got := b.Counts(); got.Timeouts+got.BadSums+got.Resyncs+got.Strays != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// An adapter that hears itself gives every request back before the answer. None is taken for one: the echo of a read of
// two registers from 56 on would be the number 568, with a fault of the angle sensor.
func TestEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(20)
		c.put(20, 56, 0x34, 0x92)
		b := NewBus(&memory{chain: c, echo: true}, Config{})
		for n := 1; n < 9; n++ {
			got, err := b.Read(t.Context(), 20, 56, n)
			if err != nil || got[0] != 0x34 {
				t.Errorf("% x, %v", got, err)
			}
		}
		if err := errors.Join(b.Ping(t.Context(), 20), b.Write(t.Context(), 20, 41, goal)); err != nil {
			t.Error(err)
		}
		delete(c.servos, 20) // only the echo is left
		var no *NoReply
		if got, err := b.Read(t.Context(), 20, 56, 2); !errors.As(err, &no) {
			t.Errorf("% x, %v", got, err)
		}
		if err := b.Ping(t.Context(), 20); !errors.As(err, &no) {
			t.Errorf("%v", err)
		}
	})
}

// Row 43: a read is tried three times, each 15 ms; a write once, and what became of it is read back.
func TestField43LostReplies(t *testing.T) {
	for _, v := range []struct {
		name    string
		lost    []bool // requests and answers, in order
		read    bool
		want    string // of the error; empty is none
		heard   int
		took    bool // the goal is in the servo
		elapsed time.Duration
	}{
		{"a read whose answer is lost twice", []bool{false, true, false, true}, true, "", 3, false, 30 * time.Millisecond},
		{"a read that the servo never hears", []bool{true, true, true}, true, "servo 20 does not answer (3 tries of 15ms): check its cable, its power and that nothing else drives the bus", 0, false, 45 * time.Millisecond},
		{"a write whose answer is lost", []bool{false, true}, false, "", 2, true, 15 * time.Millisecond},
		{"a write that the servo never hears", []bool{true}, false, "servo 20 did not take what was written to register 41 (14 00 08 00 00 64 00; it holds 14 00 00 00 00 64 00): nothing was repeated; read the joint before it is asked again", 1, false, 15 * time.Millisecond},
		{"a write that is obeyed, and then silence", []bool{false, true, true, true, true}, false, "it is not known whether servo 20 took what was written to register 41: servo 20 does not answer (3 tries of 15ms): check its cable, its power and that nothing else drives the bus", 1, true, 60 * time.Millisecond},
	} {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newChain(20)
				b := NewBus(&memory{chain: c, mangle: drop(v.lost...)}, Config{})
				began := time.Now()
				var err error
				if v.read {
					_, err = b.Read(t.Context(), 20, 56, 2)
				} else {
					err = b.Write(t.Context(), 20, 41, goal)
				}
				if got := errorText(err); got != v.want {
					t.Errorf("%s", got)
				}
				if took := bytes.Equal(c.servos[20][41:48], goal); c.heard != v.heard || took != v.took {
					t.Errorf("%d requests were heard, goal taken: %v", c.heard, took)
				}
				if d := time.Since(began); d != v.elapsed {
					t.Errorf("it took %v", d)
				}
			})
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A line that loses, doubles, delays, cuts, flips and adds bytes gives an error or the truth: a value that the servo had
// during the call, a goal that it holds. A goal that nobody asked for is never in a servo, and a write goes out once.
func TestMangledLine(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { mangled(t, seed) })
	}
}

func mangled(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	c := newChain(20, 21)
	clock := uint16(0)
	c.lives = func(_ byte, r *[128]byte) { // each reading differs from all before
		clock++
		r[56], r[57], r[58], r[59] = byte(clock), byte(clock>>8), ^byte(clock), ^byte(clock>>8)
	}
	b := NewBus(&memory{chain: c, mangle: bad(rng), echo: seed%2 == 1}, Config{})
	good, failed := 0, 0
	for range 2000 {
		id := byte(20 + rng.IntN(2))
		before, heard := clock, c.heard
		var err error
		if rng.IntN(3) > 0 {
			reg, n := byte(56), 4
			if rng.IntN(2) == 0 {
				reg, n = 41, 19 // a block around it
			}
			var got []byte
			if got, err = b.Read(t.Context(), id, reg, n); err == nil {
				v := word(got[56-reg:])
				if v <= before || v > clock || word(got[58-reg:]) != ^v {
					t.Fatalf("seed %d: read % x; the servo had %#04x to %#04x meanwhile", seed, got, before+1, clock)
				}
			}
		} else {
			old := slices.Clone(c.servos[id][41:48])
			ask := []byte{byte(1 + rng.IntN(254)), byte(rng.Uint32()), byte(rng.Uint32()), 0, 0, byte(1 + rng.IntN(255)), byte(rng.IntN(128))}
			err = b.Write(t.Context(), id, 41, ask)
			now := c.servos[id][41:48]
			if !bytes.Equal(now, ask) && (err == nil || !bytes.Equal(now, old)) {
				t.Fatalf("seed %d: asked for % x, before % x, now % x, %v", seed, ask, old, now, err)
			}
			if c.heard > heard+2+2*3 {
				t.Fatalf("seed %d: %d requests for one write", seed, c.heard-heard)
			}
		}
		if err == nil {
			good++
		} else {
			failed++
		}
	}
	if good < 1000 || failed == 0 {
		t.Errorf("seed %d: %d well, %d failed: %+v", seed, good, failed, b.Counts())
	}
}

// What may be written, and to whom.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChain(20)
		b := NewBus(&memory{chain: c}, Config{})
		for _, v := range []struct {
			name string
			id   byte
			reg  byte
			data []byte
		}{
			{"an id in EEPROM", 20, 5, []byte{21}},
			{"a mode", 20, 33, []byte{2}},
			{"the lock of the EEPROM", 20, 55, []byte{0}},
			{"homing flags", 20, 50, []byte{1}},
			{"a goal without a speed", 20, 41, []byte{20, 0, 8, 0, 0, 0, 0}},
			{"a goal with the speed's sign alone", 20, 41, []byte{20, 0, 8, 0, 0, 0, 0x80}},
			{"a goal without an acceleration", 20, 41, []byte{0, 0, 8, 0, 0, 100, 0}},
			{"a goal with PWM", 20, 41, []byte{20, 0, 8, 1, 0, 100, 0}},
			{"a position alone", 20, 42, []byte{0, 8}},
			{"a speed alone", 20, 46, []byte{0, 0}},
			{"torque 128, which moves the servo's zero", 20, 40, []byte{128}},
			{"everybody's torque", 254, 40, []byte{0}},
			{"nothing", 20, 40, nil},
		} {
			var no *Refused
			if err := b.Write(t.Context(), v.id, v.reg, v.data); !errors.As(err, &no) {
				t.Errorf("%s: %v", v.name, err)
			}
			if err := b.SyncWrite(t.Context(), v.reg, []Data{{20, goal}, {v.id, v.data}}); !errors.As(err, &no) {
				t.Errorf("%s, with another: %v", v.name, err)
			}
		}
		if c.heard != 0 {
			t.Errorf("%d requests went out", c.heard)
		}
	})
}

// Who gives up waits no longer, neither for an answer nor for the bus.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBus(&memory{chain: newChain()}, Config{Timeout: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		other := make(chan error, 1)
		go func() { other <- b.Ping(ctx, 21) }()
		if err := b.Ping(ctx, 20); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if err := <-other; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// Over a pseudo-terminal, through the port: row 45's unplug is no silence, and is said at once and not tried again.
func TestField45Unplugged(t *testing.T) {
	device, tty, err := pty.Open()
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	port, err := serial.Open(serial.Config{Path: tty.Name(), Baud: 1000000})
	if err := errors.Join(err, tty.Close()); err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	c := newChain(20)
	c.put(20, 56, 0xff, 0xff) // as a header, and what a line discipline would change
	served := make(chan error, 1)
	unplug := make(chan struct{})
	go func() { served <- serveOn(device, c, 4, unplug) }() // a ping, a read, a write that is read back

	b := NewBus(port, Config{Timeout: 2 * time.Second})
	if err := b.Ping(t.Context(), 20); err != nil {
		t.Error(err)
	}
	if got, err := b.Read(t.Context(), 20, 56, 2); err != nil || !bytes.Equal(got, []byte{255, 255}) {
		t.Errorf("% x, %v", got, err)
	}
	if err := b.Write(t.Context(), 20, 41, []byte{0x11, 0x0a, 0x0d, 0, 0, 0x13, 4}); err != nil {
		t.Error(err)
	}
	close(unplug)
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	asked := b.Counts().Asked
	var gone *serial.Unplugged
	if _, err := b.Read(t.Context(), 20, 56, 2); !errors.As(err, &gone) {
		t.Errorf("%v", err)
	}
	if n := b.Counts().Asked - asked; n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// serveOn answers so many requests, and closes the device when told to.
func serveOn(device *os.File, c *chain, requests int, unplug chan struct{}) error {
	var held []byte
	buf := make([]byte, 256)
	for c.heard < requests {
		n, err := device.Read(buf)
		if err != nil {
			return errors.Join(err, device.Close())
		}
		if held = append(held, buf[:n]...); len(held) < 4 || len(held) < int(held[3])+4 {
			continue
		}
		for _, a := range c.serve(held) {
			if _, err := device.Write(a); err != nil {
				return errors.Join(err, device.Close())
			}
		}
		held = nil
	}
	<-unplug
	return device.Close()
}
