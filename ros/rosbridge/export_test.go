package rosbridge

import "viad/ros"

// ForgetRobotID makes a goal one whose id on the robot was never learnt.
func ForgetRobotID(g ros.Goal) {
	if x, ok := g.(*goal); ok {
		x.mu.Lock()
		x.uuid = nil
		x.mu.Unlock()
	}
}
