package launch

import (
	"fmt"

	"viad/drivers/control"
	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/safety"
)

// Limits are what the guard refuses and what plans are made for. No tool can change them.
type Limits struct {
	Motion Duration `yaml:"motion"`

	ToolBox *Box       `yaml:"tool_box"`
	KeepIn  [][]Length `yaml:"keep_in"`

	SpeedScale Ratio `yaml:"speed_scale"`
	ToolSpeed  Speed `yaml:"tool_speed"`
	ToolTurn   Turn  `yaml:"tool_turn"`
	BaseSpeed  Speed `yaml:"base_speed"`
	BaseTurn   Turn  `yaml:"base_turn"`

	JointMargin Angle   `yaml:"joint_margin"`
	SlideMargin Length  `yaml:"slide_margin"`
	Clearance   Margins `yaml:"clearance"`
	FloorHeight Length  `yaml:"floor_height"`
	SceneNoise  Length  `yaml:"scene_noise"`
	ContactStop Force   `yaml:"contact_stop"`

	StateAge  Duration `yaml:"state_age"`
	SceneAge  Duration `yaml:"scene_age"`
	StopTime  Duration `yaml:"stop_time"`
	StartDist Length   `yaml:"start_dist"`
	StartTurn Angle    `yaml:"start_turn"`
	RestSpeed Speed    `yaml:"rest_speed"`
}

// Margins are least distances to what the sensors see.
type Margins struct {
	Arm    Length `yaml:"arm"`
	Base   Length `yaml:"base"`
	Hand   Length `yaml:"hand"`
	Finger Length `yaml:"finger"`
	Held   Length `yaml:"held"`
}

// defaultLimits are the guard's own for a robot of that kind, with the planning speeds of control.
func defaultLimits(mobile bool) Limits {
	d, k := safety.DefaultLimits(&robot.Model{Mobile: mobile}), control.DefaultSettings()
	return Limits{
		Motion: Duration(d.Motion), SpeedScale: Ratio(d.SpeedScale),
		ToolSpeed: Speed(k.ToolSpeed), ToolTurn: Turn(k.ToolTurn), BaseSpeed: Speed(k.BaseSpeed), BaseTurn: Turn(k.BaseTurn),
		JointMargin: Angle(d.JointMargin), SlideMargin: Length(d.SlideMargin),
		Clearance: Margins{
			Arm: Length(d.Clearance.Arm), Base: Length(d.Clearance.Base), Hand: Length(d.Clearance.Hand),
			Finger: Length(d.Clearance.Finger), Held: Length(d.Clearance.Held),
		},
		FloorHeight: Length(d.FloorHeight), SceneNoise: Length(d.SceneNoise), ContactStop: Force(k.ContactStop),
		StateAge: Duration(d.StateAge), SceneAge: Duration(d.SceneAge), StopTime: Duration(d.StopTime),
		StartDist: Length(d.StartDist), StartTurn: Angle(d.StartTurn), RestSpeed: Speed(d.RestSpeed),
	}
}

// overSpeed is how far the guard's speed limits lie above the planned speeds: a plan is checked by
// differences of its samples, which overshoot a little.
const overSpeed = 1.25

// safety is the limits as the guard takes them.
func (l *Limits) safety() safety.Limits {
	s := safety.Limits{
		Motion: l.Motion.D(), JointMargin: float64(l.JointMargin), SlideMargin: float64(l.SlideMargin),
		SpeedScale: float64(l.SpeedScale), ToolSpeed: overSpeed * float64(l.ToolSpeed), ToolTurn: overSpeed * float64(l.ToolTurn),
		BaseSpeed: overSpeed * float64(l.BaseSpeed), BaseTurn: overSpeed * float64(l.BaseTurn),
		Clearance: safety.Margins{
			Arm: float64(l.Clearance.Arm), Base: float64(l.Clearance.Base), Hand: float64(l.Clearance.Hand),
			Finger: float64(l.Clearance.Finger), Held: float64(l.Clearance.Held),
		},
		FloorHeight: float64(l.FloorHeight), SceneNoise: float64(l.SceneNoise),
		StateAge: l.StateAge.D(), SceneAge: l.SceneAge.D(), StopTime: l.StopTime.D(),
		StartDist: float64(l.StartDist), StartTurn: float64(l.StartTurn), RestSpeed: float64(l.RestSpeed),
	}
	if b := l.ToolBox; b != nil {
		span := func(v Span) safety.Span { return safety.Span{float64(v[0]), float64(v[1])} }
		s.ToolBox = &safety.Box{X: span(b.X), Y: span(b.Y), Z: span(b.Z)}
	}
	for _, c := range l.KeepIn {
		s.KeepIn = append(s.KeepIn, [2]float64{float64(c[0]), float64(c[1])})
	}
	return s
}

// settings is the limits as control plans and follows with them.
func (l *Limits) settings() control.Settings {
	s := control.DefaultSettings()
	s.SpeedScale = float64(l.SpeedScale)
	s.ToolSpeed, s.ToolTurn = float64(l.ToolSpeed), float64(l.ToolTurn)
	s.BaseSpeed, s.BaseTurn = float64(l.BaseSpeed), float64(l.BaseTurn)
	s.ContactStop, s.Deadline, s.StateAge = float64(l.ContactStop), l.Motion.D(), l.StateAge.D()
	// The whole ladder, with its two waits for standstill and the last rung between them, within the guard's patience.
	s.StopTime = min(s.StopTime, (l.StopTime.D()-s.RungTime)/2)
	return s
}

// checkLimits asks the rooms that use the limits, and shows their answer at the block.
func (c *Config) checkLimits() error {
	if c.Limits.ToolBox != nil {
		if err := c.checkBox("limits.tool_box", *c.Limits.ToolBox, false); err != nil {
			return err
		}
	}
	for i, p := range c.Limits.KeepIn {
		if len(p) != 2 {
			return c.complain(fmt.Sprintf("limits.keep_in[%d]", i), "a corner is [x, y], for example [1.5 m, -2 m]")
		}
	}
	if err := c.within("limits.contact_stop", float64(c.Limits.ContactStop), 0, 200, "0 N (never) and 200 N"); err != nil {
		return err
	}
	s := c.Limits.safety()
	if err := s.Validate(); err != nil {
		return c.complainOf("limits.", err)
	}
	if err := c.Limits.settings().Validate(); err != nil {
		return c.complain("limits", "%s", err)
	}
	return nil
}

// Caps are the bounds of single edits and of a waypoint as a whole. No tool can change them.
type Caps struct {
	// 3D face
	Translate  Length `yaml:"translate"`
	Rotate     Angle  `yaml:"rotate"`
	Steps      int    `yaml:"steps"`
	Orbit      Angle  `yaml:"orbit"`
	Pan        Length `yaml:"pan"`
	ZoomNear   Length `yaml:"zoom_near"`
	ZoomFar    Length `yaml:"zoom_far"`
	Cumulative Length `yaml:"cumulative"`

	// 2D face
	RobotTranslate Length `yaml:"robot_translate"`
	WristTranslate Length `yaml:"wrist_translate"`
	WristRotate    Angle  `yaml:"wrist_rotate"`
	PoseTravel     Length `yaml:"pose_travel"`
	NavTranslate   Length `yaml:"nav_translate"`
	NavRotate      Angle  `yaml:"nav_rotate"`
	NavTravel      Length `yaml:"nav_travel"`
	NavTurn        Angle  `yaml:"nav_turn"`
}

func defaultCaps() Caps {
	d := stage.DefaultCaps()
	return Caps{
		Translate: Length(d.Translate), Rotate: Angle(d.Rotate), Steps: d.Steps, Orbit: Angle(d.OrbitStep),
		Pan: Length(d.PanStep), ZoomNear: Length(d.ZoomMin), ZoomFar: Length(d.ZoomMax), Cumulative: Length(d.Travel3D),
		RobotTranslate: Length(d.RobotStep), WristTranslate: Length(d.WristStep), WristRotate: Angle(d.WristTurn), PoseTravel: Length(d.Travel),
		NavTranslate: Length(d.NavStep), NavRotate: Angle(d.NavTurn), NavTravel: Length(d.NavTravel), NavTurn: Angle(d.NavHeading),
	}
}

// stage is the caps as the stage takes them.
func (c Caps) stage(motion Duration) stage.Caps {
	return stage.Caps{
		Motion: motion.D(), Translate: float64(c.Translate), Rotate: float64(c.Rotate), Steps: c.Steps, OrbitStep: float64(c.Orbit),
		PanStep: float64(c.Pan), ZoomMin: float64(c.ZoomNear), ZoomMax: float64(c.ZoomFar), Travel3D: float64(c.Cumulative),
		RobotStep: float64(c.RobotTranslate), WristStep: float64(c.WristTranslate), WristTurn: float64(c.WristRotate), Travel: float64(c.PoseTravel),
		NavStep: float64(c.NavTranslate), NavTurn: float64(c.NavRotate), NavTravel: float64(c.NavTravel), NavHeading: float64(c.NavTurn),
	}
}

// checkCaps lets an operator tighten the caps of the tools' contract, never widen them: the tools say their
// bounds to the agent as the contract does.
func (c *Config) checkCaps() error {
	d, k := defaultCaps(), c.Caps
	err := first(
		c.within("caps.translate", float64(k.Translate), 0.001, float64(d.Translate), "1 mm and 0.1 m"),
		c.within("caps.rotate", float64(k.Rotate), degree, float64(d.Rotate), "1 deg and 90 deg"),
		c.within("caps.steps", float64(k.Steps), 1, float64(d.Steps), "1 and 50"),
		c.within("caps.orbit", float64(k.Orbit), degree, float64(d.Orbit), "1 deg and 45 deg"),
		c.within("caps.pan", float64(k.Pan), 0.001, float64(d.Pan), "1 mm and 0.2 m"),
		c.within("caps.zoom_near", float64(k.ZoomNear), 0.05, 1, "5 cm and 1 m"),
		c.within("caps.zoom_far", float64(k.ZoomFar), 1, 10, "1 m and 10 m"),
		c.within("caps.cumulative", float64(k.Cumulative), 0, 3, "0 m (no cap) and 3 m"),
		c.within("caps.robot_translate", float64(k.RobotTranslate), 0.001, float64(d.RobotTranslate), "1 mm and 0.5 m"),
		c.within("caps.wrist_translate", float64(k.WristTranslate), 0.001, float64(d.WristTranslate), "1 mm and 0.2 m"),
		c.within("caps.wrist_rotate", float64(k.WristRotate), degree, float64(d.WristRotate), "1 deg and 45 deg"),
		c.within("caps.pose_travel", float64(k.PoseTravel), 0.01, float64(d.PoseTravel), "1 cm and 1.5 m"),
		c.within("caps.nav_translate", float64(k.NavTranslate), 0.001, float64(d.NavTranslate), "1 mm and 0.5 m"),
		c.within("caps.nav_rotate", float64(k.NavRotate), degree, float64(d.NavRotate), "1 deg and 90 deg"),
		c.within("caps.nav_travel", float64(k.NavTravel), 0.01, float64(d.NavTravel), "1 cm and 0.5 m"),
		c.within("caps.nav_turn", float64(k.NavTurn), degree, float64(d.NavTurn), "1 deg and 90 deg"),
	)
	return err
}
