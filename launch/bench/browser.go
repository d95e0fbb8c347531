package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/sensor"
	"viad/interface/stage"
	"viad/interface/view"
)

// page is a headless Chromium that shows the exported scene, driven by browser/shoot.mjs.
type page struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	folder string
	about  about
}

// about is what the browser says of itself.
type about struct {
	Renderer string `json:"renderer"`
	Version  string `json:"version"`
}

// shots is what the browser says of the pictures it took.
type shots struct {
	MS       []float64 `json:"ms"`
	Bytes    []int     `json:"bytes"`
	Distinct int       `json:"distinct"`
}

// sceneJSON is what page.js draws. Lengths are metres in the odometry frame; quaternions are x, y, z, w.
type sceneJSON struct {
	Points    int         `json:"points"`
	Splat     float64     `json:"splat"` // width of a point
	Antialias bool        `json:"antialias"`
	Eye       [3]float64  `json:"eye"`
	Target    [3]float64  `json:"target"`
	Fovy      float64     `json:"fovy"` // degrees
	At        [3]float64  `json:"at"`
	Quat      [4]float64  `json:"quat"`
	Solids    []solidJSON `json:"solids"`
}

type solidJSON struct {
	Kind string     `json:"kind"`
	Size [3]float64 `json:"size"`
	At   [3]float64 `json:"at"`
	Quat [4]float64 `json:"quat"`
}

func xyz(v r3.Vec) [3]float64       { return [3]float64{v.X, v.Y, v.Z} }
func xyzw(q quat.Number) [4]float64 { return [4]float64{q.Imag, q.Jmag, q.Kmag, q.Real} }

// openPage writes what is to be shown into a folder of its own and opens the browser on it.
func openPage(ctx context.Context, sn *stage.Snapshot, solids []view.Solid, voxel float64) (*page, error) {
	p := &page{}
	var err error
	if p.folder, err = os.MkdirTemp("", "viad-bench-page-"); err != nil {
		return nil, err
	}
	if err := export(p.folder, sn, solids, voxel); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.folder))
	}
	p.cmd = exec.CommandContext(ctx, "node", filepath.Join("launch", "bench", "browser", "shoot.mjs"), p.folder, strconv.Itoa(view.DefaultQuality))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("the browser side needs node: %w", err)
	}
	if err := p.read(&p.about); err != nil {
		return nil, errors.Join(fmt.Errorf("the browser page did not open (it needs `npm ci` in launch/bench/browser and Debian's chromium): %w", err), p.close())
	}
	return p, nil
}

func (p *page) read(to any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, to)
}

func (p *page) ask(q, to any) error {
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return err
	}
	return p.read(to)
}

// shoot moves the gripper ("move") or the viewport's camera ("look") to each point and takes a picture there.
// With loop the page draws all the time meanwhile, else once for each.
func (p *page) shoot(what string, loop bool, at []r3.Vec) (s shots, err error) {
	q := struct {
		Loop   bool         `json:"loop"`
		Do     string       `json:"do"`
		Points [][3]float64 `json:"points"`
	}{Do: what, Loop: loop}
	for _, v := range at {
		q.Points = append(q.Points, xyz(v))
	}
	if err = p.ask(q, &s); err == nil && s.Distinct < len(at)-1 {
		err = fmt.Errorf("the browser showed only %d pictures for %d places: it is not drawing what is asked", s.Distinct, len(at))
	}
	return s, err
}

// keep writes the page as it is as a PNG.
func (p *page) keep(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	return p.ask(struct {
		Keep string `json:"keep"`
	}{path}, &struct{}{})
}

func (p *page) close() error {
	return errors.Join(p.in.Close(), p.cmd.Wait(), os.RemoveAll(p.folder))
}

// export writes cloud, feeds and scene.
func export(folder string, sn *stage.Snapshot, solids []view.Solid, voxel float64) error {
	pos, _, _, _ := sn.Orbit.Basis()
	s := sceneJSON{
		Points: sn.Scene.Cloud.Len(), Splat: 1.5 * voxel, Antialias: true, Eye: xyz(pos), Target: xyz(sn.Orbit.Target),
		Fovy: geom.Deg(stage.OrbitFovy), At: xyz(sn.Target.Pose.P), Quat: xyzw(sn.Target.Pose.R),
	}
	for _, v := range solids {
		kind, ok := map[view.SolidKind]string{view.Box: "box", view.Cylinder: "cylinder", view.Sphere: "sphere", view.Capsule: "capsule"}[v.Kind]
		if !ok {
			return fmt.Errorf("a solid of kind %d is not known to the page", v.Kind)
		}
		s.Solids = append(s.Solids, solidJSON{kind, xyz(v.Size), xyz(v.Pose.P), xyzw(v.Pose.R)})
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, sn.Scene.Cloud.XYZ); err != nil {
		return err
	}
	b.Write(sn.Scene.Cloud.RGB)
	files := map[string][]byte{"scene.json": text, "cloud.bin": b.Bytes()}
	for i, name := range []string{"third_person", "wrist"} {
		c := sn.Scene.Camera(name)
		if c == nil {
			return fmt.Errorf("the scene has no picture %s", name)
		}
		if files[fmt.Sprintf("feed%d.jpg", i)], err = feed(c.Frame); err != nil {
			return err
		}
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// feed is a camera's picture as a file.
func feed(f *sensor.Frame) ([]byte, error) {
	in := f.Info.Intrinsics
	return packRGB(f.RGB, in.W, in.H)
}
