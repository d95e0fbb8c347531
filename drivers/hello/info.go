package hello

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Info is what a board says of itself.
type Info struct {
	Variant  string // "Stepper.6"
	Firmware string // "Stepper.v0.7.5p8"
	Protocol int    // 8
	Motor    int    // which motor a stepper was made for, one of Motor..., 0 when it does not say
}

// Motors that a stepper board can have been made for.
const (
	MotorUnsaid = iota
	MotorOmni0
	MotorOmni1
	MotorOmni2
	MotorArm
	MotorLift
)

// ErrProtocol is wrapped by the refusal of a board whose protocol is not known.
var ErrProtocol = errors.New("the board's protocol is not known to this driver")

// Lengths in a reply with a board's info.
const (
	variantSize  = 20
	firmwareSize = 20
	longerSize   = 30 // of the firmware of boards whose name begins with "hello-"
)

func parseInfo(b []byte) (Info, error) {
	if len(b) < variantSize+firmwareSize {
		return Info{}, fmt.Errorf("the board's info has %d bytes, at least %d are needed", len(b), variantSize+firmwareSize)
	}
	i := Info{Variant: words(b[:variantSize])}
	rest, size := b[variantSize:], firmwareSize
	if strings.HasPrefix(string(rest), "hello-") && len(rest) >= longerSize {
		size = longerSize
	}
	i.Firmware = words(rest[:size])
	if rest = rest[size:]; len(rest) > 0 {
		i.Motor = int(rest[0])
	}
	return i, nil
}

// words is the text in a field that is filled up with zeros.
func words(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return strings.ToValidUTF8(s, "?")
}

// firmware is a board's version: "Stepper.v0.7.5p8".
type firmware struct {
	device                         string
	major, minor, bugfix, protocol int
}

func parseFirmware(s string) (firmware, error) {
	bad := fmt.Errorf("the board says that its firmware is %q, expected a name, a version and a protocol as in \"Stepper.v0.7.5p8\"", s)
	device, v, ok := strings.Cut(s, ".v")
	version, protocol, ok2 := strings.Cut(v, "p")
	parts := strings.Split(version, ".")
	if !ok || !ok2 || device == "" || len(parts) != 3 {
		return firmware{}, bad
	}
	f := firmware{device: device}
	for i, to := range []*int{&f.major, &f.minor, &f.bugfix, &f.protocol} {
		text := protocol
		if i < len(parts) {
			text = parts[i]
		}
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return firmware{}, bad
		}
		*to = int(n)
	}
	return f, nil
}

// chunks is the way of chunking that the firmware knows: the new one came with v0.4.
func (f firmware) chunks() version {
	if f.major == 0 && f.minor <= 3 {
		return v0
	}
	return v1
}

// kind is a kind of board.
type kind struct {
	name      string
	devices   []string // how its firmware may be called
	protocols []int
	ask       byte // for its info
}

// greet reads a board's info in the old way and turns to the way that it knows.
func greet(ctx context.Context, l *link, k kind) (Info, error) {
	l.version = v0
	b, err := l.pull(ctx, "board info", []byte{k.ask})
	if err != nil {
		return Info{}, err
	}
	i, err := parseInfo(b)
	if err != nil {
		return Info{}, fmt.Errorf("hello: %w", err)
	}
	f, err := parseFirmware(i.Firmware)
	if err != nil {
		return i, fmt.Errorf("hello: %w: %w", ErrProtocol, err)
	}
	i.Protocol = f.protocol
	if !slices.Contains(k.devices, f.device) {
		return i, fmt.Errorf("hello: the board says %q, this is no %s board: look whether its cable is in the right port and the udev rules name it rightly", i.Firmware, k.name)
	}
	if !slices.Contains(k.protocols, f.protocol) {
		return i, fmt.Errorf("hello: %w: firmware %s speaks protocol p%d, of %s boards p%d to p%d are known: update this daemon, or the board's firmware",
			ErrProtocol, i.Firmware, f.protocol, k.name, k.protocols[0], k.protocols[len(k.protocols)-1])
	}
	l.version = f.chunks()
	return i, nil
}
