package wire

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/drivers/urdf"
	"viad/ros"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/tf2_msgs"
	"viad/ros/tf"
)

// publishStatic puts transforms on /tf_static, where they stay.
func publishStatic(node ros.Node, ts []geometry_msgs.TransformStamped) (ros.Closer, error) {
	p, err := ros.Advertise[tf2_msgs.TFMessage](node, "/tf_static", ros.Latched())
	if err != nil {
		return nil, err
	}
	if err := p.Send(context.Background(), &tf2_msgs.TFMessage{Transforms: ts}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// transform is where child is in parent.
func transform(parent, child string, now time.Time, at r3.Vec, turn quat.Number) geometry_msgs.TransformStamped {
	return tf.Transform{Parent: parent, Child: child, Time: now, Translation: at, Rotation: turn}.Message()
}

// linkFrame is the frame of a link of the twin: an arm's nodes put its name in front. The empty link is an arm's base.
func linkFrame(m robot.Model, link string) string {
	if m.Mobile {
		return link
	}
	prefix := "fr3_"
	if strings.Contains(strings.ToLower(m.Name), "panda") {
		prefix = "panda_"
	}
	if link == "" {
		link = "link0"
	}
	return prefix + link
}

// cameraFrames are those of the streams, each in the link that carries it.
func (s *Sensors) cameraFrames() []geometry_msgs.TransformStamped {
	out := make([]geometry_msgs.TransformStamped, 0, len(s.streams))
	for i := range s.streams {
		m, frame := s.streams[i].src.Info().Mount, s.streams[i].Frame
		out = append(out, transform(linkFrame(s.twin.Model(), m.Link), frame, time.Time{}, m.Pose.P, m.Pose.R))
	}
	return out
}

// fixedFrames are the fixed joints of a description.
func fixedFrames(r *urdf.Robot) []geometry_msgs.TransformStamped {
	var out []geometry_msgs.TransformStamped
	for _, j := range r.Joints {
		if j.Type == urdf.Fixed {
			out = append(out, transform(j.Parent, j.Child, time.Time{}, j.Origin.XYZ, geom.RPY(j.Origin.RPY.X, j.Origin.RPY.Y, j.Origin.RPY.Z)))
		}
	}
	return out
}

// movingFrames are the others, as the state publisher of a robot makes them of its joints.
func movingFrames(r *urdf.Robot, q map[string]float64, now time.Time) []geometry_msgs.TransformStamped {
	var out []geometry_msgs.TransformStamped
	for _, j := range r.Joints {
		if j.Type == urdf.Fixed {
			continue
		}
		x := q[j.Name]
		if j.Mimic != nil {
			x = j.Mimic.Multiplier*q[j.Mimic.Joint] + j.Mimic.Offset
		}
		at, turn := j.Origin.XYZ, geom.RPY(j.Origin.RPY.X, j.Origin.RPY.Y, j.Origin.RPY.Z)
		if j.Type == urdf.Prismatic {
			at = r3.Add(at, r3.Rotation(turn).Rotate(r3.Scale(x, j.Axis)))
		} else {
			s, c := math.Sincos(x / 2)
			turn = quat.Mul(turn, quat.Number{Real: c, Imag: s * j.Axis.X, Jmag: s * j.Axis.Y, Kmag: s * j.Axis.Z})
		}
		out = append(out, transform(j.Parent, j.Child, now, at, turn))
	}
	return out
}
