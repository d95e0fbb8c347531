// Package field tries the robots' drivers against the twin on the robot's own wire, which is written from what is known of
// the robot and not from the driver: the shared suite of every body, and the faults that owners reported, each judged by
// what the twin measures of itself.
package field
