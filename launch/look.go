package launch

import (
	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/interface/stage"
	"viad/interface/view"
)

// Sources decorates the sensors before anything reads them: for benchmarks with more to see than a twin's
// cameras give, and for faults.
type Sources func([]sensor.Source) []sensor.Source

// Bodies decorates the machine before anything reads or commands it, on the machine's own clock: for faults.
type Bodies func(robot.Body, robot.Clock) robot.Body

// Look is what pictures are made of: the newest snapshot, and the target gripper's solids in the tool frame at
// the measured aperture. Benchmarks draw the same scene by other means from it.
func (s *System) Look() (*stage.Snapshot, []view.Solid, error) {
	shape, err := gripperShape(s.kin)
	if err != nil {
		return nil, nil, err
	}
	sn := s.stage.Snapshot()
	return sn, shape(sn.Aperture), nil
}
