package e2e

import (
	"errors"
	"fmt"
	"image"
	"math"
	"sort"
)

var (
	whole = [4]float64{0, 0, 1, 1}
	toy   = hue{"toy", 16, 36, 0.72, 0.35}  // orange, far more saturated than wood
	box   = hue{"box", 205, 240, 0.75, 0.2} // the books on the shelf are duller
)

const (
	armY    = -0.087 // the line of the arm on the robot axes, from the proprio at the start
	graspX  = 0.70   // how far ahead of the base centre the arm works comfortably
	boxX    = 0.78
	sweep   = 50.0 // degrees between two looks; the head sees 65
	headFOV = 65.0
	pitched = 45.0 // how steeply the gripper comes down, degrees below level
)

// fetch finds the toy, grasps it, and releases it into the box.
func (m *mobile) fetch() {
	m.t.Helper()
	m.observe()
	var seen *vec // the box, when it comes into view on the way
	at := m.search(toy, func() {
		if b := find(m.head, box, whole, 400); seen == nil && len(b) > 0 {
			if p, err := m.locate(box, b[0]); err == nil {
				seen = &p
			}
		}
	})
	at = m.approach(toy, at, graspX)
	m.t.Logf("in front of the toy after %d calls", m.calls)
	m.grasp(at)
	m.t.Logf("toy lifted after %d calls", m.calls)

	turn := sweep * math.Pi / 180
	if seen != nil {
		turn = m.base.bearing(*seen)
	}
	turn = clamp(turn, 1.5)
	clear := ground{yaw: turn}.in(vec{-0.25}) // away from the table while turning
	m.drive(turn, clear[0], clear[1])
	if seen == nil {
		p := m.search(box, func() {})
		seen = &p
	}
	m.deliver(m.approach(box, *seen, boxX))
}

// search turns until the colour is seen and can be placed; aside is called at every look.
func (m *mobile) search(c hue, aside func()) vec {
	m.t.Helper()
	for range 16 {
		aside()
		turn := sweep
		if b := find(m.head, c, whole, 60); len(b) > 0 {
			p, err := m.locate(c, b[0])
			if err == nil {
				return p
			}
			turn = clamp((0.5-b[0].u)*headFOV, 20) // at the edge, or too far for the lidars
		}
		m.drive(turn*math.Pi/180, 0, 0)
	}
	m.t.Fatalf("turned all round and saw no %s", c.name)
	return vec{}
}

// locate is about where a patch of the head view is. The lidars are sparse and noisy: many hovers, and the
// middle of what most of them say.
func (m *mobile) locate(c hue, b blob) (vec, error) {
	m.t.Helper()
	pick := b.inner()
	if c == box {
		pick = b // its walls count, not what lies in it
	}
	pts := m.hovers("head", b, pick.spread(16))
	if len(pts) == 0 {
		return vec{}, errors.New("no lidar point on the patch")
	}
	if c == box {
		lo, hi := extent(pts, len(pts)/8)
		return vec{(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2, hi[2]}, nil
	}
	return median(pts), nil
}

// bearing is the turn that brings a point onto the line of the arm.
func (g ground) bearing(at vec) float64 {
	p := g.in(at)
	return math.Atan2(p[1], p[0]) - math.Asin(clamp(armY/math.Hypot(p[0], p[1]), 1))
}

// approach drives until the thing is ahead on the line of the arm, looking again on the way as long as all
// of it is in view. What is left over the arm makes up for.
func (m *mobile) approach(c hue, at vec, ahead float64) vec {
	m.t.Helper()
	for range 10 {
		p := m.base.in(at)
		far := math.Hypot(p[0], p[1])
		turn := m.base.bearing(at)
		on := math.Sqrt(math.Max(0, far*far-armY*armY)) - ahead
		switch {
		case math.Abs(on) < 0.06 && math.Abs(p[1]-armY) < 0.10:
			return at
		case math.Abs(turn) > 1:
			on = 0 // first look that way
		}
		m.drive(turn, on, 0)
		if b := find(m.head, c, whole, 60); len(b) > 0 && b[0].minU > 0.02 && b[0].maxU < 0.98 && b[0].maxV < 0.75 {
			if q, err := m.locate(c, b[0]); err == nil {
				at = q
			}
		}
	}
	m.t.Fatalf("did not come near the %s", c.name)
	return vec{}
}

// back is d metres from p against the approach direction of the gripper pitched down and heading yaw.
func back(p vec, yaw, d float64) vec {
	s, c := math.Sincos(pitched * math.Pi / 180)
	sy, cy := math.Sincos(yaw)
	return vec{p[0] - d*c*cy, p[1] - d*c*sy, p[2] + d*s}
}

// grasp points the gripper down at the toy and along it, comes down on it, and lifts. A miss is seen and
// tried again.
func (m *mobile) grasp(at vec) {
	m.t.Helper()
	yaw := m.base.yaw
	m.saw(m.do("ee_wrist_centric_rotate", wristTurn{Up: -pitched}))
	m.stageTo(back(at, yaw, 0.22))
	m.run()
	for range 3 {
		yaw = m.align(yaw)
		if m.take() {
			return
		}
		if !m.real().Open {
			m.jaws("open")
		}
		m.level(yaw)
		m.stageTo(back(m.where(), yaw, 0.20))
		m.run()
	}
	m.t.Fatal("three grasps closed on nothing")
}

// align turns the gripper along the toy and brings it in front of it, as the wrist view shows it; it
// returns the new heading.
func (m *mobile) align(yaw float64) float64 {
	m.t.Helper()
	t, err := m.measure(yaw)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("toy at %v, %.0f degrees across the gripper", m.base.in(t.at), degOf(t.yaw-yaw))
	m.turnTo(t.yaw - yaw)
	m.stageTo(back(t.at, t.yaw, 0.13))
	m.run()
	return t.yaw
}

// level stages the orientation that the gripper lost in a contact.
func (m *mobile) level(yaw float64) {
	m.t.Helper()
	a := m.real().Approach
	down := math.Atan2(-a.Z, math.Hypot(a.X, a.Y)) * 180 / math.Pi
	left := (yaw - m.base.yaw - m.real().heading()) * 180 / math.Pi
	if math.Abs(down-pitched)+math.Abs(left) > 1 {
		m.saw(m.do("ee_wrist_centric_rotate", wristTurn{Up: clamp(down-pitched, 45), Left: clamp(left, 45)}))
	}
}

// turnTo stages a turn of the pitched gripper about the vertical, so that its opening stays level.
func (m *mobile) turnTo(turn float64) {
	m.t.Helper()
	d := degOf(turn)
	if math.Abs(d) < 4 {
		return
	}
	m.saw(m.do("ee_wrist_centric_rotate", wristTurn{Up: pitched}))
	for n := math.Ceil(math.Abs(d) / 45); d != 0 && n > 0; n-- {
		m.saw(m.do("ee_wrist_centric_rotate", wristTurn{Left: clamp(d, 45)}))
		d -= clamp(d, 45)
	}
	m.saw(m.do("ee_wrist_centric_rotate", wristTurn{Up: -pitched}))
}

// measure is where the toy is and how it lies, from points along the middle of its patch in the wrist view.
// Of its two directions it takes the one nearer to yaw.
func (m *mobile) measure(yaw float64) (top, error) {
	m.t.Helper()
	b := find(m.wrist, toy, whole, 80)
	if len(b) == 0 {
		return top{}, fmt.Errorf("no toy in the wrist view")
	}
	t, err := along(m.hovers("wrist", b[0], b[0].spine(8)))
	for t.yaw-yaw > math.Pi/2 {
		t.yaw -= math.Pi
	}
	for t.yaw-yaw < -math.Pi/2 {
		t.yaw += math.Pi
	}
	return t, err
}

// take goes the last way down to the toy, closes, lifts, and looks whether it came along.
func (m *mobile) take() bool {
	m.t.Helper()
	yaw := m.base.yaw + m.real().heading()
	t, err := m.measure(yaw) // from along the toy both its flanks show alike
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("toy at %v, %.0f degrees across the gripper", m.base.in(t.at), degOf(t.yaw-yaw))
	t.at[2] -= 0.018 // from its back to its middle
	if !m.reach(t.at) {
		m.t.Logf("the way down ended early: %s", m.now.Outcome.Result)
		return false
	}
	if gap := m.jaws("closed"); gap < 0.02 {
		m.t.Logf("closed on nothing, aperture %.4f m", gap)
		return false
	}
	p := m.real().Position
	m.turnTo(-m.real().heading())
	m.stageTo(m.base.out(vec{math.Min(p.X-0.1, 0.5), p.Y, p.Z + 0.2}))
	m.run()
	return m.holds()
}

// holds looks whether the toy is between the fingers in the wrist view.
func (m *mobile) holds() bool {
	for _, b := range find(m.wrist, toy, whole, 400) {
		if b.minU < 0.54 && b.maxU > 0.54 && b.maxV > 0.8 {
			return true
		}
	}
	m.t.Log("the toy is not between the fingers")
	return false
}

// deliver goes over the middle of the box and lets go.
func (m *mobile) deliver(at vec) {
	m.t.Helper()
	for range 3 {
		at = m.inspect(at)
		m.reach(at.add(vec{0, 0, 0.12}))
		if !m.holds() {
			m.t.Fatal("the toy was lost on the way")
		}
		if m.above(box) {
			m.jaws("open")
			return
		}
		m.t.Log("the box is not under the gripper")
	}
	m.t.Fatal("the box did not come under the gripper")
}

// inspect measures the box from in front of it with the wrist's depth.
func (m *mobile) inspect(at vec) vec {
	m.t.Helper()
	m.reach(back(vec{at[0], at[1], math.Max(at[2], 0.5)}, m.base.yaw+m.real().heading(), 0.50))
	b := find(m.wrist, box, whole, 100)
	if len(b) == 0 {
		m.t.Fatal("no box in the wrist view")
	}
	all := joined(b) // the toy hangs before it
	mid, err := rectangle(m.beyond(0.2, m.hovers("wrist", all, all.rim(48))))
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("box at %v, expected at %v", m.base.in(mid), m.base.in(at))
	return mid
}

// beyond is the points that are not near the gripper: those on what it holds drop out.
func (m *mobile) beyond(far float64, pts []vec) []vec {
	var out []vec
	for _, p := range pts {
		if d := p.sub(m.where()); math.Hypot(math.Hypot(d[0], d[1]), d[2]) > far {
			out = append(out, p)
		}
	}
	return out
}

// above looks whether a colour lies to both sides of what is held.
func (m *mobile) above(c hue) bool {
	left, right := find(m.wrist, c, [4]float64{0, 0.5, 0.4, 1}, 600), find(m.wrist, c, [4]float64{0.68, 0.5, 1, 1}, 600)
	return len(left) > 0 && len(right) > 0
}

// rectangle is the middle of the rectangle on whose sides the highest points lie best: of a box of which not
// all is seen.
func rectangle(pts []vec) (vec, error) {
	if len(pts) < 8 {
		return vec{}, fmt.Errorf("only %d points on the box", len(pts))
	}
	_, most := extent(pts, 1)
	var edge []vec
	for _, p := range pts {
		if p[2] > most[2]-0.03 {
			edge = append(edge, p)
		}
	}
	best, mid := math.Inf(1), vec{}
	for a := 0.0; a < math.Pi/2; a += math.Pi / 180 {
		turned := make([]vec, len(edge))
		for i, p := range edge {
			turned[i] = ground{yaw: a}.in(p)
		}
		lo, hi := extent(turned, 0)
		off := 0.0
		for _, p := range turned {
			off += math.Min(math.Min(p[0]-lo[0], hi[0]-p[0]), math.Min(p[1]-lo[1], hi[1]-p[1]))
		}
		if off < best {
			best, mid = off, ground{yaw: a}.out(vec{(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2, most[2]})
		}
	}
	return mid, nil
}

// extent is the box around points without the n least and greatest along each axis.
func extent(pts []vec, n int) (lo, hi vec) {
	for k := range lo {
		x := make([]float64, len(pts))
		for i, p := range pts {
			x[i] = p[k]
		}
		sort.Float64s(x)
		lo[k], hi[k] = x[n], x[len(x)-1-n]
	}
	return lo, hi
}

// along fits a line to points seen from above: its direction, and the middle of their extent on it.
func along(pts []vec) (top, error) {
	if len(pts) < 3 {
		return top{}, fmt.Errorf("only %d points on the toy", len(pts))
	}
	mid := median(pts)
	var mx, my, sxx, sxy, syy float64
	for _, p := range pts {
		mx, my = mx+p[0]/float64(len(pts)), my+p[1]/float64(len(pts))
	}
	for _, p := range pts {
		x, y := p[0]-mx, p[1]-my
		sxx, sxy, syy = sxx+x*x, sxy+x*y, syy+y*y
	}
	t := top{yaw: math.Atan2(2*sxy, sxx-syy) / 2, n: len(pts)}
	s, c := math.Sincos(t.yaw)
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range pts {
		d := c*(p[0]-mx) + s*(p[1]-my)
		lo, hi = math.Min(lo, d), math.Max(hi, d)
	}
	t.at = vec{mx + c*(lo+hi)/2, my + s*(lo+hi)/2, mid[2]}
	return t, nil
}

// spine is n pixels along the middle of the patch, from one end to near the other.
func (b blob) spine(n int) []image.Point {
	s, c := math.Sincos(b.direction())
	mid := image.Pt(int(b.u*float64(b.w)), int(b.v*float64(b.h)))
	on := func(p image.Point) float64 { return c*float64(p.X-mid.X) + s*float64(p.Y-mid.Y) }
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range b.pix {
		lo, hi = math.Min(lo, on(p)), math.Max(hi, on(p))
	}
	var out []image.Point
	for i := range n {
		from, to := lo+(hi-lo)*float64(i)/float64(n), lo+(hi-lo)*float64(i+1)/float64(n)
		var x, y, k float64
		for _, p := range b.pix {
			if d := on(p); d >= from && d < to {
				x, y, k = x+float64(p.X), y+float64(p.Y), k+1
			}
		}
		if k > 0 {
			out = append(out, b.nearest(x/k, y/k))
		}
	}
	return out
}

// direction is that of the patch's longer axis in the picture, radians.
func (b blob) direction() float64 {
	var sxx, sxy, syy float64
	for _, p := range b.pix {
		x, y := float64(p.X)-b.u*float64(b.w), float64(p.Y)-b.v*float64(b.h)
		sxx, sxy, syy = sxx+x*x, sxy+x*y, syy+y*y
	}
	return math.Atan2(2*sxy, sxx-syy) / 2
}

// joined is several patches as one.
func joined(bs []blob) blob {
	all := bs[0]
	all.u, all.v, all.n, all.pix = 0, 0, 0, nil
	for _, b := range bs {
		all.u, all.v = all.u+b.u*float64(b.n), all.v+b.v*float64(b.n)
		all.minU, all.maxU = math.Min(all.minU, b.minU), math.Max(all.maxU, b.maxU)
		all.minV, all.maxV = math.Min(all.minV, b.minV), math.Max(all.maxV, b.maxV)
		all.n += b.n
		all.pix = append(all.pix, b.pix...)
	}
	all.u, all.v = all.u/float64(all.n), all.v/float64(all.n)
	return all
}

// rim is the patch's outermost pixels in n directions from its middle, drawn in a little from its edge.
func (b blob) rim(n int) []image.Point {
	cx, cy := b.u*float64(b.w), b.v*float64(b.h)
	far := make([]float64, n)
	rim := make([]image.Point, n)
	for _, p := range b.pix {
		x, y := float64(p.X)-cx, float64(p.Y)-cy
		i := int((math.Atan2(y, x)/(2*math.Pi)+1)*float64(n)) % n
		if d := math.Hypot(x, y); d > far[i] {
			far[i], rim[i] = d, p
		}
	}
	var out []image.Point
	for i, p := range rim {
		if in := 1 - 5/far[i]; in > 0 {
			out = append(out, b.nearest(cx+in*(float64(p.X)-cx), cy+in*(float64(p.Y)-cy)))
		}
	}
	return out
}

func (b blob) nearest(x, y float64) image.Point {
	best, at := math.Inf(1), b.pix[0]
	for _, p := range b.pix {
		if d := math.Hypot(float64(p.X)-x, float64(p.Y)-y); d < best {
			best, at = d, p
		}
	}
	return at
}
