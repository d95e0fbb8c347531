package tool

import (
	"encoding/json"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
)

// meters prints 4 decimals; what is not a number is null.
type meters float64

// MarshalJSON prints a plain decimal.
func (v meters) MarshalJSON() ([]byte, error) { return decimal(float64(v), 4), nil }

// degrees prints 2 decimals; what is not a number is null.
type degrees float64

// MarshalJSON prints a plain decimal.
func (v degrees) MarshalJSON() ([]byte, error) { return decimal(float64(v), 2), nil }

// secs prints 2 decimals; what is not a number is null.
type secs float64

// MarshalJSON prints a plain decimal.
func (v secs) MarshalJSON() ([]byte, error) { return decimal(float64(v), 2), nil }

func decimal(v float64, d int) []byte {
	if v-v != 0 {
		return []byte("null")
	}
	return []byte(fixed(v, d))
}

// vecJSON is a point or a direction on the robot axes.
type vecJSON struct {
	X meters `json:"x"`
	Y meters `json:"y"`
	Z meters `json:"z"`
}

func vecOf(v r3.Vec) vecJSON { return vecJSON{meters(v.X), meters(v.Y), meters(v.Z)} }

// gripperJSON is a gripper pose on the robot axes.
type gripperJSON struct {
	Position vecJSON `json:"position_m"`
	Approach vecJSON `json:"approach"`
	Opening  vecJSON `json:"opening"`
	Open     bool    `json:"gripper_open"`
}

// gripperOn expresses a gripper of the odometry frame on the axes of base.
func gripperOn(base geom.SE2, g stage.Gripper) gripperJSON {
	p := base.Pose().Inv().Mul(g.Pose)
	return gripperJSON{vecOf(p.P), vecOf(p.X()), vecOf(p.Y()), g.Open}
}

type proprioJSON struct {
	Mode   string      `json:"mode"`
	Real   realJSON    `json:"real"`
	Target gripperJSON `json:"target"`
}

// realJSON is the measured gripper, with how far its jaw stands open.
type realJSON struct {
	gripperJSON

	Aperture *meters `json:"aperture_m,omitempty"`
}

func proprioOf(sn *stage.Snapshot) *proprioJSON {
	r := realJSON{gripperJSON: gripperOn(sn.State.Base, sn.Real)}
	if j := sn.State.Jaw; j.Known {
		a := meters(j.Aperture)
		r.Aperture = &a
	}
	return &proprioJSON{sn.Mode.String(), r, gripperOn(sn.State.Base, sn.Target)}
}

// checkJSON is what is known of the staged target before it moves.
type checkJSON struct {
	Executable bool     `json:"executable"`
	Reachable  bool     `json:"reachable"`
	Reach      string   `json:"reach"`
	Clear      bool     `json:"way_clear"`
	Way        string   `json:"way"`
	Refusal    string   `json:"execute_would_refuse,omitempty"`
	Notes      []string `json:"notes,omitempty"`
	Planned    *secs    `json:"planned_s,omitempty"`
}

func checkOf(c *stage.Check) *checkJSON {
	if !c.Staged {
		return nil
	}
	j := &checkJSON{
		Executable: c.Reachable && c.Refused == nil, Reachable: c.Reachable, Reach: c.Reach,
		Clear: c.Clear, Way: c.Way, Notes: c.Notes,
	}
	if c.Refused != nil {
		j.Refusal = c.Refused.Error()
	}
	if c.Plan != nil {
		s := secs(c.Duration.Seconds())
		j.Planned = &s
	}
	return j
}

type baseDeltaJSON struct {
	DX   meters  `json:"dx_m"`
	DY   meters  `json:"dy_m"`
	DYaw degrees `json:"dyaw_deg"`
}

func baseDeltaOf(d geom.SE2) baseDeltaJSON {
	return baseDeltaJSON{meters(d.X), meters(d.Y), degrees(geom.Deg(d.Yaw))}
}

// jawJSON is a jaw state of ordered_vs_realized; the aperture is measured, metres.
type jawJSON struct {
	Open     bool    `json:"gripper_open"`
	Aperture *meters `json:"aperture_m,omitempty"`
}

// orderedJSON holds one of the three forms of ordered and realized.
type orderedJSON struct {
	Mode     string `json:"mode"`
	Ordered  formed `json:"ordered"`
	Realized formed `json:"realized"`
}

// formed is exactly one of a gripper pose, a base displacement and a jaw state.
type formed struct {
	pose *gripperJSON
	base *baseDeltaJSON
	jaw  *jawJSON
}

// MarshalJSON prints the form that is set.
func (f formed) MarshalJSON() ([]byte, error) {
	switch {
	case f.pose != nil:
		return json.Marshal(f.pose)
	case f.base != nil:
		return json.Marshal(f.base)
	case f.jaw != nil:
		return json.Marshal(f.jaw)
	}
	return []byte("null"), nil
}

// outcomeJSON is how a motion ended, decided by measured joints.
type outcomeJSON struct {
	Result  string `json:"result"`
	Stop    string `json:"stop"`
	Took    secs   `json:"took_s"`
	Planned secs   `json:"planned_s"`
	Why     string `json:"why,omitempty"`

	Base *baseDeltaJSON `json:"base_moved,omitempty"` // by a pose, on the axes before
}

// resultJSON is the JSON block of a 2D result; absent keys are left out.
type resultJSON struct {
	Offset  *vecJSON       `json:"offset_m,omitempty"`
	Delta   *baseDeltaJSON `json:"staged_base_delta,omitempty"`
	Ordered *orderedJSON   `json:"ordered_vs_realized,omitempty"`
	Outcome *outcomeJSON   `json:"outcome,omitempty"`
	Message string         `json:"message,omitempty"`
	Check   *checkJSON     `json:"check,omitempty"`
	Proprio *proprioJSON   `json:"proprio,omitempty"`
}

// text is the block as it is sent: compact, without HTML escapes.
func (r *resultJSON) text() (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
