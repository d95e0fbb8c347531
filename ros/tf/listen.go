package tf

import (
	"errors"
	"time"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/ros"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/tf2_msgs"
)

// FromMessage is a transform as a message has it.
func FromMessage(m *geometry_msgs.TransformStamped, static bool) Transform {
	t, q := m.Transform.Translation, m.Transform.Rotation
	return Transform{
		Parent: m.Header.FrameId, Child: m.ChildFrameId, Static: static,
		Time:        time.Unix(int64(m.Header.Stamp.Sec), int64(m.Header.Stamp.Nanosec)),
		Translation: r3.Vec{X: t.X, Y: t.Y, Z: t.Z},
		Rotation:    quat.Number{Real: q.W, Imag: q.X, Jmag: q.Y, Kmag: q.Z},
	}
}

// Message is the transform as a message.
func (t Transform) Message() (m geometry_msgs.TransformStamped) {
	m.Header.FrameId, m.ChildFrameId = t.Parent, t.Child
	if !t.Time.IsZero() {
		m.Header.Stamp.Sec, m.Header.Stamp.Nanosec = int32(t.Time.Unix()), uint32(t.Time.Nanosecond()) //nolint:gosec // ROS's time
	}
	m.Transform.Translation = geometry_msgs.Vector3{X: t.Translation.X, Y: t.Translation.Y, Z: t.Translation.Z}
	m.Transform.Rotation = geometry_msgs.Quaternion{W: t.Rotation.Real, X: t.Rotation.Imag, Y: t.Rotation.Jmag, Z: t.Rotation.Kmag}
	return m
}

// Listener fills a buffer.
type Listener struct{ subs []ros.Subscription }

// Listen fills the buffer from /tf and /tf_static. refused is told what was not taken and why, and may be nil.
func (b *Buffer) Listen(n ros.Node, refused func(error)) (*Listener, error) {
	take := func(static bool) func(*tf2_msgs.TFMessage, ros.Info) {
		return func(m *tf2_msgs.TFMessage, _ ros.Info) {
			for i := range m.Transforms {
				if err := b.Set(FromMessage(&m.Transforms[i], static)); err != nil && refused != nil {
					refused(err)
				}
			}
		}
	}
	l := new(Listener)
	// Reliable is not asked for on /tf: some publish it best effort, and the next one comes soon.
	moving, err := ros.SubscribeInto(n, "/tf", ros.QoS{Depth: 100}, take(false))
	if err != nil {
		return nil, err
	}
	l.subs = append(l.subs, moving)
	still, err := ros.Subscribe(n, "/tf_static", ros.QoS{Reliable: true, Transient: true, Depth: 100}, take(true))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.subs = append(l.subs, still)
	return l, nil
}

// Close ends the subscriptions; the buffer stays.
func (l *Listener) Close() error {
	errs := make([]error, 0, len(l.subs))
	for _, s := range l.subs {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
