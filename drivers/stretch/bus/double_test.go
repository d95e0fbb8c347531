package bus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a robot on seven pseudo-terminals: five motors, a power board and four servos, each with its own bytes. It is
// written from the robot's protocol; the driver's tables and codecs are not used.
type rig struct {
	t   *testing.T
	dir string
	end chan struct{}
	all sync.WaitGroup

	mu       sync.Mutex
	motors   [5]*motor
	servos   map[byte]*servoSim
	power    powerSim
	lines    map[string]*line
	born     time.Time
	object   float64 // m of aperture at which the gripper meets something
	heard    map[string]int
	severed  bool
	syncs    []time.Time
	firmware string
}

// line is one pseudo-terminal.
type line struct {
	name   string
	tty    *os.File
	answer func(*line, []byte)
	mute   bool
	mangle func([]byte) []byte
	state  boardState
}

func portNames() []string {
	return []string{"hello-motor-lift", "hello-motor-arm", "hello-motor-omni-0", "hello-motor-omni-1", "hello-motor-omni-2", "hello-power-periph", "hello-feetech-wrist"}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), end: make(chan struct{}), lines: map[string]*line{}, born: time.Now(), heard: map[string]int{}, firmware: "hello-stepper2.v0.7.9p8"}
	// Where it begins: lift 0.6 m, arm 0.2 m; the numbers of the motors' radians are worked out by hand.
	for i, at := range []float64{0.6 / 0.0175070437, 0.2 / 0.0097449715, 3, -2, 1} {
		r.motors[i] = &motor{pos: at, config: 0x46, diag: 1, sync: true, wheel: i >= 2, kind: []byte{5, 4, 1, 2, 3}[i]}
	}
	r.servos = map[byte]*servoSim{}
	// Joint zero of yaw and pitch: -(-739*2)*-1 = -1478 ticks from the stop, of roll +1478, of the gripper 0.
	r.servos[20] = newServo(20, -300, -300-1478-652) // 0.5 rad
	r.servos[21] = newServo(21, 120, 120-1478-261)   // 0.2 rad
	r.servos[22] = newServo(22, 77, 77+1478+391)     // servo 0.3 rad, joint -0.3
	r.servos[24] = newServo(24, -40, -40-1325)       // open: 116.5 degrees
	r.power = powerSim{soc: 80}
	for _, n := range portNames() {
		r.plug(n)
	}
	r.all.Go(r.live)
	t.Cleanup(func() {
		close(r.end)
		for _, n := range portNames() {
			r.unplug(n)
		}
		r.all.Wait()
		for id, s := range r.servos {
			if s.trapped {
				t.Errorf("servo %d was told to move without a limit, or had a register written that is not a goal's", id)
			}
		}
	})
	return r
}

// plug makes a port appear.
func (r *rig) plug(name string) {
	r.t.Helper()
	device, tty, err := pty.Open()
	if err != nil {
		r.t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	path := tty.Name()
	if err := tty.Close(); err != nil {
		r.t.Fatal(err)
	}
	l := &line{name: name, tty: device}
	l.answer = r.board
	if name == "hello-feetech-wrist" {
		l.answer = r.chain
	}
	r.mu.Lock()
	r.lines[name] = l
	r.mu.Unlock()
	at := filepath.Join(r.dir, name)
	if err := os.Symlink(path, at); err != nil {
		r.t.Fatal(err)
	}
	r.all.Go(func() { r.listen(l) })
}

func (r *rig) unplug(name string) {
	r.mu.Lock()
	l := r.lines[name]
	delete(r.lines, name)
	r.mu.Unlock()
	if l != nil {
		_ = os.Remove(filepath.Join(r.dir, name))
		_ = l.tty.Close()
	}
}

func (r *rig) listen(l *line) {
	buf := make([]byte, 1024)
	for {
		n, err := l.tty.Read(buf)
		if err != nil {
			if pe := new(os.PathError); errors.As(err, &pe) && pe.Err.Error() == "input/output error" { // nobody has it open
				select {
				case <-r.end:
					return
				case <-time.After(5 * time.Millisecond):
					continue
				}
			}
			return
		}
		r.mu.Lock()
		if !r.severed && !l.mute {
			l.answer(l, buf[:n])
		}
		r.mu.Unlock()
	}
}

func (l *line) say(b []byte) {
	if l.mangle != nil {
		b = l.mangle(b)
	}
	if len(b) > 0 {
		_, _ = l.tty.Write(b)
	}
}

// change does something to the rig.
func (r *rig) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// live is the physics.
func (r *rig) live() {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-r.end:
			return
		case now := <-tick.C:
			dt := now.Sub(last).Seconds()
			last = now
			r.mu.Lock()
			for _, m := range r.motors {
				m.runstop = r.power.runstop
				m.turn(now, dt)
			}
			for _, s := range r.servos {
				s.turn(dt, r.object)
			}
			r.mu.Unlock()
		}
	}
}

// motor is a stepper with its trapezoidal profile.
type motor struct {
	pos, vel float64
	kind     byte
	wheel    bool
	mode     uint8
	x, v, a  float64
	config   byte
	diag     uint32
	sync     bool
	waiting  *[4]float64 // mode, x, v, a
	fed      time.Time
	runstop  bool
	stuck    bool
	contacts uint32
	push     float64 // somebody moves it so fast
	frozen   bool    // it reads the same for ever
	froze    float64
	booted   time.Time // when it was started anew; zero: with the rig
	zero     float64   // where that was, which it counts from
}

// boot is a board that starts anew behind a port that stays: it forgets where it is.
func (m *motor) boot(now time.Time) {
	m.booted, m.zero, m.mode, m.waiting, m.diag = now, m.pos, 0, nil, 0
}

func (m *motor) obey(c [4]float64, now time.Time) {
	if m.runstop {
		return
	}
	m.mode, m.x, m.v, m.a, m.fed = uint8(c[0]), c[1]+m.zero, c[2], c[3], now
	m.waiting = nil
}

func toward(v, to, step float64) float64 {
	if v < to {
		return math.Min(v+step, to)
	}
	return math.Max(v-step, to)
}

func (m *motor) turn(now time.Time, dt float64) {
	if m.runstop || m.mode == 6 && m.config&64 != 0 && now.Sub(m.fed) > time.Second {
		m.mode, m.waiting = 0, nil
	}
	want, a := 0.0, 36.0 // freely rolling
	switch m.mode {
	case 2:
		a = 400
	case 5:
		d := m.x - m.pos
		want, a = math.Copysign(math.Min(math.Abs(m.v), math.Sqrt(2*m.a*math.Abs(d))), d), m.a*1.2
		if math.Abs(d) < 1e-4 {
			want = 0
		}
	case 6:
		want, a = m.v, m.a
	case 0:
		want = m.push
		if m.push != 0 {
			a = 1e4
		}
	}
	m.vel = toward(m.vel, want, a*dt)
	if m.stuck {
		m.vel = 0
	}
	m.pos += m.vel * dt
}

// servoSim is a servo: registers, and where it is between ticks.
type servoSim struct {
	r        [128]byte
	pos, vel float64
	gripper  bool
	dead     bool // it does not answer
	trapped  bool // it was written what must not be
	stuck    bool
}

func magnitude(v int) uint16 {
	if v < 0 {
		return uint16(-v) | 0x8000
	}
	return uint16(v)
}

func newServo(id byte, offset, at int) *servoSim {
	s := &servoSim{pos: float64(at), gripper: id >= 23}
	s.r[5], s.r[40], s.r[50], s.r[62], s.r[63] = id, 1, 1, 240, 31 // speed and acceleration 0, as after homing
	binary.LittleEndian.PutUint16(s.r[42:], magnitude(at))
	binary.LittleEndian.PutUint16(s.r[52:], magnitude(offset))
	return s
}

func (s *servoSim) signed(reg int) int {
	w := binary.LittleEndian.Uint16(s.r[reg:])
	if w&0x8000 != 0 {
		return -int(w & 0x7fff)
	}
	return int(w)
}

func (s *servoSim) turn(dt, object float64) {
	want, most := 0.0, float64(binary.LittleEndian.Uint16(s.r[46:]))
	if most == 0 {
		most = 1e5 // no limit
	}
	a := float64(s.r[41]) * 100
	if a == 0 {
		a = 1e7
	}
	if s.r[40] != 0 {
		d := float64(s.signed(42)) - s.pos
		want = math.Copysign(math.Min(most, math.Sqrt(2*a*math.Abs(d))), d)
		if math.Abs(d) < 0.5 {
			want = 0
		}
	}
	s.vel = toward(s.vel, want, 1.2*a*dt)
	if s.stuck {
		s.vel = 0
	}
	next := s.pos + s.vel*dt
	if s.gripper && object > 0 && s.opening(next) < object && s.vel > 0 { // reversed: closing counts up
		next, s.vel = s.pos, 0
	}
	s.pos = next
	binary.LittleEndian.PutUint16(s.r[56:], magnitude(int(math.Round(s.pos))))
	binary.LittleEndian.PutUint16(s.r[58:], magnitude(int(math.Round(s.vel))))
}

// opening is the gripper's aperture by its mechanism: a crank of 22 mm, a rod of 30.25 mm, pads at 10.5 mm.
func (s *servoSim) opening(ticks float64) float64 {
	rad := -(ticks - float64(s.signed(52))) * 2 * math.Pi / 4096
	q := 44*math.Pi/180 - rad
	x := 22*math.Sin(q) - math.Sqrt(30.25*30.25-22*22*math.Cos(q)*math.Cos(q))
	return 2 * (-x - 10.5) / 1000
}

type powerSim struct {
	runstop bool
	cause   byte
	soc     byte
	state   uint32
}

// chain answers for the servos.
func (r *rig) chain(l *line, b []byte) {
	for len(b) >= 6 {
		if b[0] != 255 || b[1] != 255 || b[2] == 255 || len(b) < int(b[3])+4 || b[3] < 2 {
			b = b[1:]
			continue
		}
		end := int(b[3]) + 4
		if sum(b[2:end]) != 255 {
			b = b[1:]
			continue
		}
		r.servoTold(l, b[2], b[4], b[5:end-1])
		b = b[end:]
	}
}

func sum(b []byte) (s byte) {
	for _, x := range b {
		s += x
	}
	return s
}

func (r *rig) servoTold(l *line, id, code byte, p []byte) {
	if code == 0x83 { // several at once, no answers
		r.heard["servo goal"]++
		for p2 := p[2:]; len(p2) > int(p[1]); p2 = p2[p[1]+1:] {
			if s := r.servos[p2[0]]; s != nil && !s.dead {
				s.write(p[0], p2[1:p[1]+1])
			}
		}
		return
	}
	s := r.servos[id]
	if s == nil || s.dead {
		return
	}
	var data []byte
	switch code {
	case 2:
		data = s.r[p[0] : p[0]+p[1]]
	case 3:
		r.heard["servo write"]++
		s.write(p[0], p[1:])
	}
	out := append([]byte{255, 255, id, byte(len(data) + 2), s.r[65]}, data...)
	l.say(append(out, ^sum(out[2:])))
}

func (s *servoSim) write(reg byte, data []byte) {
	if reg != 40 && (reg != 41 || len(data) != 7 || data[0] == 0 || data[5] == 0 && data[6] == 0) {
		s.trapped = true // no limit of speed or acceleration, or a register that is nobody's to write
	}
	copy(s.r[reg:], data)
	if reg == 41 {
		s.r[40] = 1 // a goal switches the torque on
	}
}

// packed is a C structure, little-endian and without gaps.
func packed(fields ...any) []byte {
	var w bytes.Buffer
	for _, f := range fields {
		_ = binary.Write(&w, binary.LittleEndian, f)
	}
	return w.Bytes()
}
