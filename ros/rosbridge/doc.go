// Package rosbridge is a ros.Node over a rosbridge v2 websocket, the way to robots whose middleware is Zenoh.
//
// It keeps two sockets. The first carries topics, calls and goals; the second carries only what stops: cancelling, and
// the services and topics that Config.Urgent names. Older servers run a goal in the thread that reads the socket, so that
// everything sent after it on the same socket waits until the goal has ended.
//
// What the wire cannot do is said where it matters: Publishers and Subscribers are -1, a server that serves an action
// through rosbridge cannot refuse a goal (it ends as aborted), and numbers that JSON cannot write are refused.
//
// A NaN comes over JSON as null, as nothing else would: a null where a number belongs makes the whole message malformed.
// Topics that carry NaN or Inf by design (laser scans, efforts that are not measured, batteries) need CBORRaw.
package rosbridge
