package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"math"
	"sort"
	"strings"
)

type xyz struct{ X, Y, Z float64 }

func (p xyz) vec() vec { return vec{p.X, p.Y, p.Z} }

type gripperJSON struct {
	Position xyz  `json:"position_m"`
	Approach xyz  `json:"approach"`
	Opening  xyz  `json:"opening"`
	Open     bool `json:"gripper_open"`
}

// status is the JSON of the 2D face, as far as the agent reads it.
type status struct {
	Offset  *xyz `json:"offset_m"`
	Proprio *struct {
		Mode   string      `json:"mode"`
		Real   gripperJSON `json:"real"`
		Target gripperJSON `json:"target"`
	} `json:"proprio"`
	Result *struct {
		Ordered  json.RawMessage `json:"ordered"`
		Realized json.RawMessage `json:"realized"`
	} `json:"ordered_vs_realized"`
	Message string `json:"message"`
}

// ordered is the pose that a pose waypoint asked for, on the robot axes after the motion.
func (s status) ordered() (gripperJSON, error) {
	var g gripperJSON
	if s.Result == nil {
		return g, errors.New("no ordered_vs_realized")
	}
	return g, json.Unmarshal(s.Result.Ordered, &g)
}

// readJSON decodes the last text block that is a JSON object.
func readJSON(r reply) (status, error) {
	var s status
	for i := len(r.texts) - 1; i >= 0; i-- {
		if strings.HasPrefix(strings.TrimSpace(r.texts[i]), "{") {
			return s, json.Unmarshal([]byte(r.texts[i]), &s)
		}
	}
	return s, fmt.Errorf("no JSON in %q", r.text())
}

// mobile is the scripted agent of the 2D face.
type mobile struct{ agent }

type dxyz struct {
	X float64 `json:"dx_m"`
	Y float64 `json:"dy_m"`
	Z float64 `json:"dz_m"`
}

type dxy struct {
	X float64 `json:"dx_m"`
	Y float64 `json:"dy_m"`
}

type viewUV struct {
	View string  `json:"view"`
	U    float64 `json:"u"`
	V    float64 `json:"v"`
}

var (
	whole = [4]float64{0, 0, 1, 1}
	toy   = hue{"toy", 16, 36, 0.72, 0.35}  // orange, far more saturated than wood
	box   = hue{"box", 205, 240, 0.75, 0.2} // the books on the shelf are duller
)

// Where the arm can grasp comfortably: ahead of the base centre, on the line of the arm.
const (
	armY    = -0.087 // the tool's y with the wrist straight, from the proprio at start
	graspX  = 0.66
	maxTurn = 45.0
)

func (m *mobile) see() (image.Image, status) {
	m.t.Helper()
	r := m.do("observe", none{})
	img, err := decode(r.picture("head"))
	if err != nil {
		m.t.Fatal(err)
	}
	s, err := readJSON(r)
	if err != nil || s.Proprio == nil {
		m.t.Fatalf("observe: %v", err)
	}
	return img, s
}

func (m *mobile) turn(deg float64) {
	m.t.Helper()
	m.do("nav_rotate", struct {
		A float64 `json:"angle_deg"`
	}{math.Round(deg*10) / 10})
	m.execute("observe")
}

// search turns until the colour is seen away from the picture's edges.
func (m *mobile) search(c hue) blob {
	m.t.Helper()
	for n := 0; n < 14; n++ {
		img, _ := m.see()
		if b := find(img, c, whole, 60); len(b) > 0 {
			return b[0]
		}
		m.turn(maxTurn)
	}
	m.t.Fatalf("turned all round and saw no %s", c.name)
	return blob{}
}

// locate is where a patch is, on the robot axes from the base centre: the median of hovers on it.
func (m *mobile) locate(view string, b blob) (vec, error) {
	s := m.proprio()
	var pts []vec
	for _, p := range b.spread(12) {
		u, v := b.at(p)
		r := m.do("hover", viewUV{view, u, v})
		if h, err := readJSON(r); err == nil && h.Offset != nil {
			off := h.Offset.vec()
			pts = append(pts, vec{s.X + off[0], s.Y + off[1], s.Z + off[2]})
		}
	}
	if len(pts) == 0 {
		return vec{}, errors.New("no hover on the patch found depth")
	}
	return median(pts), nil
}

func (m *mobile) proprio() xyz {
	m.t.Helper()
	_, s := m.see()
	return s.Proprio.Real.Position
}

func median(pts []vec) vec {
	var out vec
	for k := range out {
		x := make([]float64, len(pts))
		for i, p := range pts {
			x[i] = p[k]
		}
		sort.Float64s(x)
		out[k] = x[len(x)/2]
	}
	return out
}

// approach turns to and drives at a coloured thing until it lies at (graspX, y) ahead; it returns where it is.
func (m *mobile) approach(c hue, ahead float64) vec {
	m.t.Helper()
	for n := 0; n < 25; n++ {
		b := m.search(c)
		p, err := m.locate("head", b)
		if err != nil { // too near the edge or too far for the lidar: turn by the picture alone
			m.turn(clamp((0.5-b.u)*65, 20))
			continue
		}
		if turn := math.Atan2(p[1]-armY, p[0]) * 180 / math.Pi; math.Abs(turn) > 8 && math.Hypot(p[0], p[1]) > 1.0 {
			m.turn(clamp(turn, maxTurn))
			continue
		}
		dx, dy := p[0]-ahead, p[1]-armY
		if math.Abs(dx) < 0.06 && math.Abs(dy) < 0.04 {
			return p
		}
		if d := math.Hypot(dx, dy); d > 0.45 {
			dx, dy = dx*0.45/d, dy*0.45/d
		}
		m.do("nav_translate", dxy{round3(dx), round3(dy)})
		m.execute("observe")
	}
	m.t.Fatalf("did not come near the %s", c.name)
	return vec{}
}

func clamp(x, lim float64) float64 { return math.Max(-lim, math.Min(lim, x)) }

func round3(x float64) float64 { return math.Round(1e3*x) / 1e3 }

// reach stages and runs a robot-centric move of the gripper to p, in steps within the caps. The base may
// move along: reach returns how far that shifted the robot axes, which is to be added to points known before.
func (m *mobile) reach(p vec) vec {
	m.t.Helper()
	var shift vec
	_, s := m.see()
	for n := 0; n < 4; n++ {
		d := p.sub(s.Proprio.Real.Position.vec())
		if math.Hypot(math.Hypot(d[0], d[1]), d[2]) < 0.004 {
			break
		}
		staged, err := readJSON(m.do("ee_robot_centric_translate", dxyz{round3(clamp(d[0], 0.4)), round3(clamp(d[1], 0.4)), round3(clamp(d[2], 0.4))}))
		if err != nil {
			m.t.Fatal(err)
		}
		r := m.execute("observe")
		if s, err = readJSON(r); err != nil {
			m.t.Fatal(err)
		}
		o, err := s.ordered()
		if err != nil {
			m.t.Fatalf("%v in %s", err, r.text())
		}
		moved := o.Position.vec().sub(staged.Proprio.Target.Position.vec())
		for k := range p {
			p[k] += moved[k]
			shift[k] += moved[k]
		}
	}
	return shift
}

func (a vec) add(b vec) vec { return vec{a[0] + b[0], a[1] + b[1], a[2] + b[2]} }

func (m *mobile) jaws(state string) status {
	m.t.Helper()
	m.do("gripper_set", struct {
		S string `json:"state"`
	}{state})
	s, err := readJSON(m.execute("observe"))
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// fetch finds the toy, grasps it, and releases it into the box.
func (m *mobile) fetch() {
	m.t.Helper()
	at := m.approach(toy, graspX)
	m.t.Logf("toy at %v after %d calls", at, m.calls)
	m.grasp(at)
	m.deliver()
}

// pitched is how steeply the gripper comes down on the toy, degrees below level.
const pitched = 40.0

func (m *mobile) grasp(at vec) {
	m.t.Helper()
	m.do("ee_wrist_centric_rotate", struct {
		A float64 `json:"tilt_up_deg"`
	}{-pitched})
	m.execute("observe")
	s, c := math.Sincos(pitched * math.Pi / 180)
	back := func(p vec, d float64) vec { return vec{p[0] - d*c, p[1], p[2] + d*s} }
	at = at.add(m.reach(back(at, 0.16)))
	for n := 0; n < 3; n++ { // the wrist camera is nearer and its depth denser: trust it over the head's
		img, err := decode(m.do("observe", none{}).picture("wrist"))
		if err != nil {
			m.t.Fatal(err)
		}
		b := find(img, toy, whole, 80)
		if len(b) == 0 {
			m.t.Fatal("the toy is not in the wrist view")
		}
		p, err := m.locate("wrist", b[0])
		if err != nil {
			break
		}
		m.t.Logf("wrist sees the toy at %v", p)
		moved := p.sub(at)
		at = p.add(m.reach(back(p, 0.12)))
		if math.Abs(moved[1]) < 0.006 {
			break
		}
	}
	m.reach(back(at, -0.015))
	m.jaws("closed")
	_, st := m.see()
	up := st.Proprio.Real.Position.vec()
	up[2] += 0.2
	m.reach(up)
}

func (m *mobile) deliver() {
	m.t.Helper()
	_, st := m.see()
	p := st.Proprio.Real.Position.vec()
	p[0] = math.Max(0.45, p[0]-0.3)
	m.reach(p)
	m.do("nav_translate", dxy{-0.3, 0}) // away from the table before turning
	m.execute("observe")
	at := m.approach(box, 0.75)
	m.t.Logf("box at %v after %d calls", at, m.calls)
	over := at
	over[2] = math.Max(at[2]+0.22, 0)
	m.reach(over)
	m.jaws("open")
}
