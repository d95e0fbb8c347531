package stage

import (
	"math"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
)

// The fixed lengths of the contract's edits.
const (
	// TeleportBack is how far behind the clicked point, along the approach axis, a teleport lands: metres.
	TeleportBack = 0.07
	// AdvanceStep is one step along the approach axis: metres.
	AdvanceStep = 0.006
	// DragPerPixel is metres per CSS pixel of the 1280x800 reference layout.
	DragPerPixel = 0.0006
	// ZoomStep is one zoom step: metres of camera-to-target distance.
	ZoomStep = 0.03
	// elevationMax keeps the camera just short of the pole, where azimuth would mean nothing.
	elevationMax = 85 * math.Pi / 180
)

// teleported is the pose whose closure point lies TeleportBack behind s along the unchanged approach axis.
func teleported(g geom.Pose, s r3.Vec) geom.Pose {
	return geom.Pose{P: r3.Sub(s, r3.Scale(TeleportBack, g.X())), R: g.R}
}

// moved is g displaced by d on the axes that g is given in.
func moved(g geom.Pose, d r3.Vec) geom.Pose { return geom.Pose{P: r3.Add(g.P, d), R: g.R} }

// advanced is g moved along its own approach axis.
func advanced(g geom.Pose, steps int) geom.Pose {
	return moved(g, r3.Scale(AdvanceStep*float64(steps), g.X()))
}

// gizmoAxis is a gizmo axis in the tool's own frame. The gizmo has z against the approach, y along the
// opening and x = y cross z, so that it lines up with the robot axes at the top-down pose.
func gizmoAxis(axis string) (r3.Vec, bool) {
	switch axis {
	case "x":
		return r3.Vec{Z: 1}, true
	case "y":
		return r3.Vec{Y: 1}, true
	case "z":
		return r3.Vec{X: -1}, true
	}
	return r3.Vec{}, false
}

// gizmoRotated turns g in place by rad about an axis of its own frame.
func gizmoRotated(g geom.Pose, axis r3.Vec, rad float64) geom.Pose {
	return geom.Pose{P: g.P, R: geom.Normalize(quat.Mul(g.R, geom.AxisAngle(axis, rad)))}
}

// dragVector is the displacement in the robot frame of a drag by right and down reference pixels, held to
// one robot axis when constraint is x, y or z. It is not scaled by depth: the cursor and the gripper may part.
func dragVector(o Orbit, right, down float64, constraint string) (r3.Vec, bool) {
	_, r, u, _ := o.Basis()
	d := r3.Scale(DragPerPixel, r3.Sub(r3.Scale(right, r), r3.Scale(down, u)))
	switch constraint {
	case "free":
		return d, true
	case "x":
		return r3.Vec{X: d.X}, true
	case "y":
		return r3.Vec{Y: d.Y}, true
	case "z":
		return r3.Vec{Z: d.Z}, true
	}
	return r3.Vec{}, false
}

// wristRotated turns g by roll, then up, then left, each about the axes as already turned. The roll is
// counter-clockwise in a view that looks along the approach, hence against the right hand. The pivot lies
// mount metres behind the closure point, so tilts swing it on an arc and rolls leave it where it is.
func wristRotated(g geom.Pose, mount, roll, up, left float64) geom.Pose {
	pivot := r3.Sub(g.P, r3.Scale(mount, g.X()))
	turn := quat.Mul(geom.RotX(-roll), quat.Mul(geom.RotY(-up), geom.RotZ(left)))
	out := geom.Pose{R: geom.Normalize(quat.Mul(g.R, turn))}
	out.P = r3.Add(pivot, r3.Scale(mount, out.X()))
	return out
}

// onBase is the pose that g takes when the base it rides on moves by delta on its own axes.
func onBase(base, delta geom.SE2, g geom.Pose) geom.Pose {
	return base.Mul(delta).Pose().Mul(base.Pose().Inv()).Mul(g)
}

// orbited swings the camera; clamped says that the elevation met 0 or 85 degrees.
func orbited(o Orbit, daz, del float64) (Orbit, bool) {
	o.Azimuth = math.Mod(o.Azimuth+daz, 2*math.Pi)
	if o.Azimuth < 0 {
		o.Azimuth += 2 * math.Pi
	}
	want := o.Elevation + del
	o.Elevation = math.Max(0, math.Min(elevationMax, want))
	return o, math.Abs(o.Elevation-want) > capTolerance
}

// panned slides camera and target together: right on the screen, up along the robot frame's z.
func panned(o Orbit, right, up float64) Orbit {
	_, r, _, _ := o.Basis()
	o.Target = r3.Add(o.Target, r3.Add(r3.Scale(right, r), r3.Vec{Z: up}))
	return o
}

// zoomed slides the camera along the ray through (u,v), so that what is there stays there; the distance
// stays within lo..hi and clamped says that it met one of them.
func zoomed(o Orbit, u, v float64, steps int, lo, hi float64) (Orbit, bool) {
	_, _, _, fwd := o.Basis()
	ray := o.Ray(u, v)
	want := o.Distance - ZoomStep*float64(steps)
	d := math.Max(lo, math.Min(hi, want))
	o.Target = r3.Add(o.Target, r3.Scale(o.Distance-d, r3.Sub(ray, fwd)))
	o.Distance = d
	return o, math.Abs(d-want) > capTolerance
}
