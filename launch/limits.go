package launch

import "viad/interface/stage"

// Caps are the bounds of single edits and of a waypoint as a whole. No tool can change them.
type Caps struct {
	Motion Duration `yaml:"motion"`

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
		Motion: Duration(d.Motion), Translate: Length(d.Translate), Rotate: Angle(d.Rotate), Steps: d.Steps, Orbit: Angle(d.OrbitStep),
		Pan: Length(d.PanStep), ZoomNear: Length(d.ZoomMin), ZoomFar: Length(d.ZoomMax), Cumulative: Length(d.Travel3D),
		RobotTranslate: Length(d.RobotStep), WristTranslate: Length(d.WristStep), WristRotate: Angle(d.WristTurn), PoseTravel: Length(d.Travel),
		NavTranslate: Length(d.NavStep), NavRotate: Angle(d.NavTurn), NavTravel: Length(d.NavTravel), NavTurn: Angle(d.NavHeading),
	}
}

// stage is the caps as the stage takes them.
func (c Caps) stage() stage.Caps {
	return stage.Caps{
		Motion: c.Motion.D(), Translate: float64(c.Translate), Rotate: float64(c.Rotate), Steps: c.Steps, OrbitStep: float64(c.Orbit),
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
		c.within("caps.motion", k.Motion.D().Seconds(), 1, d.Motion.D().Seconds(), "1 s and 30 s"),
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
