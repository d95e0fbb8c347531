package hello

import (
	"bytes"
	"context"
	"testing"

	"viad/drivers/serial"
)

func FuzzUnframe(f *testing.F) {
	f.Add([]byte{5, 0xce, 3, 0xd1, 0x15})
	f.Add([]byte{1, 1, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, wire []byte) {
		content, err := unframe(wire)
		if err != nil {
			return
		}
		back, err := frame(content)
		if err != nil {
			t.Fatalf("%x was read and cannot be written: %v", content, err)
		}
		if want, ok := otherUnframe(wire); !ok || !bytes.Equal(want, content) {
			t.Fatalf("%x read as %x, want %x, %v", wire, content, want, ok)
		}
		if again, err := unframe(back[:len(back)-1]); err != nil || !bytes.Equal(again, content) {
			t.Fatalf("%x came back as %x, %v", content, again, err)
		}
	})
}

// tape is a port that plays bytes whatever it is told, and then falls silent. A call drops what came before its question.
type tape struct {
	b      []byte
	played bool
}

func (p *tape) Read(_ context.Context, b []byte) (int, error) {
	if !p.played || len(p.b) == 0 {
		return 0, serial.ErrTimeout
	}
	n := copy(b, p.b)
	p.b = p.b[n:]
	return n, nil
}

func (p *tape) Write(context.Context, []byte) error { p.played = true; return nil }
func (p *tape) Flush()                              {}

func FuzzReply(f *testing.F) {
	f.Add([]byte{5, 209, 4, 1, 1, 0}, false)
	f.Add(append(otherFrame([]byte{101}), append(otherFrame([]byte{105}), otherFrame([]byte{108, 4})...)...), true)
	f.Fuzz(func(t *testing.T, b []byte, old bool) {
		ctx := t.Context()
		for _, push := range []bool{true, false} {
			l := newLink(&tape{b: bytes.Clone(b)})
			l.version = v1
			if old {
				l.version = v0
			}
			do := l.pull
			if push {
				do = l.push
			}
			if reply, err := do(ctx, "fuzz", []byte{3}); err == nil && len(reply) > replyMost {
				t.Fatalf("a reply of %d bytes", len(reply))
			}
		}
	})
}

func FuzzStatus(f *testing.F) {
	f.Add(stepperStatusOf(1, 2, 3, 4))
	f.Add(powerBoard(16, 7)([]byte{3}))
	f.Add(infoOf("Stepper.6", "hello-stepper2.v0.7.12p8", 5))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseStepperStatus(b); err == nil && (s.Pos-s.Pos != 0 || s.Vel-s.Vel != 0 || s.Stamp < 0) {
			t.Fatalf("%+v", s)
		}
		if s, err := parsePowerStatus(b); err == nil && (s.Voltage-s.Voltage != 0 || s.Stamp < 0) {
			t.Fatalf("%+v", s)
		}
		if i, err := parseInfo(b); err == nil {
			if v, err := parseFirmware(i.Firmware); err == nil && (v.protocol < 0 || v.major < 0) {
				t.Fatalf("%+v", v)
			}
		}
		_, _ = parseConfig(b)
	})
}
