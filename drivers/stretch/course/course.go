// Package course is the plan that a Stretch is on: its own time, which waits for whoever is behind, and its end, which
// measured joints alone decide. Both ways to the robot follow it, over ROS and over its serial ports.
package course

import (
	"fmt"
	"math"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// Speeds that count as rest.
const (
	RestTurn  = 0.01  // rad/s
	RestSlide = 0.003 // m/s
)

const (
	waitMost = 4 * time.Second // that the plan waits in one piece for whoever is behind
	endMost  = 3 * time.Second // after the plan's end
	calmFor  = 5               // ticks at rest before a motion has ended
	jumpMost = 3               // ticks that the plan's time goes on at once after a delay
)

// Slack is how far something may be off the plan, in metres or radians: Behind, before the plan waits for it; Fine and Good
// are what has arrived: Fine is tried for, Good is enough.
type Slack struct{ Behind, Fine, Good float64 }

// Of is a joint's slack.
func Of(j robot.Joint) Slack {
	if j.Prismatic {
		return Slack{0.03, 0.001, 0.003}
	}
	return Slack{0.15, 0.004, 0.01}
}

// OfBase is the base's: metres, and radians.
func OfBase() (slide, turn Slack) {
	return Slack{0.04, 0.0015, 0.006}, Slack{0.08, 0.003, 0.01}
}

// BaseError is where to is, seen from the base at from.
func BaseError(to, from geom.SE2) geom.SE2 {
	e := from.Inv().Mul(to)
	return geom.SE2{X: e.X, Y: e.Y, Yaw: geom.WrapAngle(to.Yaw - from.Yaw)}
}

// Measured is where the robot was read to be.
type Measured struct {
	Q    []float64 // in Model order, metres and radians
	Base geom.SE2  // odometry frame
	Fast bool      // something moves faster than rest
	Read time.Time // of the oldest part: rest is in readings that are new, not in time that passes without any
}

// Course is one plan being followed. It is for one goroutine.
type Course struct {
	Plan  robot.Trajectory
	Model *robot.Model
	Moves bool                          // the base is part of it
	Tick  time.Duration                 // between two looks
	Lead  func(joint int) time.Duration // how far ahead on the plan a joint may have been sent

	S      time.Duration // the plan's own time
	Waited time.Duration // in one piece, for whoever is behind
	Calm   time.Time     // since when everything is at rest; zero: it is not

	last    time.Time // of the last Advance
	endedAt time.Time // when the plan's time was over
}

// New is a plan whose time has not begun.
func New(plan robot.Trajectory, m *robot.Model, tick time.Duration, lead func(joint int) time.Duration) Course {
	c := Course{Plan: plan, Model: m, Tick: tick, Lead: lead}
	for _, p := range plan.Points {
		way := p.Base.Mul(plan.Points[0].Base.Inv())
		c.Moves = c.Moves || way.Norm() > 1e-4 || math.Abs(geom.WrapAngle(p.Base.Yaw-plan.Points[0].Base.Yaw)) > 1e-4
	}
	return c
}

// Begin starts the plan's time.
func (c *Course) Begin(now time.Time) { c.last = now }

// Advance lets the plan's time go on, unless something is behind.
func (c *Course) Advance(m Measured, now time.Time) error {
	dt := min(now.Sub(c.last), jumpMost*c.Tick)
	c.last = now
	end := c.Plan.Duration()
	if c.S >= end {
		return nil
	}
	who := c.behind(m)
	if who == "" {
		c.Waited = 0
		if c.S = min(c.S+dt, end); c.S == end {
			c.endedAt = now
		}
		return nil
	}
	if c.Waited += dt; c.Waited > waitMost {
		return fmt.Errorf("%s does not follow: it has been behind the plan for %v; look what holds it", who, waitMost)
	}
	return nil
}

// behind names what is further from the plan than what it was told to do ahead of it.
func (c *Course) behind(m Measured) string {
	at := c.Plan.At(c.S)
	for i, j := range c.Model.Joints {
		ahead := c.Plan.At(c.S + c.Lead(i)).Q[i]
		lo, hi := math.Min(at.Q[i], ahead), math.Max(at.Q[i], ahead)
		h := Of(j).Behind
		if m.Q[i] < lo-h || m.Q[i] > hi+h {
			return j.Name
		}
	}
	if c.Moves {
		slide, turn := OfBase()
		if e := BaseError(at.Base, m.Base); e.Norm() > slide.Behind || math.Abs(e.Yaw) > turn.Behind {
			return "the base"
		}
	}
	return ""
}

// Over says whether the motion has ended, by measurement alone.
func (c *Course) Over(m Measured, now time.Time) (bool, error) {
	if c.endedAt.IsZero() {
		return false, nil
	}
	if m.Fast {
		c.Calm = time.Time{}
	} else if c.Calm.IsZero() {
		c.Calm = m.Read
	}
	calm := !c.Calm.IsZero() && m.Read.Sub(c.Calm) >= calmFor*c.Tick
	who, _ := c.off(m, func(s Slack) float64 { return s.Fine })
	if calm && who == "" {
		return true, nil
	}
	if now.Sub(c.endedAt) < endMost {
		return false, nil
	}
	who, by := c.off(m, func(s Slack) float64 { return s.Good })
	switch {
	case who == "" && calm:
		return true, nil
	case who == "":
		return true, fmt.Errorf("the robot still moves %v after the end of the plan", endMost)
	}
	return true, fmt.Errorf("the plan is over and %s is measured %s from its end; look what holds it", who, by)
}

// off names what is further than that from the end.
func (c *Course) off(m Measured, of func(Slack) float64) (who, by string) {
	end := c.Plan.Points[len(c.Plan.Points)-1]
	for i, j := range c.Model.Joints {
		if d := math.Abs(end.Q[i] - m.Q[i]); d > of(Of(j)) {
			return j.Name, amount(d, j.Prismatic)
		}
	}
	if c.Moves {
		slide, turn := OfBase()
		e := BaseError(end.Base, m.Base)
		if e.Norm() > of(slide) {
			return "the base", amount(e.Norm(), true)
		}
		if math.Abs(e.Yaw) > of(turn) {
			return "the base", amount(math.Abs(e.Yaw), false)
		}
	}
	return "", ""
}

func amount(d float64, metres bool) string {
	if metres {
		return fmt.Sprintf("%.1f mm", d*1e3)
	}
	return fmt.Sprintf("%.3f rad", d)
}
