// Package soak sends the daemon many random tool calls, hostile and valid, from four clients that also give up, die
// and come back, while people stop, disarm and arm, and sensors fail. A monitor in the twin's physics watches the robot.
package soak
