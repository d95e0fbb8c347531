package bus

import (
	"math"
	"testing"

	"viad/drivers/geom"
	"viad/drivers/stretch"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s: %.6f, want %.6f", what, got, want)
	}
}

// One turn of the lift's motor is 22 teeth of 5 mm; of the arm's 15 links of 9.525 mm by 2.33333.
func TestUnitsSlides(t *testing.T) {
	table := axisTable()
	near(t, "lift, a turn", table[liftAxis].metre*2*math.Pi, 0.110, 1e-9)
	near(t, "arm, a turn", table[armAxis].metre*2*math.Pi, 0.142875/2.33333, 1e-9)
	near(t, "lift's top in turns", table[liftAxis].hi/table[liftAxis].metre/2/math.Pi, 1.2/0.11, 1e-9)
}

// The wheels, computed from where they touch the floor: a wheel at an azimuth, driving clockwise, has to keep up with the
// floor's speed along its own direction.
func TestUnitsWheels(t *testing.T) {
	for _, v := range []geom.SE2{{X: 0.1}, {Y: 0.1}, {Yaw: 0.5}, {X: 0.2, Y: -0.1, Yaw: 0.7}} {
		got := wheels(v)
		for i, deg := range []float64{30, 150, 270} {
			a := deg * math.Pi / 180
			px, py := 0.174*math.Cos(a), 0.174*math.Sin(a) // of the contact
			fx, fy := v.X-v.Yaw*py, v.Y+v.Yaw*px           // its speed
			along := fx*math.Sin(a) - fy*math.Cos(a)       // clockwise round the base
			near(t, "wheel", got[i], along/0.1*6, 1e-9)
		}
		back := twist(got)
		near(t, "x", back.X, v.X, 1e-12)
		near(t, "y", back.Y, v.Y, 1e-12)
		near(t, "yaw", back.Yaw, v.Yaw, 1e-12)
	}
	// Straight on only the first two turn, against one another; to the left (y) the last turns most.
	ahead := wheels(geom.SE2{X: 1})
	near(t, "omni-2 straight on", ahead[2], -60, 1e-9)
}

// Odometry against a circle: a base that drives and turns at once comes round to where it began.
func TestUnitsOdometry(t *testing.T) {
	const n = 2000
	step := wheels(geom.SE2{X: 2 * math.Pi * 0.5 / n, Yaw: 2 * math.Pi / n})
	base := geom.SE2{X: 1, Y: 2, Yaw: 0.3}
	for i := range n {
		base = advance(base, step)
		if i == n/2-1 { // half round a circle of half a metre to the left: a metre across
			near(t, "half way x", base.X, 1-math.Sin(0.3), 1e-5)
			near(t, "half way y", base.Y, 2+math.Cos(0.3), 1e-5)
		}
	}
	near(t, "x", base.X, 1, 1e-5)
	near(t, "y", base.Y, 2, 1e-5)
	near(t, "turn", base.Yaw-0.3, 2*math.Pi, 1e-9)
}

// The wrist: two turns of the servo for one of the joint, homed at -65 degrees.
func TestUnitsWrist(t *testing.T) {
	m, err := stretch.Model("pg4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		servo  int
		offset int
		ticks  int
		joint  float64
	}{
		{yawServo, 0, -1478, 0},
		{yawServo, 100, 100 - 1478 - 2048, math.Pi / 2}, // a quarter of the joint is half a turn of the servo, backwards
		{pitchServo, -5, -5, -1478 * math.Pi / 4096},    // at the stop
		{rollServo, 0, 1478, 0},
		{rollServo, 0, 1478 + 2048, -math.Pi / 2}, // the joint turns against it
	} {
		j := wristJoint(c.servo, m)
		near(t, j.Name, turn(c.servo)*j.Radians(c.ticks, c.offset), c.joint, 1e-9)
		model := m.Joints[firstTurn+c.servo]
		lo, hi := turn(c.servo)*model.Min, turn(c.servo)*model.Max
		if j.Min != math.Min(lo, hi) || j.Max != math.Max(lo, hi) {
			t.Errorf("%s: limits %v to %v", j.Name, j.Min, j.Max)
		}
	}
}

// The grippers at their ends and between: PG4 by the law of cosines of its crank, SG4 by its chord.
func TestUnitsGrippers(t *testing.T) {
	pg, err := gripperOf("pg4")
	if err != nil {
		t.Fatal(err)
	}
	near(t, "PG4 shut", pg.aperture(0), 0, 3e-5)
	near(t, "PG4 open", pg.aperture(116.5*math.Pi/180), 0.080, 3e-5)
	for a := 0.001; a < 0.08; a += 0.003 {
		// The pivot is (aperture/2 + 10.5 mm) off the servo's axis: the triangle of that, the crank and the rod.
		d := a/2 + 0.0105
		cos := (d*d + 0.022*0.022 - 0.03025*0.03025) / (2 * d * 0.022)
		angle := 44*math.Pi/180 + math.Pi/2 - math.Acos(cos)
		near(t, "PG4 angle", pg.angle(a), angle, 1e-9)
		near(t, "PG4 there and back", pg.aperture(pg.angle(a)), a, 1e-9)
	}
	sg, err := gripperOf("sg4")
	if err != nil {
		t.Fatal(err)
	}
	near(t, "SG4 shut", sg.aperture(-100*math.Pi/180), 0, 1e-9)
	near(t, "SG4 open", sg.aperture(300*math.Pi/180), 0.150, 1e-9)
	near(t, "SG4 half way", sg.aperture(100*math.Pi/180), 2*0.18205*math.Sin(math.Asin(0.15/0.3641)/2), 1e-9)
	near(t, "SG4 there and back", sg.aperture(sg.angle(0.05)), 0.05, 1e-9)
	if _, err := gripperOf("claw"); err == nil {
		t.Error("an unknown tool was taken")
	}
}
