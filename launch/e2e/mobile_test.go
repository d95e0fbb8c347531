package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"math"
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

// heading is where the gripper points, seen from above.
func (g gripperJSON) heading() float64 { return math.Atan2(g.Approach.Y, g.Approach.X) }

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
	Outcome struct {
		Result string `json:"result"`
	} `json:"outcome"`
	Message string `json:"message"`
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

// ground is a pose on the floor: of the robot axes in the place where they were at the start.
type ground struct{ x, y, yaw float64 }

// out takes a point on the robot axes to the start's, and in takes it back.
func (g ground) out(p vec) vec {
	s, c := math.Sincos(g.yaw)
	return vec{g.x + c*p[0] - s*p[1], g.y + s*p[0] + c*p[1], p[2]}
}

func (g ground) in(p vec) vec {
	s, c := math.Sincos(g.yaw)
	return vec{c*(p[0]-g.x) + s*(p[1]-g.y), c*(p[1]-g.y) - s*(p[0]-g.x), p[2]}
}

// mobile is the scripted agent of the 2D face. It remembers points on the robot axes of the start, and
// reckons from what each motion says of itself how the axes have moved since.
type mobile struct {
	agent
	base        ground
	head, wrist image.Image // the newest views
	now         status      // of the newest reply with a proprio
}

// saw keeps what a reply shows.
func (m *mobile) saw(r reply) status {
	m.t.Helper()
	for label, img := range map[string]*image.Image{"head": &m.head, "wrist": &m.wrist} {
		if data := r.picture(label); data != nil {
			x, err := decode(data)
			if err != nil {
				m.t.Fatal(err)
			}
			*img = x
		}
	}
	s, err := readJSON(r)
	if err != nil {
		m.t.Fatal(err)
	}
	if s.Proprio != nil {
		m.now = s
	}
	return s
}

func (m *mobile) real() gripperJSON { return m.now.Proprio.Real }

// where is the real closure point on the start's axes.
func (m *mobile) where() vec { return m.base.out(m.real().Position.vec()) }

func (m *mobile) observe() { m.t.Helper(); m.saw(m.do("observe", none{})) }

// run executes what is staged and reckons the robot axes on.
func (m *mobile) run() status {
	m.t.Helper()
	staged := m.now
	s := m.saw(m.execute("observe"))
	if err := m.reckon(staged, s); err != nil {
		m.t.Fatalf("%v in %+v", err, s)
	}
	return s
}

func (m *mobile) reckon(staged, s status) error {
	if s.Result == nil {
		return errors.New("no ordered_vs_realized")
	}
	switch staged.Proprio.Mode {
	case "nav":
		var d struct {
			X   float64 `json:"dx_m"`
			Y   float64 `json:"dy_m"`
			Yaw float64 `json:"dyaw_deg"`
		}
		if err := json.Unmarshal(s.Result.Realized, &d); err != nil {
			return err
		}
		p := m.base.out(vec{d.X, d.Y})
		m.base = ground{p[0], p[1], m.base.yaw + d.Yaw*math.Pi/180}
	case "pose":
		// The ordered pose is the staged one on the axes after the motion: the difference is the axes' own.
		var o gripperJSON
		if err := json.Unmarshal(s.Result.Ordered, &o); err != nil {
			return err
		}
		t := staged.Proprio.Target
		turned := ground{yaw: t.heading() - o.heading()}
		p := m.base.out(t.Position.vec().sub(turned.out(o.Position.vec())))
		m.base = ground{p[0], p[1], m.base.yaw + turned.yaw}
	}
	return nil
}

type dxyz struct {
	X float64 `json:"dx_m"`
	Y float64 `json:"dy_m"`
	Z float64 `json:"dz_m"`
}

type dxy struct {
	X float64 `json:"dx_m"`
	Y float64 `json:"dy_m"`
}

type degrees struct {
	A float64 `json:"angle_deg"`
}

type wristTurn struct {
	Up   float64 `json:"tilt_up_deg,omitempty"`
	Left float64 `json:"tilt_left_deg,omitempty"`
}

type viewUV struct {
	View string  `json:"view"`
	U    float64 `json:"u"`
	V    float64 `json:"v"`
}

func clamp(x, lim float64) float64 { return math.Max(-lim, math.Min(lim, x)) }

func round3(x float64) float64 { return math.Round(1e3*x) / 1e3 }

func degOf(rad float64) float64 { return math.Round(rad*1800/math.Pi) / 10 }

// drive stages a turn and then a way, on the axes after the turn, and runs both as one motion. Within the
// caps of one waypoint: half a metre, 90 degrees.
func (m *mobile) drive(turn, dx, dy float64) {
	m.t.Helper()
	if a := degOf(clamp(turn, math.Pi/2)); a != 0 {
		m.saw(m.do("nav_rotate", degrees{a}))
	}
	if d := math.Hypot(dx, dy); d > 0.48 {
		dx, dy = dx*0.48/d, dy*0.48/d
	}
	if dx, dy = round3(dx), round3(dy); dx != 0 || dy != 0 {
		m.saw(m.do("nav_translate", dxy{dx, dy}))
	}
	m.run()
}

// stageTo stages a move of the target's closure point to p on the start's axes.
func (m *mobile) stageTo(p vec) {
	m.t.Helper()
	d := m.base.in(p).sub(m.now.Proprio.Target.Position.vec())
	n := math.Ceil(math.Max(math.Abs(d[0]), math.Max(math.Abs(d[1]), math.Abs(d[2]))) / 0.49)
	for range int(n) {
		m.saw(m.do("ee_robot_centric_translate", dxyz{round3(d[0] / n), round3(d[1] / n), round3(d[2] / n)}))
	}
}

// reach moves the closure point to p on the start's axes, and says whether it came there.
func (m *mobile) reach(p vec) bool {
	m.t.Helper()
	m.stageTo(p)
	return m.run().Outcome.Result == "reached"
}

// jaws opens or closes, and returns the measured aperture. An opening that ended early is asked for once more.
func (m *mobile) jaws(state string) float64 {
	m.t.Helper()
	gap := m.jawsOnce(state)
	if state == "open" && m.now.Outcome.Result == "stopped_short" {
		gap = m.jawsOnce(state)
	}
	return gap
}

func (m *mobile) jawsOnce(state string) float64 {
	m.t.Helper()
	m.saw(m.do("gripper_set", struct {
		S string `json:"state"`
	}{state}))
	var got struct {
		Aperture float64 `json:"aperture_m"`
	}
	if err := json.Unmarshal(m.run().Result.Realized, &got); err != nil {
		m.t.Fatal(err)
	}
	return got.Aperture
}

// hover is the point that a view shows at a pixel of a patch, on the start's axes.
func (m *mobile) hover(view string, b blob, at image.Point) (vec, bool) {
	m.t.Helper()
	u, v := b.at(at)
	h, err := readJSON(m.do("hover", viewUV{view, u, v}))
	if err != nil || h.Offset == nil {
		return vec{}, false
	}
	return m.base.out(m.real().Position.vec().add(h.Offset.vec())), true
}

func (m *mobile) hovers(view string, b blob, at []image.Point) []vec {
	m.t.Helper()
	var pts []vec
	for _, q := range at {
		if p, ok := m.hover(view, b, q); ok {
			pts = append(pts, p)
		}
	}
	return pts
}
