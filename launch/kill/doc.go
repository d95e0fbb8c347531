// Package kill kills one thing in mid-motion: the daemon, the link, the robot's driver or action server, the roscore, the
// pty. The daemon is a process of its own; the robot is a twin on its own wire in the test's, so that the truth can be
// watched: it halts within the Deadman that its driver states, nothing moves by itself afterwards, the daemon says what
// happened, and works again.
package kill
