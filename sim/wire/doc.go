// Package wire is the twin behind a robot's own ROS face: the topics, services and actions that the robot's nodes
// offer, with their units, their habits and, by option, their faults. A driver that works here has spoken the robot's
// language without the robot.
//
// It is a test double of the robot's side, written from what is known of that side and not from the drivers: neither
// imports the other, and they share no table of names. Joints follow ros2_control's joint trajectory controller:
// quintic between points that give accelerations, cubic with velocities alone, linear with positions alone; a new goal
// replaces the old one from where the controller wants to be.
//
// Serial is the same robot one layer below: a Stretch 4's boards and servos behind pseudo-terminals, byte for byte.
package wire
