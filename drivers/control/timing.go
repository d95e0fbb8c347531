package control

import (
	"math"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// dims is room for the joints, the base's x, y and yaw, and the ways that the tool has gone and turned.
const dims = maxDOF + 5

// vecN is one value per dimension.
type vecN = [dims]float64

// timing makes a smooth trajectory of a row of knots. The knots are laid out along a coordinate u in which
// every stretch takes, at u' = 1, as long as its slowest joint, the base or the tool needs; a cubic spline
// goes through them; and u(t) rises by one smooth ramp, a cruise and the mirrored ramp. What is left over
// any cap after that is taken off by stretching time.
type timing struct {
	k      *Kinematics
	set    *Settings
	n      int // joints
	knots  []knot
	u      []float64
	x, m   []vecN // positions and second derivatives of the spline, per knot
	length float64
}

// profile is u(t): a ramp of ramp seconds to speed v, a cruise, a ramp down.
type profile struct{ v, ramp, cruise float64 }

func (p profile) duration() float64 { return 2*p.ramp + p.cruise }

// peak is the largest acceleration.
func (p profile) peak() float64 { return 1.5 * p.v / p.ramp }

// newProfile covers length l at speed v with peak acceleration a. The speed in a ramp is a smooth step, so
// its acceleration starts and ends at zero and peaks at 1.5 v/ramp.
func newProfile(l, v, a float64) profile {
	ramp := 1.5 * v / a
	if v*ramp > l { // two ramps cover v*ramp: no room to cruise
		ramp = math.Sqrt(1.5 * l / a)
		v = l / ramp
	}
	return profile{v: v, ramp: ramp, cruise: l/v - ramp}
}

// at is u and its first two derivatives.
func (p profile) at(t float64) (u, du, ddu float64) {
	up := func(t float64) (u, du, ddu float64) {
		x := t / p.ramp
		return p.v * p.ramp * x * x * x * (1 - x/2), p.v * x * x * (3 - 2*x), p.v / p.ramp * 6 * x * (1 - x)
	}
	total := p.duration()
	switch {
	case t <= 0:
		return 0, 0, 0
	case t < p.ramp:
		return up(t)
	case t <= p.ramp+p.cruise:
		return p.v*p.ramp/2 + p.v*(t-p.ramp), p.v, 0
	case t < total:
		u, du, ddu = up(total - t)
		return p.v*(p.ramp+p.cruise) - u, du, -ddu
	}
	return p.v * (p.ramp + p.cruise), 0, 0
}

// caps are the speed and acceleration limits of each dimension at a configuration, velUp upwards.
func (t *timing) caps(x *vecN, up, down, acc *vecN) {
	sc := t.set.SpeedScale
	for i, j := range t.k.desc.Joints {
		up[i], down[i], acc[i] = sc*j.PlanVel, sc*j.PlanVel, sc*j.PlanAcc
		if e := j.Envelope; e != nil {
			share := j.PlanVel / j.Vel
			room := func(d float64) float64 {
				return sc * share * math.Max(0.02, math.Sqrt(math.Max(0, e.C*d))-e.O)
			}
			up[i], down[i] = math.Min(up[i], room(e.Hi-x[i])), math.Min(down[i], room(x[i]-e.Lo))
		}
	}
	for i, c := range [3][2]float64{{t.set.BaseSpeed, t.set.BaseAccel}, {t.set.BaseSpeed, t.set.BaseAccel}, {t.set.BaseTurn, t.set.BaseTurnAcc}} {
		up[t.n+i], down[t.n+i], acc[t.n+i] = sc*c[0], sc*c[0], sc*c[1]
	}
	for i, c := range [2][2]float64{{t.set.ToolSpeed, t.set.ToolAccel}, {t.set.ToolTurn, t.set.ToolTurnAcc}} {
		up[t.n+3+i], down[t.n+3+i], acc[t.n+3+i] = sc*c[0], sc*c[0], sc*c[1]
	}
}

// used is the number of dimensions in use.
func (t *timing) used() int { return t.n + 5 }

func (t *timing) load() {
	t.x = make([]vecN, len(t.knots))
	var last geom.Pose
	for i, k := range t.knots {
		x := &t.x[i]
		copy(x[:t.n], k.q[:t.n])
		x[t.n], x[t.n+1], x[t.n+2] = k.base.X, k.base.Y, k.base.Yaw
		tool := t.k.Tool(k.base, k.q[:t.n])
		if i > 0 {
			x[t.n+3] = t.x[i-1][t.n+3] + tool.Dist(last)
			x[t.n+4] = t.x[i-1][t.n+4] + tool.Angle(last)
		}
		last = tool
	}
}

// layOut gives every knot its u. An interval first gets the time that its slowest dimension needs, then is
// drawn out where the way bends so much that it could not be taken at that speed.
func (t *timing) layOut() {
	n := len(t.knots) - 1
	need := make([]float64, n)
	for i := range need {
		need[i] = t.need(i)
	}
	bend := make([]float64, n)
	for i := range bend {
		bend[i] = 1
		if i > 0 {
			bend[i] = t.bend(i, need[i-1], need[i])
		}
	}
	// A wider maximum, then means: no interval gets less than it needs, and kinks become slopes.
	wide := make([]float64, n)
	for i := range wide {
		for j := max(0, i-2); j <= min(n-1, i+2); j++ {
			wide[i] = math.Max(wide[i], bend[j])
		}
	}
	t.u = make([]float64, n+1)
	for i := range n {
		sum, cnt := 0.0, 0.0
		for j := max(0, i-2); j <= min(n-1, i+2); j++ {
			sum, cnt = sum+wide[j], cnt+1
		}
		t.u[i+1] = t.u[i] + sum/cnt*need[i]
	}
	t.length = t.u[n]
}

func pow4(x float64) float64 { x *= x; return x * x }

// need is a smooth maximum of the times in seconds that the dimensions need for interval i at their caps.
func (t *timing) need(i int) float64 {
	var up, down, acc vecN
	t.caps(&t.x[i], &up, &down, &acc)
	sum := 0.0
	for d := range t.used() {
		sum += pow4((t.x[i+1][d] - t.x[i][d]) / math.Min(up[d], down[d]))
	}
	return math.Sqrt(math.Sqrt(sum)) + 1e-9
}

// bend is by how much knot i has to be slowed so that its change of direction takes half the acceleration.
func (t *timing) bend(i int, before, after float64) float64 {
	var up, down, acc vecN
	t.caps(&t.x[i], &up, &down, &acc)
	sum := 1.0
	for d := range t.used() {
		v0, v1 := (t.x[i][d]-t.x[i-1][d])/before, (t.x[i+1][d]-t.x[i][d])/after
		a := math.Abs(v1-v0) / ((before + after) / 2) / (0.5 * acc[d])
		sum += a * a // fourth power of its root
	}
	return math.Sqrt(math.Sqrt(sum))
}

// spline finds the second derivatives at the knots of the natural cubic spline x(u).
func (t *timing) spline() {
	n := len(t.u)
	t.m = make([]vecN, n)
	if n < 3 {
		return
	}
	c := make([]float64, n) // Thomas algorithm, all dimensions at once
	for i := 1; i < n-1; i++ {
		h0, h1 := t.u[i]-t.u[i-1], t.u[i+1]-t.u[i]
		den := 2*(h0+h1) - h0*c[i-1]
		c[i] = h1 / den
		for d := range t.used() {
			r := 6 * ((t.x[i+1][d]-t.x[i][d])/h1 - (t.x[i][d]-t.x[i-1][d])/h0)
			t.m[i][d] = (r - h0*t.m[i-1][d]) / den
		}
	}
	for i := n - 2; i > 0; i-- {
		for d := range t.used() {
			t.m[i][d] -= c[i] * t.m[i+1][d]
		}
	}
}

// eval is x(u) and its first two derivatives by u; hint is the interval to look from, and is updated.
func (t *timing) eval(u float64, hint *int, x, dx, ddx *vecN) {
	i := *hint
	for i < len(t.u)-2 && u > t.u[i+1] {
		i++
	}
	for i > 0 && u < t.u[i] {
		i--
	}
	*hint = i
	h := t.u[i+1] - t.u[i]
	a, b := (t.u[i+1]-u)/h, (u-t.u[i])/h
	for d := range t.used() {
		m0, m1 := t.m[i][d], t.m[i+1][d]
		x0, x1 := t.x[i][d], t.x[i+1][d]
		x[d] = a*x0 + b*x1 + ((a*a*a-a)*m0+(b*b*b-b)*m1)*h*h/6
		dx[d] = (x1-x0)/h - (3*a*a-1)/6*h*m0 + (3*b*b-1)/6*h*m1
		ddx[d] = a*m0 + b*m1
	}
}

// load of one instant: shares of the caps that are used.
type load struct {
	speed float64 // of the speed cap
	accel float64 // of the acceleration cap
	bend  float64 // part of accel that the bend of the way takes
	room  float64 // u'' that would use up what is left of accel
}

// loadAt is the load at u when u' is du and u” is ddu.
func (t *timing) loadAt(u, du, ddu float64, hint *int) load {
	var x, dx, ddx, up, down, acc vecN
	t.eval(u, hint, &x, &dx, &ddx)
	t.caps(&x, &up, &down, &acc)
	l := load{room: math.Inf(1)}
	for d := range t.used() {
		v, bend := dx[d]*du, math.Abs(ddx[d]*du*du)
		if v > 0 {
			v /= up[d]
		} else {
			v /= -down[d]
		}
		l.speed = math.Max(l.speed, v)
		l.accel = math.Max(l.accel, math.Abs(ddx[d]*du*du+dx[d]*ddu)/acc[d])
		l.bend = math.Max(l.bend, bend/acc[d])
		if dx[d] != 0 {
			l.room = math.Min(l.room, math.Max(0, acc[d]-bend)/math.Abs(dx[d]))
		}
	}
	// The base's caps are for its speed, not for x and y apart.
	l.speed = math.Max(l.speed, math.Hypot(dx[t.n], dx[t.n+1])*du/up[t.n])
	l.accel = math.Max(l.accel, math.Hypot(ddx[t.n]*du*du+dx[t.n]*ddu, ddx[t.n+1]*du*du+dx[t.n+1]*ddu)/acc[t.n])
	return l
}

// over calls f with the load at every few milliseconds of p, and the shape of its ramp there: u” for a
// peak acceleration of 1.
func (t *timing) over(p profile, f func(l load, shape float64)) {
	hint := 0
	total := p.duration()
	n := int(math.Max(40, math.Min(2000, math.Ceil(total/0.008))))
	for i := range n + 1 {
		u, du, ddu := p.at(total * float64(i) / float64(n))
		f(t.loadAt(u, du, ddu, &hint), math.Abs(ddu)/p.peak())
	}
}

// worst is the largest use of the speed and acceleration caps under p.
func (t *timing) worst(p profile) (speed, accel float64) {
	t.over(p, func(l load, _ float64) {
		speed, accel = math.Max(speed, l.speed), math.Max(accel, l.accel)
	})
	return speed, accel
}

// shortest is the time in seconds that even a plan of no way at all takes.
const shortest = 0.1

// plan finds the profile and the stretch of time that keep every cap: the speed that the way allows in
// cruise, then the acceleration that is left in the ramps.
func (t *timing) plan() (p profile, stretch float64) {
	v := 1.0
	hint := 0
	for _, u := range t.u {
		l := t.loadAt(u, 1, 0, &hint)
		v = math.Min(v, math.Min(0.98/l.speed, math.Sqrt(0.9/math.Max(l.bend, 1e-9))))
	}
	a := 2.0
	for range 4 {
		p = newProfile(t.length, v, a)
		least := 5.0
		t.over(p, func(l load, shape float64) {
			if shape > 0.05 {
				least = math.Min(least, l.room/shape)
			}
		})
		if least >= a && least < 1.1*a {
			break
		}
		a = math.Max(0.97*least, 0.1*a)
	}
	p = newProfile(t.length, v, a)
	speed, accel := t.worst(p)
	return p, math.Max(math.Max(1, 1.001*math.Max(speed, math.Sqrt(accel))), shortest/p.duration())
}

// trajectory times every stretch between two halts by itself and puts them together.
func (t *timing) trajectory() robot.Trajectory {
	all := t.knots
	t.n = len(t.k.desc.Joints)
	var tr robot.Trajectory
	from := 0
	for i := 1; i < len(all); i++ {
		if i < len(all)-1 && !all[i].stop {
			continue
		}
		t.knots = all[from : i+1]
		t.append(&tr)
		from = i
	}
	return tr
}

// append adds the stretch t.knots, from rest to rest, at the end of tr.
func (t *timing) append(tr *robot.Trajectory) {
	t.load()
	t.layOut()
	t.spline()
	p, stretch := t.plan()
	total := p.duration() * stretch
	n := max(4, int(math.Ceil(total/t.set.KnotInterval.Seconds())))
	begin, first := tr.Duration(), 0
	if len(tr.Points) > 0 {
		first = 1 // the point of rest is there already
	}
	var x, dx, ddx vecN
	hint := 0
	flat := make([]float64, 2*t.n*(n+1))
	for i := first; i <= n; i++ {
		at := total * float64(i) / float64(n)
		u, du, _ := p.at(at / stretch)
		t.eval(u, &hint, &x, &dx, &ddx)
		k := du / stretch
		q, qd := flat[:t.n:t.n], flat[t.n:2*t.n:2*t.n]
		flat = flat[2*t.n:]
		for d := range t.n {
			j := &t.k.model.Joints[d] // a spline along a limit may ripple past it by some micrometres
			q[d] = math.Max(math.Min(j.Min, t.x[0][d]), math.Min(math.Max(j.Max, t.x[0][d]), x[d]))
			qd[d] = k * dx[d]
		}
		tr.Points = append(tr.Points, robot.Point{
			T: begin + time.Duration(math.Round(at*1e9)), Q: q, QD: qd,
			Base:  geom.SE2{X: x[t.n], Y: x[t.n+1], Yaw: x[t.n+2]},
			BaseV: geom.SE2{X: k * dx[t.n], Y: k * dx[t.n+1], Yaw: k * dx[t.n+2]},
		})
	}
}
