package control

import (
	"errors"

	"viad/drivers/geom"
)

func (p *Planner) stretchKnots(base geom.SE2, start joints, goal geom.Pose) ([]knot, error) {
	return nil, errors.New("todo")
}
