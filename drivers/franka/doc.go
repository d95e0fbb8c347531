// Package franka drives a Franka arm with its hand through the robot's own ROS nodes: an FR3 over ROS 2 and a Panda over
// ROS 1, over any wire that a ros.Node is. It is no part of the arm's 1 kHz loop: it sends smooth trajectories to the
// joint trajectory controller and commands to the hand's action servers.
//
// A goal of that controller goes on when its sender dies, so a motion is sent in pieces: each goal covers the next
// fraction of a second and then brakes to rest on the planned path, and the next goal replaces it long before. Deadman is
// the length of such a goal.
//
// What the robot says of itself is not taken for what it does: robot_mode decides whether it may move, since its error
// flags read clean while a reflex is latched, and measured joints decide how a motion ended.
//
// Nothing is taken by force: an arm that moves already, a controller that is not active and another one that holds the
// joints are facts with words, and only an operator's task changes them.
package franka
