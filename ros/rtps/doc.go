// Package rtps is a participant of the DDS interoperability wire protocol (OMG DDSI-RTPS 2.5) over UDP, as far as ROS 2
// needs it. It carries payloads as bytes, beginning with their CDR header; what they mean is for package ros.
//
// It was run against Fast DDS 2.9 and Cyclone DDS 0.10, the middlewares of ROS 2 Humble, in both directions (see
// ros/interop): discovery, samples of a few bytes and of a megabyte, loss, deaths and restarts.
//
// # Supported
//
//   - Discovery of participants (SPDP) by multicast on every network interface, by static peers, of which every
//     participant index is asked, or on this host alone; of endpoints (SEDP); leases, signs of life by participant message,
//     goodbyes. Interfaces that come, go or change their address are followed; so are those of others.
//   - Reliable and best effort readers and writers; volatile and transient-local durability; keep-last with a depth and
//     keep-all with back-pressure; deadline and liveliness in matching; lifespan.
//   - Large samples in fragments both ways, paced so that a receiver with the system's usual buffer survives them, and
//     repaired piece by piece. Samples reach a reader's function in order, each once.
//   - Inline QoS: related sample identity as 0x0083 and as eProsima's 0x800f, status info, key hash.
//   - Both byte orders are read; little endian is written.
//   - A report in words for each pair of endpoints of one topic that do not match.
//   - Bounds on all that others can make a participant keep: see Limits.
//
// # Not supported
//
//   - DDS Security (SROS 2): a secured participant is neither understood nor answered.
//   - Fast DDS's discovery server; a participant that is only reached through one is not found.
//   - Systems other than Linux, whose sockets it knows well.
//   - Shared memory and other transports than UDP; IPv6. Peers on the same host are reached over the loopback, which both
//     vendors offer beside their shared memory.
//   - XCDR2 and the negotiation of representations: ours is XCDR1, which is what ROS uses up to now.
//   - Topics with a key, as instances: disposals are understood in discovery alone.
//   - Zenoh, which is another protocol altogether (ros/rosbridge is the way there).
//   - Exclusive ownership, partitions other than the default, content filters, time-based filters, manual liveliness:
//     ROS uses none. Deadlines are matched, not watched.
//   - Durability beyond the writer's life (transient, persistent).
//   - Static peers cannot find a Cyclone that runs with its participant index at "none", at ports by chance: use multicast,
//     or "auto" on the robot.
//
// # When a sample can be lost
//
// A writer that is matched is not yet known to its reader: a sample written then may be lost for good, to a best effort
// reader always, to a reliable one only if it has not answered within a second. Writer.WaitSynced tells when it is safe.
// A keep-last writer overwrites what a slow reader has not got; keep-all waits instead, for a reader that died until its
// lease ends.
package rtps
