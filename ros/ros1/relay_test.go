package ros1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/tf2_msgs"
	"viad/ros/msg/trajectory_msgs"
)

// relay is a rospy node that reads each message, by its fields, and publishes it again.
const relay = `
import rospy
from sensor_msgs.msg import Image, JointState, PointCloud2, CameraInfo
from trajectory_msgs.msg import JointTrajectory
from tf2_msgs.msg import TFMessage
rospy.init_node('relay')
for name, kind in (('image', Image), ('state', JointState), ('cloud', PointCloud2), ('info', CameraInfo), ('way', JointTrajectory), ('tf', TFMessage)):
    out = rospy.Publisher('/back/' + name, kind, queue_size=10)
    rospy.Subscriber('/there/' + name, kind, out.publish, queue_size=10)
print('relaying')
rospy.spin()
`

// Robots' messages, a megabyte of picture among them, go to rospy and come back the same.
func TestRelay(t *testing.T) {
	c := startCore(t)
	needs(t, "python3")
	n := c.node(t, "viad")
	c.run(t, "python3", "-c", relay).wants(t, "relaying")

	picture := &sensor_msgs.Image{Height: 512, Width: 683, Encoding: "rgb8", Step: 2049, Data: make([]byte, 1<<20)}
	for i := range picture.Data {
		picture.Data[i] = byte(i * i >> 3)
	}
	picture.Header.FrameId, picture.Header.Stamp.Sec, picture.Header.Stamp.Nanosec = "camera", 1_700_000_000, 1
	state := &sensor_msgs.JointState{Name: []string{"panda_joint1", "panda_joint2"}, Position: []float64{0.1, -2}, Velocity: []float64{1e-9, 3}}
	cloud := &sensor_msgs.PointCloud2{Height: 1, Width: 2, PointStep: 12, RowStep: 24, Data: make([]byte, 24), IsDense: true}
	cloud.Fields = []sensor_msgs.PointField{{Name: "x", Datatype: 7, Count: 1}, {Name: "y", Offset: 4, Datatype: 7, Count: 1}}
	info := &sensor_msgs.CameraInfo{Width: 683, Height: 512, DistortionModel: "plumb_bob", D: []float64{1, 2, 3, 4, 5}}
	info.K[0], info.P[11] = 600, 1
	way := &trajectory_msgs.JointTrajectory{JointNames: []string{"panda_joint1"}}
	way.Points = []trajectory_msgs.JointTrajectoryPoint{{Positions: []float64{1}, Velocities: []float64{0}}, {Positions: []float64{2}}}
	way.Points[0].TimeFromStart.Sec, way.Points[0].TimeFromStart.Nanosec = -1, 500_000_000
	way.Points[1].TimeFromStart.Sec = 2
	tf := new(tf2_msgs.TFMessage)
	tf.Transforms = append(tf.Transforms, tf.Transforms...)

	there(t, n, "image", picture)
	there(t, n, "state", state)
	there(t, n, "cloud", cloud)
	there(t, n, "info", info)
	there(t, n, "way", way)
	there(t, n, "tf", tf)
}

func there[T any, P msg.Ptr[T]](t *testing.T, n ros.Node, name string, want P) {
	t.Helper()
	got := make(chan P, 20)
	sub, err := ros.Subscribe(n, "/back/"+name, ros.Default(), func(m P, i ros.Info) {
		if i.Publisher != "/relay" {
			t.Errorf("%s came from %q", name, i.Publisher)
		}
		got <- m
	})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := ros.Advertise[T, P](n, "/there/"+name, ros.Default())
	if err != nil {
		t.Fatal(err)
	}
	f := sub.(*subscription).f
	for change := f.changes(); sub.Publishers() == 0; change = f.changes() {
		take(t, change, "the relay's publisher")
	}
	if err := pub.Ready(ready(t), 1); err != nil {
		t.Fatal(err)
	}
	back := P(nil)
	for tries := 0; back == nil; tries++ { // rospy may answer our connection before it publishes on it
		if err := pub.Send(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		select {
		case back = <-got:
		case <-time.After(time.Second):
			if tries == 15 {
				t.Fatalf("%s does not come back", name)
			}
		}
	}
	if d := cmp.Diff(want, back, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s came back otherwise:\n%s", name, d)
	}
}
