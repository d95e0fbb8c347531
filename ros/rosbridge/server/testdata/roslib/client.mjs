// What roslib, the protocol's own JavaScript client, makes of a server. Each result is a line of JSON on the output;
// the test in Go plays the robot.
import * as ROSLIB from "roslib";

const say = (step, value) => console.log(JSON.stringify({ step, value }));
const ros = new ROSLIB.Ros();
ros.on("error", (e) => say("error", String(e)));
await ros.connect(process.argv[2]);
say("connected", true);

const topic = (name, messageType, more) => new ROSLIB.Topic({ ros, name, messageType, ...more });
topic("/chatter", "std_msgs/msg/String").subscribe((m) => say("heard", m.data));
topic("/joint_states", "sensor_msgs/msg/JointState").subscribe((m) => say("joints", m.effort));
topic("/scan", "sensor_msgs/msg/LaserScan", { compression: "cbor" }).subscribe((m) =>
  say("scan", [m.ranges[0], String(m.ranges[1]), m.header.frame_id, m.ranges.constructor.name]));
topic("/image", "sensor_msgs/msg/Image").subscribe((m) => say("image", m.data));
topic("/raw", "std_msgs/msg/String", { compression: "cbor-raw" }).subscribe((m) =>
  say("raw", Buffer.from(m.bytes).toString("hex")));

const out = topic("/from_js", "std_msgs/msg/String");
out.advertise();
out.publish({ data: "hello from js" });
const pose = topic("/pose_from_js", "geometry_msgs/msg/PoseStamped");
pose.advertise();
pose.publish({ header: { frame_id: "map" }, pose: { position: { x: 1.5 } } });

const service = (name, serviceType) => new ROSLIB.Service({ ros, name, serviceType });
service("/set", "std_srvs/srv/SetBool").callService({ data: true }, (r) => say("answer", r), (e) => say("answer", "failed " + e));
service("/nobody", "std_srvs/srv/Trigger").callService({}, () => say("nobody", "answered"), (e) => say("nobody", e));
service("/js", "std_srvs/srv/SetBool").advertise((q, a) => {
  a.success = q.data;
  a.message = "js was asked";
  return true;
});

const arm = new ROSLIB.Action({ ros, name: "/arm", actionType: "control_msgs/action/FollowJointTrajectory" });
const goal = (name) => ({ trajectory: { joint_names: [name] } });
arm.sendGoal(goal("short"), (r) => say("result", r.error_string), (f) => say("feedback", f.joint_names), (e) => say("result", "failed " + e));
arm.sendGoal(goal("refuse"), () => say("refused", "taken"), undefined, (e) => say("refused", e));
const id = arm.sendGoal(goal("long"), (r) => say("cancelled", r.error_string), (f) => arm.cancelGoal(id), (e) => say("cancelled", "failed " + e));

const mine = new ROSLIB.Action({ ros, name: "/js_arm", actionType: "control_msgs/action/FollowJointTrajectory" });
mine.advertise(
  (g, gid) => {
    mine.sendFeedback(gid, { joint_names: ["js at work"] });
    if (g.trajectory.joint_names[0] !== "long") mine.setSucceeded(gid, { error_code: 0, error_string: "js did it" });
  },
  (gid) => mine.setCanceled(gid, { error_code: -7, error_string: "js stopped" }),
);

ros.getTopics((r) => say("topics", r.topics), (e) => say("topics", e));
ros.getActionServers((r) => say("actions", r), (e) => say("actions", e));
ros.getServiceType("/set", (r) => say("type", r), (e) => say("type", e));
process.stdin.on("end", () => { ros.close(); process.exit(0); });
process.stdin.resume();
