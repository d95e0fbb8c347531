package e2e

import (
	"context"
	"fmt"
	"image"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// none is the argument object of a tool that takes none.
type none struct{}

type uv struct {
	U float64 `json:"u"`
	V float64 `json:"v"`
}

// agent is what the scripted agents of both faces share: a client, and calls that must succeed.
type agent struct {
	t     *testing.T
	ctx   context.Context
	c     caller
	calls int
}

// do calls a tool and fails the test when it is refused.
func (a *agent) do(tool string, args any) reply {
	a.t.Helper()
	r, err := a.try(tool, args)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

// try calls a tool; a refusal is an error.
func (a *agent) try(tool string, args any) (reply, error) {
	a.calls++
	r, err := a.c.call(a.ctx, tool, args)
	if err != nil {
		return r, err
	}
	if r.refused {
		return r, fmt.Errorf("refused: %s", r.text())
	}
	return r, nil
}

// execute runs the staged waypoint and fails the test when it is refused.
func (a *agent) execute(look string) reply {
	a.t.Helper()
	r, err := a.attempt(look)
	if err != nil {
		a.t.Fatalf("execute_waypoint: %v", err)
	}
	return r
}

// attempt runs the staged waypoint; told to look again, it looks and tries once more, and told to wait it waits.
func (a *agent) attempt(look string) (reply, error) {
	r, err := a.try("execute_waypoint", none{})
	if err != nil && strings.Contains(err.Error(), "look again") {
		a.do(look, none{})
		r, err = a.try("execute_waypoint", none{})
	}
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for range 5 {
		if err == nil || !strings.Contains(err.Error(), "Wait for the robot to report") {
			break
		}
		<-tick.C
		r, err = a.try("execute_waypoint", none{})
	}
	return r, err
}

var number = regexp.MustCompile(`-?\d+(?:\.\d+)?`)

// readout returns the numbers of the line that starts with a label, nil when there is no such line or it says none.
func readout(r reply, label string) []float64 {
	for _, line := range strings.Split(r.text(), "\n") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), label+":")
		if !ok {
			continue
		}
		var out []float64
		for _, s := range number.FindAllString(rest, -1) {
			x, err := strconv.ParseFloat(s, 64)
			if err == nil {
				out = append(out, x)
			}
		}
		return out
	}
	return nil
}

func readPoint(r reply, label string) (vec, bool) {
	n := readout(r, label)
	if len(n) < 3 {
		return vec{}, false
	}
	return vec{n[0], n[1], n[2]}, true
}

// tabletop is the scripted agent of the 3D face.
type tabletop struct{ agent }

// cloudPart is the right main view of the 1280x800 picture.
var cloudPart = [4]float64{400.0 / 1280, 0, 1, 1}

var (
	red   = hue{"red", 345, 15, 0.55, 0.25}
	green = hue{"green", 90, 160, 0.35, 0.2}
)

func (f *tabletop) look() image.Image {
	f.t.Helper()
	r := f.do("screenshot", none{})
	img, err := decode(r.picture(""))
	if err != nil {
		f.t.Fatal(err)
	}
	return img
}

func (f *tabletop) target() vec {
	f.t.Helper()
	p, ok := readPoint(f.do("gripper_get_pose", none{}), "target gripper")
	if !ok {
		f.t.Fatal("gripper_get_pose has no target gripper line")
	}
	return p
}

// measure finds a cube by colour in the cloud view and its top face by hovering over the patch.
func (f *tabletop) measure(c hue) (top, blob, uv) {
	f.t.Helper()
	f.do("camera_reset", none{})
	var last error
	for try := 0; try < 3; try++ {
		blobs := find(f.look(), c, cloudPart, 40)
		if len(blobs) == 0 {
			last = fmt.Errorf("no %s patch in the cloud view", c.name)
		} else if t, at, err := f.probe(blobs[0]); err == nil {
			return t, blobs[0], at
		} else {
			last = fmt.Errorf("%s: %w", c.name, err)
		}
		f.do("camera_orbit_via_key", struct {
			A float64 `json:"d_azimuth"`
			E float64 `json:"d_elevation"`
		}{15, 15})
	}
	f.t.Fatal(last)
	return top{}, blob{}, uv{}
}

// around hovers over what is beside a patch, as far as an open hand reaches.
func (f *tabletop) around(b blob) []vec {
	f.t.Helper()
	const n = 12
	var out []vec
	for i := range n * n {
		u := (b.minU+b.maxU)/2 + 3*(b.maxU-b.minU)*(float64(i%n)/(n-1)-0.5)
		v := (b.minV+b.maxV)/2 + 3*(b.maxV-b.minV)*(float64(i/n)/(n-1)-0.5)
		if u <= cloudPart[0] || u >= 1 || v <= 0 || v >= 1 {
			continue
		}
		if p, ok := readPoint(f.do("hover", uv{u, v}), "contact point"); ok {
			out = append(out, p)
		}
	}
	return out
}

// grip is how an open hand comes down on a cube: the turn, of the two that grip it, whose fingers find more
// room among what is seen beside it, and how far along the opening line to go from its middle so that both
// have the same; the closing jaw brings the middle back. Where both turns have enough, the smaller one.
func (face top) grip(seen []vec) (yaw, shift float64) {
	const inner, enough, wide, below = 0.034, 0.085, 0.020, 0.038 // of a finger, and its tip under the face
	room := func(yaw float64) (left, right float64) {
		s, c := math.Sincos(yaw)
		left, right = enough, enough
		for _, p := range seen {
			d := p.sub(face.at)
			along, across := -s*d[0]+c*d[1], math.Abs(c*d[0]+s*d[1])
			switch {
			case d[2] < -below || math.Abs(along) < inner || across > wide:
			case along > 0:
				left = math.Min(left, along)
			default:
				right = math.Min(right, -along)
			}
		}
		return left, right
	}
	yaw = face.yaw
	left, right := room(yaw)
	other := yaw - math.Copysign(math.Pi/2, yaw)
	if l, r := room(other); l+r > left+right {
		yaw, left, right = other, l, r
	}
	return yaw, math.Max(-0.01, math.Min(0.01, (left-right)/2))
}

func (f *tabletop) probe(b blob) (top, uv, error) {
	var pts []vec
	var where []uv
	for _, p := range b.spread(60) {
		u, v := b.at(p)
		if hit, ok := readPoint(f.do("hover", uv{u, v}), "contact point"); ok {
			pts, where = append(pts, hit), append(where, uv{u, v})
		}
	}
	t, err := topFace(pts)
	if err != nil {
		return t, uv{}, err
	}
	best, at := math.Inf(1), uv{}
	for i, p := range pts {
		if d := p.sub(t.at); math.Hypot(math.Hypot(d[0], d[1]), d[2]) < best {
			best, at = math.Hypot(math.Hypot(d[0], d[1]), d[2]), where[i]
		}
	}
	return t, at, nil
}

// moveTarget brings the target gripper to a point by keyed translations within the 0.1 m cap.
func (f *tabletop) moveTarget(to vec) {
	f.t.Helper()
	d := to.sub(f.target())
	for n := 0; n < 20; n++ {
		var s struct {
			X float64 `json:"d_x"`
			Y float64 `json:"d_y"`
			Z float64 `json:"d_z"`
		}
		step := [3]*float64{&s.X, &s.Y, &s.Z}
		var left float64
		for k := range d {
			*step[k] = math.Round(1e4*math.Max(-0.1, math.Min(0.1, d[k]))) / 1e4
			d[k] -= *step[k]
			left += math.Abs(*step[k])
		}
		if left == 0 {
			return
		}
		f.do("gripper_translate", s)
	}
}

func (f *tabletop) jaw(state string) {
	f.t.Helper()
	f.do("gripper_toggle", struct {
		S string `json:"state"`
	}{state})
	f.execute("screenshot")
}

func deg(rad float64) float64 { return rad * 180 / math.Pi }

// reach brings the closure point below the middle of a top face: half a cube deep, or less where the hand
// would come too near to something beside it.
func (f *tabletop) reach(face vec) (at vec, depth float64) {
	f.t.Helper()
	var err error
	for _, depth = range []float64{0.022, 0.017, 0.012} {
		at = face
		at[2] -= depth
		f.moveTarget(at)
		if _, err = f.attempt("screenshot"); err == nil {
			return at, depth
		}
		if !strings.Contains(err.Error(), "clearance") {
			break
		}
		f.t.Logf("%.0f mm deep: %v", 1e3*depth, err)
	}
	f.t.Fatalf("execute_waypoint: %v", err)
	return at, depth
}

// stack picks one cube and sets it on another.
func (f *tabletop) stack(what, on hue) {
	f.t.Helper()
	base, _, _ := f.measure(on)
	cube, patch, at := f.measure(what)
	yaw, shift := cube.grip(f.around(patch))
	f.do("gripper_teleport_via_click", at)
	f.do("camera_reset", none{})
	f.t.Logf("%s top %v yaw %.1f deg (%d points), gripped at %.1f, %.0f mm aside; %s top %v",
		what.name, cube.at, deg(cube.yaw), cube.n, deg(yaw), 1e3*shift, on.name, base.at)
	sin, cos := math.Sincos(yaw)
	cube.at[0], cube.at[1] = cube.at[0]-shift*sin, cube.at[1]+shift*cos

	if deg := math.Round(10*deg(yaw)) / 10; math.Abs(deg) >= 1 {
		f.do("gripper_rotate", struct {
			Axis  string  `json:"axis"`
			Angle float64 `json:"angle"`
		}{"z", deg})
	}
	above := cube.at
	above[2] += 0.07
	f.moveTarget(above)
	f.execute("screenshot")

	grasp, depth := f.reach(cube.at)
	f.jaw("closed")

	lift := base.at
	lift[0], lift[1] = grasp[0], grasp[1]
	lift[2] += 0.13
	f.moveTarget(lift)
	f.execute("screenshot")

	over := base.at
	over[2] = lift[2]
	f.moveTarget(over)
	f.execute("screenshot")

	set := base.at
	set[2] += cube.at[2] - depth + 0.002 // the cube's height under the closure point, table top at z = 0
	f.moveTarget(set)
	f.execute("screenshot")
	f.jaw("open")

	f.do("gripper_advance_or_retreat", struct {
		D string `json:"direction"`
		N int    `json:"steps"`
	}{"b", 20})
	f.execute("screenshot")
}
