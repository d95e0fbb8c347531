package launch

import (
	"viad/drivers/control"
	"viad/interface/view"
)

// gripperShape is the robot's own hand as the painter draws the target; nil draws a plain one.
func gripperShape(*control.Kinematics) view.GripperShape { return nil }
