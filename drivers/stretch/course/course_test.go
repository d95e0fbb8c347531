package course

import (
	"math"
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

const tick = 20 * time.Millisecond

// line is a lift that goes 0.2 m in 2 s and a wrist that turns 0.4 rad meanwhile, with the base 0.1 m ahead when drives.
func line(drives bool) (robot.Trajectory, *robot.Model) {
	to := geom.SE2{}
	if drives {
		to.X = 0.1
	}
	t := robot.Trajectory{Points: []robot.Point{
		{Q: []float64{0.5, 0}, QD: []float64{0.1, 0.2}, BaseV: geom.SE2{X: to.X / 2}},
		{T: 2 * time.Second, Q: []float64{0.7, 0.4}, QD: []float64{0.1, 0.2}, Base: to, BaseV: geom.SE2{X: to.X / 2}},
	}}
	return t, &robot.Model{Joints: []robot.Joint{{Name: "lift_joint", Prismatic: true}, {Name: "wrist_yaw_joint"}}}
}

func begin(drives bool) (*Course, time.Time) {
	plan, model := line(drives)
	c := New(plan, model, tick, func(j int) time.Duration { return []time.Duration{500 * time.Millisecond, 250 * time.Millisecond}[j] })
	at := time.Unix(1000, 0)
	c.Begin(at)
	return &c, at
}

// perfect is a robot that is where the plan is.
func perfect(c *Course, now time.Time) Measured {
	p := c.Plan.At(c.S)
	return Measured{Q: p.Q, Base: p.Base, Fast: c.S < c.Plan.Duration(), Read: now}
}

func TestCourseEndsWhereItShould(t *testing.T) {
	for _, drives := range []bool{false, true} {
		c, now := begin(drives)
		if c.Moves != drives {
			t.Errorf("the base moves: %v", c.Moves)
		}
		took := 0
		for done := false; !done; took++ {
			now = now.Add(tick)
			m := perfect(c, now)
			if err := c.Advance(m, now); err != nil {
				t.Fatal(err)
			}
			var err error
			if done, err = c.Over(perfect(c, now), now); err != nil || took > 1000 {
				t.Fatalf("after %d ticks: %v", took, err)
			}
		}
		// 2 s, and five ticks at rest after the first calm look.
		if want := 100 + 5; took != want {
			t.Errorf("it took %d ticks, want %d", took, want)
		}
	}
}

// Whoever is behind what it was told makes the plan wait; ahead of the plan, within what it was told, it does not.
func TestCourseWaits(t *testing.T) {
	for _, c := range []struct {
		name string
		off  func(*Measured)
		who  string
	}{
		{"the lift within 3 cm", func(m *Measured) { m.Q[0] -= 0.0299 }, ""},
		{"the lift behind", func(m *Measured) { m.Q[0] -= 0.0301 }, "lift_joint"},
		{"the lift half a second ahead, and 3 cm", func(m *Measured) { m.Q[0] += 0.05 + 0.0299 }, ""},
		{"the lift too far ahead", func(m *Measured) { m.Q[0] += 0.05 + 0.0301 }, "lift_joint"},
		{"the wrist a quarter of a second ahead, and .15", func(m *Measured) { m.Q[1] += 0.05 + 0.149 }, ""},
		{"the wrist too far ahead", func(m *Measured) { m.Q[1] += 0.05 + 0.151 }, "wrist_yaw_joint"},
		{"the base aside", func(m *Measured) { m.Base.Y += 0.0401 }, "the base"},
		{"the base turned", func(m *Measured) { m.Base.Yaw -= 0.081 }, "the base"},
		{"the base turned once round", func(m *Measured) { m.Base.Yaw += 2 * math.Pi }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			course, now := begin(true)
			for range 50 {
				now = now.Add(tick)
				if err := course.Advance(perfect(course, now), now); err != nil {
					t.Fatal(err)
				}
			}
			was := course.S
			if was != time.Second {
				t.Fatalf("the plan is at %v after a second", was)
			}
			var err error
			waited := 0
			for ; err == nil && waited < 300; waited++ {
				now = now.Add(tick)
				m := perfect(course, now)
				c.off(&m)
				err = course.Advance(m, now)
				if c.who == "" && waited == 20 {
					break
				}
			}
			switch {
			case c.who == "" && (err != nil || course.S <= was):
				t.Errorf("the plan is at %v, %v", course.S, err)
			case c.who == "":
			case err == nil || !strings.Contains(err.Error(), c.who) || course.S != was || waited != 201:
				t.Errorf("the plan is at %v after %d ticks: %v", course.S, waited, err)
			}
		})
	}
}

// At the end measured joints decide: near enough at once, less near after three seconds, and else who is off by how much.
func TestCourseOver(t *testing.T) {
	for _, c := range []struct {
		name  string
		off   func(*Measured)
		after time.Duration
		words string
	}{
		{"fine", func(m *Measured) { m.Q[0] += 0.0009; m.Q[1] -= 0.0039 }, 100 * time.Millisecond, ""},
		{"good enough", func(m *Measured) { m.Q[0] += 0.0029 }, 3 * time.Second, ""},
		{"not good enough", func(m *Measured) { m.Q[0] += 0.0042 }, 3 * time.Second, "lift_joint is measured 4.2 mm from its end"},
		{"a wrist", func(m *Measured) { m.Q[1] += 0.02 }, 3 * time.Second, "wrist_yaw_joint is measured 0.020 rad"},
		{"the base", func(m *Measured) { m.Base.Y -= 0.0101 }, 3 * time.Second, "the base is measured 10.1 mm"},
		{"it shakes", func(m *Measured) { m.Fast = true }, 3 * time.Second, "still moves 3s after the end"},
		{"nothing new is read", func(m *Measured) { m.Read = time.Unix(1002, 0) }, 3 * time.Second, "still moves"},
	} {
		t.Run(c.name, func(t *testing.T) {
			course, now := begin(true)
			for course.S < course.Plan.Duration() {
				now = now.Add(tick)
				if err := course.Advance(perfect(course, now), now); err != nil {
					t.Fatal(err)
				}
			}
			ended := now
			for {
				m := perfect(course, now)
				c.off(&m)
				done, err := course.Over(m, now)
				if !done && now.Sub(ended) < 4*time.Second {
					now = now.Add(tick)
					continue
				}
				if now.Sub(ended) != c.after || (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
					t.Errorf("done %v after %v: %v", done, now.Sub(ended), err)
				}
				return
			}
		})
	}
}
