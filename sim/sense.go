package sim

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// sense is what the robot's own sensors remember from one reading to the next.
type sense struct {
	seq     uint64
	seed    uint64
	open    bool    // State.Jaw.Open
	force   r3.Vec  // filtered force on the hand, or efforts
	peak    float64 // largest force since turn
	before  float64 // and in the window before
	turn    int64   // clock time at which the window began
	changed int64   // clock time at which a value last changed
	prev    reading // the values then
}

// reading is what counts as a value for Changed.
type reading struct {
	q        []float64
	base     geom.SE2
	aperture float64
}

const (
	forceTau   = 0.02 // s: the force estimate's low pass
	forceNoise = 0.15 // N
	// forceHold is how long a peak shows at least (twice that at most): longer than who watches looks away.
	forceHold = 25 * time.Millisecond
)

// publish makes a state of the present moment. The caller holds mu or is alone.
func (t *Twin) publish() {
	now := t.clk.now.Load()
	p, s := t.p, &t.sense
	q, v := p.d.Qpos(), p.d.Qvel()
	st := &robot.State{HasBase: true}
	for i := range p.axes {
		x, xd := p.axes[i].x(q, v)
		x = math.Round(x/t.mach.quant)*t.mach.quant + 0 // + 0: no negative zero
		switch {
		case !t.mach.mobile || i > 2:
			st.Q, st.QD = append(st.Q, x), append(st.QD, xd)
		case i == 0:
			st.Base.X, st.BaseV.X = x, xd
		case i == 1:
			st.Base.Y, st.BaseV.Y = x, xd
		default:
			st.Base.Yaw, st.BaseV.Yaw = x, xd
		}
	}
	sin, cos := math.Sincos(st.Base.Yaw)
	st.BaseV.X, st.BaseV.Y = cos*st.BaseV.X+sin*st.BaseV.Y, cos*st.BaseV.Y-sin*st.BaseV.X

	x, xd := p.jaw.x(q, v)
	x = math.Max(0, math.Round(x/5e-5)*5e-5)
	rest := math.Abs(xd) < jawRest
	st.Jaw = robot.Jaw{Known: true, Aperture: x, Speed: xd, Open: s.open}
	st.Jaw.Holding = !s.open && t.jaw.target < 0 && rest && x > t.mach.jaw.empty

	s.seq++
	st.Contact = math.Abs(math.Max(s.peak, s.before) + forceNoise*gauss(s.seed, s.seq, 0))
	if r := (reading{st.Q, st.Base, x}); !slices.Equal(r.q, s.prev.q) || r.base != s.prev.base || r.aperture != s.prev.aperture {
		s.prev, s.changed = r, now
	}
	st.Seq = s.seq
	st.Received = t.clk.base.Add(time.Duration(now))
	st.Stamp = st.Received
	st.Changed = t.clk.base.Add(time.Duration(s.changed))
	st.Mode, st.Fault = t.mode()
	t.state.Store(st)
}

// mode is what the controller is doing. It does not look at measured speeds: on a clock that stands still a
// last tremor would be "moving" for ever.
func (t *Twin) mode() (robot.Mode, string) {
	switch {
	case t.fault != nil:
		return robot.ModeFaulted, t.fault.Error()
	case t.runstop:
		return robot.ModeRunstopped, ""
	case t.goal != nil || t.grip != nil || !t.resting:
		return robot.ModeMoving, ""
	}
	return robot.ModeReady, ""
}

// feel updates the force estimate after a time step that ended now.
func (t *Twin) feel(now int64) {
	s := &t.sense
	var f r3.Vec
	if t.mach.effort {
		f = r3.Vec{X: t.p.effort()}
	} else {
		f = t.p.handForce()
	}
	dt := float64(t.p.dt) * 1e-9
	s.force = r3.Add(s.force, r3.Scale(dt/(forceTau+dt), r3.Sub(f, s.force)))
	if now-s.turn >= int64(forceHold) {
		s.before, s.peak, s.turn = s.peak, 0, now
	}
	s.peak = math.Max(s.peak, r3.Norm(s.force))
}

// effort is the largest force that the joints feel beyond moving the robot itself: what contacts put on
// lift, arm and base, and wrist torques at the length of the gripper.
func (p *plant) effort() float64 {
	const reach = 0.2 // m from the wrist's axes to the fingers
	most := 0.0
	c := p.d.Constraint()
	for i := range p.axes {
		a := &p.axes[i]
		f := 0.0
		for k, dof := range a.dof {
			f += a.coef[k] * c[dof]
		}
		if !a.slides {
			f /= reach
			if i == 2 {
				f *= reach / 0.6 // the base's yaw, felt at the length of the arm
			}
		}
		most = math.Max(most, math.Abs(f))
	}
	return most
}

// handForce is the sum of the contact forces on hand, fingers and what they hold from everything else.
func (p *plant) handForce() r3.Vec {
	if !p.handTouches() {
		return r3.Vec{}
	}
	held := p.held()
	ours := func(b int) bool {
		return p.body[b] == partHand || p.body[b] == partFinger || slices.Contains(held, b)
	}
	var sum r3.Vec
	for i := range p.d.NContact() {
		a, b := p.touching(i)
		if ours(a) == ours(b) {
			continue
		}
		f := p.contactForce(i, p.d.Contact(i).Frame)
		if ours(a) {
			f = r3.Scale(-1, f)
		}
		sum = r3.Add(sum, f)
	}
	return sum
}

// touching is the bodies of contact i.
func (p *plant) touching(i int) (a, b int) {
	g1, g2 := p.d.ContactGeoms(i)
	return p.m.GeomBody(g1), p.m.GeomBody(g2)
}

func (p *plant) handTouches() bool {
	for i := range p.d.NContact() {
		a, b := p.touching(i)
		if k, l := p.body[a], p.body[b]; k == partHand || k == partFinger || l == partHand || l == partFinger {
			return true
		}
	}
	return false
}

// contactForce is the force of contact i on its second geom in the world.
func (p *plant) contactForce(i int, frame [9]float64) r3.Vec {
	f, err := p.d.ContactForce(i)
	if err != nil {
		return r3.Vec{} // a reading missed: the next one comes in 4 ms
	}
	return r3.Vec{
		X: f[0]*frame[0] + f[1]*frame[3] + f[2]*frame[6],
		Y: f[0]*frame[1] + f[1]*frame[4] + f[2]*frame[7],
		Z: f[0]*frame[2] + f[1]*frame[5] + f[2]*frame[8],
	}
}

// held is the loose bodies that two different fingers touch.
func (p *plant) held() []int {
	touch := map[int]int{} // loose body -> first finger
	var out []int
	for i := range p.d.NContact() {
		a, b := p.touching(i)
		if p.body[a] == partFinger {
			a, b = b, a
		}
		if p.body[a] != partLoose || p.body[b] != partFinger {
			continue
		}
		if first, ok := touch[a]; !ok {
			touch[a] = b
		} else if first != b && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}
