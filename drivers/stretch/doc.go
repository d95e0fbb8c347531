// Package stretch drives the Hello Robot Stretch 4 through its own driver, over any ros.Node.
//
// Three generations of that driver are in use, which differ in topics, parameters and units; which one answers is
// found out at connect, and nothing moves before that. Joints are those of the Model, in its order: metres for lift and
// arm (the sum of the telescope's four stages), radians for yaw, pitch (positive points the tool down) and roll. The base
// frame is base_footprint, x forward, y left; the odometry frame is wheel_odom.
//
// The arm follows a plan by action goals that reach at most half a second ahead and replace one another; the base by a
// stream of velocities, closed on odometry. Both keep to the plan's own time, which waits for whoever is behind: joints
// and base stay within a small hull of one instant of the plan. When the daemon dies the arm ends at its last short
// goal, and the base is stopped by the firmware's own watchdog; the newest generation of the driver defeats that
// watchdog, so there the base moves only while a Guard in another process is heard.
package stretch
