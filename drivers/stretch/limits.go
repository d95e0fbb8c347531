package stretch

import (
	"encoding/xml"
	"errors"
	"fmt"
)

// limits are the position limits of the robot's own description, which has meshes and much else that is not read here.
type limits map[string][2]float64

const descriptionMost = 16 << 20 // bytes

func readLimits(doc string) (limits, error) {
	if len(doc) > descriptionMost {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(doc), descriptionMost)
	}
	var d struct {
		Joints []struct {
			Name  string `xml:"name,attr"`
			Limit *struct {
				Lower float64 `xml:"lower,attr"`
				Upper float64 `xml:"upper,attr"`
			} `xml:"limit"`
		} `xml:"joint"`
	}
	if err := xml.Unmarshal([]byte(doc), &d); err != nil {
		return nil, err
	}
	if len(d.Joints) == 0 {
		return nil, errors.New("it has no joints")
	}
	l := limits{}
	for _, j := range d.Joints {
		if j.Limit != nil {
			l[j.Name] = [2]float64{j.Limit.Lower, j.Limit.Upper}
		}
	}
	return l, nil
}

// of is the range of a joint of the Model; the arm's is that of its four stages together.
func (l limits) of(name string) (lo, hi float64, ok bool) {
	if name != "arm_joint" {
		r, ok := l[name]
		return r[0], r[1], ok
	}
	for _, s := range stageNames() {
		r, ok := l[s]
		if !ok {
			return 0, 0, false
		}
		lo, hi = lo+r[0], hi+r[1]
	}
	return lo, hi, true
}
