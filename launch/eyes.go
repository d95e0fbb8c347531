package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/camera"
	"viad/drivers/control"
	"viad/drivers/geom"
	"viad/drivers/lidar"
	"viad/drivers/sensor"
	"viad/ros"
	"viad/ros/tf"
)

// eye is a real camera or lidar with a life of its own.
type eye interface {
	sensor.Source
	Run(ctx context.Context) error
	Close() error
}

const (
	cameraTime = 15 * time.Second // what cameras are given to show themselves at the start
	frameTime  = 8 * time.Second  // of that, for their frames to be told
	freezeTime = 2 * time.Second  // pictures of a real camera that do not differ for so long are no live ones
)

// openEyes opens the cameras of the launch file, and waits for what each must know first.
func (c *Config) openEyes(ctx context.Context, node ros.Node, log *slog.Logger) ([]eye, error) {
	ctx, cancel := context.WithTimeout(ctx, cameraTime)
	defer cancel()
	mounts, err := c.mounts(ctx, node, log)
	if err != nil {
		return nil, err
	}
	eyes := make([]eye, 0, len(c.Cameras))
	for i, m := range c.Cameras {
		e, err := m.open(ctx, node, mounts[i], log)
		if err != nil {
			for _, e := range eyes {
				err = errors.Join(err, e.Close())
			}
			return nil, err
		}
		eyes = append(eyes, e)
	}
	return eyes, nil
}

// open opens one of them.
func (m Camera) open(ctx context.Context, node ros.Node, mount sensor.Mount, log *slog.Logger) (eye, error) {
	within := [2]float64{float64(m.Near), float64(m.Far)}
	if m.lidar() {
		e, err := lidar.Open(ctx, lidar.Config{
			Node: node, Log: log, Name: m.Name, Points: m.Points, Scan: m.Scan, Mount: mount,
			Range: within, Sigma: float64(m.Noise), Latency: m.Latency.D(),
		})
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	conf := camera.Config{
		Node: node, Log: log, Name: m.Name, Color: m.Color, Depth: m.Depth, Infos: m.Info,
		Mount: mount, Range: within, Sigma: float64(m.Noise), Latency: m.Latency.D(), Freeze: freezeTime,
	}
	if m.Noiseless {
		conf.Freeze = 0
	}
	e, err := camera.Open(ctx, conf)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (m Camera) lidar() bool { return m.Points+m.Scan != "" }

// mount is where the file says that it is. A lidar's frame is that of its body, a camera's the optical one.
func (m Camera) mount() sensor.Mount {
	body := geom.Pose{
		P: r3.Vec{X: float64(m.Position[0]), Y: float64(m.Position[1]), Z: float64(m.Position[2])},
		R: geom.RPY(float64(m.Turn[0]), float64(m.Turn[1]), float64(m.Turn[2])),
	}
	if m.lidar() {
		return sensor.Mount{Link: m.Link, Pose: body}
	}
	optical := geom.Pose{R: geom.FromAxes(r3.Vec{Y: -1}, r3.Vec{Z: -1})}
	return sensor.Mount{Link: m.Link, Pose: body.Mul(optical)}
}

// mounts are where the cameras are, in their order: by the file, or by the frames that the robot publishes.
func (c *Config) mounts(ctx context.Context, node ros.Node, log *slog.Logger) ([]sensor.Mount, error) {
	var tree *tf.Buffer
	out := make([]sensor.Mount, len(c.Cameras))
	ctx, cancel := context.WithTimeout(ctx, frameTime)
	defer cancel()
	for i, m := range c.Cameras {
		if m.Frame == "" {
			out[i] = m.mount()
			continue
		}
		if tree == nil {
			tree = tf.New(tf.Options{})
			l, err := tree.Listen(node, func(err error) { log.Warn("a frame was not taken", "why", err) })
			if err != nil {
				return nil, err
			}
			defer func() {
				if err := l.Close(); err != nil {
					log.Warn("the frames are listened to for ever", "why", err)
				}
			}()
		}
		p, err := c.placed(ctx, tree, m)
		if err != nil {
			return nil, fmt.Errorf("cameras: %s: %w", m.Name, err)
		}
		out[i] = sensor.Mount{Link: m.Link, Pose: p}
	}
	return out, nil
}

// placed is where the camera's frame is in its link, once the robot has published that. Between the two nothing may move.
func (c *Config) placed(ctx context.Context, tree *tf.Buffer, m Camera) (geom.Pose, error) {
	link := c.frameOf(m.Link)
	at, err := tree.Wait(ctx, link, m.Frame, time.Time{})
	if err != nil {
		if u := (*tf.Unknown)(nil); errors.As(err, &u) {
			err = u
		}
		return geom.Pose{}, fmt.Errorf("frame: %w; waited %v: start the robot's state publisher and the camera's node, look at the names with `viad ros topic echo /tf_static`, or write position and turn in place of frame", err, frameTime)
	}
	if !at.Static { // some publish also what stands still on /tf
		if by := c.carrier(tree, m.Frame); by != link {
			return geom.Pose{}, fmt.Errorf("frame: %s moves in %s, since it hangs on %q: link must be the one that carries it, %q", m.Frame, link, by, strings.TrimPrefix(by, c.framePrefix()))
		}
	}
	return geom.Pose{P: at.Translation, R: at.Rotation}, nil
}

// carrier is the nearest link of the robot that the frame hangs on, by its frame; "" when there is none.
func (c *Config) carrier(tree *tf.Buffer, frame string) string {
	kin, err := control.NewKinematics(c.description())
	if err != nil {
		return ""
	}
	up := map[string]string{}
	for _, t := range tree.Frames() {
		up[t.Child] = t.Parent
	}
	q := make([]float64, len(kin.Model().Joints))
	for at := strings.TrimPrefix(frame, "/"); at != ""; at = up[at] {
		if _, ours := kin.Link(strings.TrimPrefix(at, c.framePrefix()), geom.SE2{}, q, 0); ours {
			return at
		}
	}
	return ""
}

// framePrefix is what an arm's nodes put in front of its links' names.
func (c *Config) framePrefix() string {
	if c.Robot.Model == "stretch4" {
		return ""
	}
	return c.Robot.Model + "_"
}

// frameOf is the frame of a link; no link is an arm's base.
func (c *Config) frameOf(link string) string {
	if link == "" {
		link = "link0"
	}
	return c.framePrefix() + link
}
