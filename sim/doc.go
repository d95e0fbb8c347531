// Package sim is the twin: a robot and its sensors in a MuJoCo world, behind the same contracts as a
// real machine. A Twin is a robot.Body, a set of sensor.Source and a robot.Clock.
//
// What leaves through those three is what a real machine would give: encoders, jaw, an estimate of the
// force at the hand, pictures, depth with noise and holes, lidar points. Ground truth leaves only
// through Truth, which is for the assertions of tests.
//
// Equal seeds and equal commands at equal physics times give equal states, to the bit, on one machine.
package sim
