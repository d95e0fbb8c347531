package franka

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/robot"
	"viad/drivers/urdf"
	"viad/ros"
	"viad/ros/msg/std_msgs"
)

func (r *Robot) onDescription(m *std_msgs.String, _ ros.Info) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.urdf = m.Data
}

// parameters is a node that can read them: ROS 1 keeps the description in one.
type parameters interface {
	Param(ctx context.Context, key string) (string, error)
}

// The live description, as far as it is compared: it has meshes, which drivers/urdf does not read.
type (
	liveRobot struct {
		Name   string      `xml:"name,attr"`
		Joints []liveJoint `xml:"joint"`
	}
	liveJoint struct {
		Name   string      `xml:"name,attr"`
		Type   string      `xml:"type,attr"`
		Origin *liveOrigin `xml:"origin"`
		Limit  *liveLimit  `xml:"limit"`
	}
	liveOrigin struct {
		XYZ string `xml:"xyz,attr"`
		RPY string `xml:"rpy,attr"`
	}
	liveLimit struct {
		Lower    float64 `xml:"lower,attr"`
		Upper    float64 `xml:"upper,attr"`
		Velocity float64 `xml:"velocity,attr"`
	}
)

// How far the live description may be from ours.
const (
	limitTol  = 2e-3 // rad, and rad/s
	originTol = 1e-3 // m
	turnTol   = 2e-3 // rad
	urdfMost  = 4 << 20
)

// modelFact compares the live description with ours: a robot of other joints, or of narrower limits, is not this one.
func (r *Robot) modelFact(ctx context.Context) robot.Fact {
	f := robot.Fact{Name: factModel, Value: r.model.Name + " (the robot publishes no description: limits are our own)"}
	r.mu.Lock()
	text := r.urdf
	r.mu.Unlock()
	if p, ok := r.config.Node.(parameters); ok && r.config.Robot == Panda {
		ctx, cancel := r.within(ctx, callTime)
		defer cancel()
		if s, err := p.Param(ctx, r.names.description); err == nil {
			text = s
		}
	}
	if text == "" {
		return f
	}
	live, err := parseLive(text)
	if err == nil {
		err = r.compare(live)
	}
	if err != nil {
		f.Value, f.Bad = "another robot", fmt.Sprintf("the description that the robot publishes does not fit %s: %v; check model and prefix in the launch file", r.model.Name, err)
		return f
	}
	f.Value = fmt.Sprintf("%s, as the robot's description %q has it", r.model.Name, live.Name)
	return f
}

func parseLive(text string) (*liveRobot, error) {
	if len(text) > urdfMost {
		return nil, fmt.Errorf("it has %d bytes, limit %d", len(text), urdfMost)
	}
	live := new(liveRobot)
	if err := xml.Unmarshal([]byte(text), live); err != nil {
		return nil, err
	}
	return live, nil
}

func (l *liveRobot) joint(name string) *liveJoint {
	for i := range l.Joints {
		if l.Joints[i].Name == name {
			return &l.Joints[i]
		}
	}
	return nil
}

func (r *Robot) compare(live *liveRobot) error {
	own, err := urdf.Load(string(r.config.Robot))
	if err != nil {
		return err
	}
	for i, j := range r.model.Joints {
		l := live.joint(r.names.joints[i])
		if l == nil {
			return fmt.Errorf("it has no joint %s", r.names.joints[i])
		}
		if err := l.fits(j, own.Joint(j.Name)); err != nil {
			return err
		}
	}
	for _, n := range r.names.fingers {
		if live.joint(n) == nil {
			return fmt.Errorf("it has no %s: is the hand part of it", n)
		}
	}
	return nil
}

// fits says whether we would stay inside the live joint's limits, and whether it sits where ours does.
func (l *liveJoint) fits(j robot.Joint, own *urdf.Joint) error {
	if l.Limit == nil {
		return fmt.Errorf("%s has no limits", l.Name)
	}
	if !(l.Limit.Lower <= j.Min+limitTol && l.Limit.Upper >= j.Max-limitTol) {
		return fmt.Errorf("%s goes from %.4f to %.4f rad there, from %.4f to %.4f here", l.Name, l.Limit.Lower, l.Limit.Upper, j.Min, j.Max)
	}
	if !(l.Limit.Velocity >= j.Vel-limitTol) {
		return fmt.Errorf("%s goes at %.3f rad/s at most there, %.3f here", l.Name, l.Limit.Velocity, j.Vel)
	}
	var o liveOrigin
	if l.Origin != nil {
		o = *l.Origin
	}
	xyz, err1 := vector(o.XYZ)
	rpy, err2 := vector(o.RPY)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	if d := r3.Norm(r3.Sub(xyz, own.Origin.XYZ)); !(d <= originTol) {
		return fmt.Errorf("%s sits %.1f mm from where it is here", l.Name, d*1e3)
	}
	if d := r3.Sub(rpy, own.Origin.RPY); !(math.Max(math.Max(turn(d.X), turn(d.Y)), turn(d.Z)) <= turnTol) {
		return fmt.Errorf("%s is turned otherwise than here (%v, here %v)", l.Name, rpy, own.Origin.RPY)
	}
	return nil
}

func turn(a float64) float64 { return math.Abs(math.Remainder(a, 2*math.Pi)) }

func vector(s string) (v r3.Vec, err error) {
	if strings.TrimSpace(s) == "" {
		return v, nil
	}
	if _, err = fmt.Sscan(s, &v.X, &v.Y, &v.Z); err != nil {
		return v, fmt.Errorf("%q are no three numbers: %w", s, err)
	}
	return v, nil
}
