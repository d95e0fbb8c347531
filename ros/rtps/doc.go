// Package rtps is a participant of the DDS interoperability wire protocol (OMG DDSI-RTPS 2.5) over UDP, as far as ROS 2
// needs it: discovery of participants and endpoints by multicast, by static peers or on this host alone, reliable and
// best effort readers and writers, durability for late joiners, large samples in fragments. It carries payloads as
// bytes; what they mean is for package ros.
package rtps
