package launch

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/control"
	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/urdf"
	"viad/interface/view"
)

// gripperShape is the robot's own hand and fingers, as the painter draws the target: the URDF's primitives
// of the links that move as one with the tool, but for the fingers, which follow the aperture.
func gripperShape(kin *control.Kinematics) (view.GripperShape, error) {
	d := kin.Description()
	tree, err := urdf.Load(d.URDF)
	if err != nil {
		return nil, err
	}
	hand := handLinks(tree, &d)
	return func(aperture float64) []view.Solid {
		toTool := kin.Tool(geom.SE2{}, d.Home).Inv()
		var out []view.Solid
		for _, l := range hand {
			at, ok := kin.Link(l.Name, geom.SE2{}, d.Home, aperture)
			if !ok {
				continue
			}
			for i := range l.Visuals {
				out = append(out, solid(l.Name, &l.Visuals[i], toTool.Mul(at)))
			}
		}
		return out
	}, nil
}

// handLinks are the links of hand and fingers below the last joint that turns the tool.
func handLinks(tree *urdf.Robot, d *control.Description) []urdf.Link {
	up := map[string]urdf.Joint{}
	for _, j := range tree.Joints {
		up[j.Child] = j
	}
	root := func(link string) string {
		for {
			j, ok := up[link]
			finger := slices.ContainsFunc(d.Jaw.Joints, func(f control.FingerDesc) bool { return f.Joint == j.Name })
			if !ok || j.Type != urdf.Fixed && !finger {
				return link
			}
			link = j.Parent
		}
	}
	var out []urdf.Link
	for _, l := range tree.Links {
		if c := d.Classes[l.Name]; (c == "hand" || c == "finger") && root(l.Name) == root(d.Tool) {
			out = append(out, l)
		}
	}
	return out
}

func solid(link string, p *urdf.Primitive, at geom.Pose) view.Solid {
	s := view.Solid{Link: link, Pose: at.Mul(geom.Pose{P: p.Origin.XYZ, R: geom.RPY(p.Origin.RPY.X, p.Origin.RPY.Y, p.Origin.RPY.Z)})}
	switch p.Kind {
	case urdf.Box:
		s.Kind, s.Size = view.Box, p.Size
	case urdf.Cylinder:
		s.Kind, s.Size = view.Cylinder, r3.Vec{X: p.Radius, Z: p.Length}
	case urdf.Sphere:
		s.Kind, s.Size = view.Sphere, r3.Vec{X: p.Radius}
	case urdf.Capsule:
		s.Kind, s.Size = view.Capsule, r3.Vec{X: p.Radius, Z: p.Length}
	}
	// Light and dark parts stay apart, but all of them light enough to be the target's colour.
	s.Shade = 0.45 + 0.5*(0.3*p.Color[0]+0.6*p.Color[1]+0.1*p.Color[2])
	return s
}

// footprint is the outline of a mobile base on the floor, base frame; nil for a fixed arm.
func footprint(kin *control.Kinematics) []r3.Vec {
	d := kin.Description()
	if !d.Mobile {
		return nil
	}
	// The hull of the base's capsules seen from above: its farthest point in each of 36 directions.
	var out []r3.Vec
	caps := kin.Capsules(geom.SE2{}, d.Home, d.Jaw.Max)
	for i := range 36 {
		sin, cos := math.Sincos(float64(i) * math.Pi / 18)
		far, at := math.Inf(-1), r3.Vec{}
		for _, l := range caps {
			if l.Class != robot.ClassBase {
				continue
			}
			for _, p := range []r3.Vec{l.A, l.B} {
				if f := p.X*cos + p.Y*sin + l.R; f > far {
					far, at = f, r3.Vec{X: p.X + l.R*cos, Y: p.Y + l.R*sin}
				}
			}
		}
		if far > 0 {
			out = append(out, at)
		}
	}
	return out
}
