// Package control makes plans and follows them, over any robot.Body. It knows the robots only as a
// Description and a URDF, and time only as a robot.Clock: the same code moves the arm and the twin.
//
// A pose waypoint becomes a straight line of the tool in SE(3), found by damped least squares on a fixed
// arm and in closed form on Stretch, where base, lift, arm and wrist move together. A base waypoint is a
// straight line of the base in SE(2). Both get one smooth timing in which every joint, the base and the
// tool stay inside their caps. Whether a motion arrived is decided by measured joints alone.
package control
