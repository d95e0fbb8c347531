// Package ros1 is a ros.Node in a ROS 1 graph (Noetic and older): topics, services, actionlib and the graph, with the
// messages of ROS 2. It stands on goroslib's wire packages: its XML-RPC clients and server, the connection headers, the
// messages and their checksums. goroslib's Node is not used: it tells nobody how many peers it has or that one went,
// answers one request at a time and a failure with bytes that no other client understands, repeats a request that may
// have been acted on, panics on a wrong type, reads the command line and the environment, and stays forgotten after the
// master restarts.
//
// What is there: TCPROS, latched topics (ros.QoS.Transient), queues of QoS.Depth that drop the oldest, services with the
// server's words when it fails, actionlib as client and server, parameters by Param and ParamFloat. Messages go from
// ROS 1's bytes straight into the ROS 2 struct and back, by a codec that is compiled once for a pair of types; a byte
// list of a received message is not copied unless the node reads it twice. Header.Seq is dropped; where a type differs
// between the two, definitions.go spells it out, and a field that ROS 1 cannot carry has to be empty or Publish fails.
//
// What is not: UDPROS, parameters through the services of rcl_interfaces (*ros.Unsupported), names relative to a
// namespace or remapped, simulated time, IPv6, any security: ROS 1 has none, so keep it on the robot's own network.
//
// The master is looked at once a second. When it is gone the link goes down, and connections between nodes live on; when
// it is back, or another stands in its place, everything is registered again. A node that the master sends away (a
// second node of the same name, rosnode kill) says so by its link and stays away.
package ros1
