// Package ros is a client and server side for ROS, with no ROS installed: topics, services, actions, parameters and the
// graph, the same over DDS (package dds), over a rosbridge websocket (package rosbridge) and over ROS 1 (package ros1).
// A Node is one of these; the functions of this package put types on it. It knows no robot and no topic name.
package ros
