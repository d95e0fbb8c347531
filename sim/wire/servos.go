package wire

import "math"

// Instructions of the servos' bus.
const (
	instPing      = 1
	instRead      = 2
	instWrite     = 3
	instRegWrite  = 4
	instAction    = 5
	instReset     = 6
	instReboot    = 8
	instSyncRead  = 0x82
	instSyncWrite = 0x83
	everyServo    = 0xfe
)

const packetMost = 250

// bus is the servos' line: it finds packets in the bytes and collects what the servos say.
type bus struct {
	works *works
	raw   []byte
}

// hear takes bytes and returns the answers to whole packets among them. What is no packet is passed over.
func (u *bus) hear(b []byte) []byte {
	u.raw = append(u.raw, b...)
	var out []byte
	for {
		id, inst, params, n := packet(u.raw)
		if n == 0 {
			return out
		}
		u.raw = u.raw[n:]
		if inst != 0 {
			out = append(out, u.works.askServos(id, inst, params)...)
		}
	}
}

// packet finds the first packet; n is how many bytes are done with, 0 when more must come. Without an instruction they
// were no packet.
func packet(b []byte) (id, inst byte, params []byte, n int) {
	switch {
	case len(b) == 0:
		return 0, 0, nil, 0
	case b[0] != 0xff || len(b) > 1 && b[1] != 0xff:
		return 0, 0, nil, 1
	case len(b) < 4:
		return 0, 0, nil, 0
	case b[2] == 0xff: // a third one: the packet begins later
		return 0, 0, nil, 1
	case b[3] < 2 || b[3] > packetMost:
		return 0, 0, nil, 1
	}
	whole := int(b[3]) + 4
	if len(b) < whole {
		return 0, 0, nil, 0
	}
	if sum(b[2:whole-1]) != b[whole-1] {
		return 0, 0, nil, 1
	}
	return b[2], b[4], b[5 : whole-1], whole
}

// sum is a packet's checksum.
func sum(b []byte) (s byte) {
	for _, c := range b {
		s += c
	}
	return ^s
}

// answer is a status packet.
func answer(id, fault byte, data []byte) []byte {
	p := append([]byte{0xff, 0xff, id, byte(len(data) + 2), fault}, data...)
	return append(p, sum(p[2:]))
}

// askServos does what a packet says. Only a read, a ping and a write to one servo is answered.
func (w *works) askServos(id, inst byte, p []byte) (out []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch inst {
	case instSyncWrite:
		if len(p) < 2 || p[1] == 0 {
			return nil
		}
		for rest := p[2:]; len(rest) > int(p[1]); rest = rest[1+int(p[1]):] {
			if s := w.servo(rest[0]); s != nil {
				s.write(w, p[0], rest[1:1+int(p[1])])
			}
		}
		return nil
	case instSyncRead:
		if len(p) < 2 {
			return nil
		}
		for _, one := range p[2:] {
			if s := w.servo(one); s != nil {
				out = append(out, w.said(s, s.read(w, p[0], p[1]))...)
			}
		}
		return out
	}
	for _, s := range w.servos {
		if s.id != id && id != everyServo || w.faults.Silent == s.id {
			continue
		}
		data, says := w.tell(s, inst, p)
		if says && id != everyServo {
			out = append(out, w.said(s, data)...)
		}
	}
	return out
}

// servo is one that listens.
func (w *works) servo(id byte) *servo {
	for _, s := range w.servos {
		if s.id == id && w.faults.Silent != id {
			return s
		}
	}
	return nil
}

// said is a servo's reply, unless chance takes it.
func (w *works) said(s *servo, data []byte) []byte {
	if w.dice.Float64() < w.faults.DropReplies {
		return nil
	}
	return answer(s.id, s.errors(w), data)
}

// tell gives one servo an instruction.
func (w *works) tell(s *servo, inst byte, p []byte) (data []byte, says bool) {
	switch inst {
	case instPing:
		return nil, true
	case instRead:
		if len(p) != 2 || int(p[0])+int(p[1]) > servoMemory {
			return nil, false
		}
		return s.read(w, p[0], p[1]), true
	case instWrite:
		if len(p) < 2 {
			return nil, false
		}
		s.write(w, p[0], p[1:])
		return nil, true
	case instRegWrite:
		if len(p) < 2 {
			return nil, false
		}
		s.later = append([]byte(nil), p...)
		return nil, true
	case instAction:
		if len(s.later) > 1 {
			s.write(w, s.later[0], s.later[1:])
		}
		s.later = nil
		return nil, true
	case instReboot, instReset:
		w.violate("servo %d: it was told to start anew", s.id)
		s.reboot()
		return nil, true
	}
	w.violate("servo %d: there is no instruction %d", s.id, inst)
	return nil, false
}

// signed is a number in two bytes whose sign is a bit of its own.
func signed(word uint16, bit int) int {
	sign := uint16(1) << bit
	if word&sign != 0 {
		return -int(word &^ sign)
	}
	return int(word)
}

// unsigned is the other way; what does not fit is cut at the greatest.
func unsigned(x, bit int) uint16 {
	most := 1<<bit - 1
	if x < 0 {
		return uint16(min(-x, most)) | 1<<bit
	}
	return uint16(min(x, most))
}

const turnTicks = 4096.0

// rodded is the aperture of the parallel gripper, in metres, at an angle of its servo: a crank, a rod and a slider on
// either side.
func rodded(angle float64) float64 {
	const rod, crank, face = 30.25, 22.0, 10.5
	s, c := math.Sincos(44*math.Pi/180 - angle)
	return 2e-3 * (math.Sqrt(rod*rod-crank*crank*c*c) - crank*s - face)
}

// unrodded is the other way, from the triangle of crank, rod and slider.
func unrodded(aperture float64) float64 {
	const rod, crank, face = 30.25, 22.0, 10.5
	side := aperture*500 + face
	sine := (rod*rod - crank*crank - side*side) / (2 * side * crank)
	return 44*math.Pi/180 - math.Asin(math.Max(-1, math.Min(1, sine)))
}

// The compliant gripper: its fingers' length, and its servo's way between shut and open.
const (
	compliantShut = -100 * math.Pi / 180
	compliantOpen = 300 * math.Pi / 180
)

func bent(angle float64) float64 {
	whole := 2 * math.Asin(compliantMax/2/fingerLength)
	part := (angle - compliantShut) / (compliantOpen - compliantShut) * whole
	return 2 * fingerLength * math.Sin(part/2)
}

func unbent(aperture float64) float64 {
	whole := 2 * math.Asin(compliantMax/2/fingerLength)
	part := 2 * math.Asin(math.Max(0, math.Min(1, aperture/2/fingerLength)))
	return compliantShut + part/whole*(compliantOpen-compliantShut)
}
