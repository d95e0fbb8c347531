package launch

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"viad/ros/cdr"
)

// ROS says how a real robot's ROS graph is reached, and what is called otherwise than usual in it.
type ROS struct {
	Wire string `yaml:"wire"` // dds, rosbridge, ros1

	Domain     int      `yaml:"domain"` // dds
	Localhost  bool     `yaml:"localhost"`
	Interfaces []string `yaml:"interfaces"`
	Peers      []string `yaml:"peers"`
	Distro     string   `yaml:"distro"`

	URL string `yaml:"url"` // rosbridge
	CA  string `yaml:"ca"`

	Master string `yaml:"master"` // ros1
	Host   string `yaml:"host"`

	Namespace     string `yaml:"namespace"`
	Controller    string `yaml:"controller"`     // Franka
	AutoRecover   bool   `yaml:"auto_recover"`   // Franka
	BaseUnguarded bool   `yaml:"base_unguarded"` // Stretch
}

// Camera is a camera or a lidar of a real robot, by its topics. Position and Turn (fixed-axis roll, pitch, yaw) place
// its body, x where it looks, y left, z up, in the frame of Link; an empty Link is the odometry frame. Frame does that by
// the name of the sensor's own frame (a camera's optical one), which the robot publishes on /tf_static or /tf.
type Camera struct {
	Name   string `yaml:"name"`
	Color  string `yaml:"color"`
	Depth  string `yaml:"depth"`
	Info   string `yaml:"info"`
	Points string `yaml:"points"` // a lidar's cloud, alone
	Scan   string `yaml:"scan"`   // or its scan, in its own plane

	Link     string   `yaml:"link"`
	Position []Length `yaml:"position"`
	Turn     []Angle  `yaml:"turn"`
	Frame    string   `yaml:"frame"`

	// Noiseless is a simulator's camera, whose pictures of what stands still are the same.
	Noiseless bool `yaml:"noiseless"`

	Near    Length   `yaml:"near"`
	Far     Length   `yaml:"far"`
	Noise   Length   `yaml:"noise"`
	Latency Duration `yaml:"latency"`
}

// real reports whether steel moves.
func (r Robot) real() bool { return r.Driver != "twin" }

func (c *Config) checkROS() error {
	r := c.Robot.ROS
	if err := c.oneOf("robot.ros.wire", r.Wire, "dds", "rosbridge", "ros1"); err != nil {
		return err
	}
	if _, ok := cdr.ParseDistro(r.Distro); !ok {
		return c.complain("robot.ros.distro", "is %q; humble, iron and jazzy are known, and empty is learnt from the robot", r.Distro)
	}
	switch {
	case r.Domain < 0 || r.Domain > rosDomains:
		return c.complain("robot.ros.domain", "must be between 0 and %d, got %d", rosDomains, r.Domain)
	case (r.Wire == "ros1") != (c.Robot.Model == "panda"):
		return c.complain("robot.ros.wire", "a panda speaks ROS 1 (ros1), every other robot ROS 2 (dds or rosbridge); got %s for %s", r.Wire, c.Robot.Model)
	case r.Wire == "rosbridge" && !strings.HasPrefix(r.URL, "ws://") && !strings.HasPrefix(r.URL, "wss://"):
		return c.complain("robot.ros.url", "must be where the robot's rosbridge listens, for example wss://robot.lab:9090, got %q", r.URL)
	case r.Namespace != "" && !strings.HasPrefix(r.Namespace, "/"):
		return c.complain("robot.ros.namespace", "must begin with a slash, got %q", r.Namespace)
	}
	return nil
}

// steelBase and steelTurn are the fastest that a Stretch's base may be told to go: from more it would not stand within the
// stated time when the daemon dies.
const (
	steelBase = 0.24 // m/s
	steelTurn = 2.0  // rad/s
)

// checkBase bounds the base of a real robot, which the driver is held to as well, whatever brings the base back to a plan.
func (c *Config) checkBase() error {
	if c.Robot.Model != "stretch4" {
		return nil
	}
	if !(c.Limits.BaseSpeed <= steelBase) {
		return c.complain("limits.base_speed", "must be at most %.2f m/s on a real robot, got %.2f m/s: the wheels' own watchdog, a second, is all that stops the base when this daemon dies",
			steelBase, float64(c.Limits.BaseSpeed))
	}
	if !(c.Limits.BaseTurn <= steelTurn) {
		return c.complain("limits.base_turn", "must be at most %.1f rad/s on a real robot, got %.2f rad/s", steelTurn, float64(c.Limits.BaseTurn))
	}
	return nil
}

func (c *Config) checkCameras() error {
	if !c.Robot.real() {
		if len(c.Cameras) > 0 {
			return c.complain("cameras", "the twin has cameras of its own; they are listed for a real robot")
		}
		return nil
	}
	if len(c.Cameras) == 0 {
		return c.complain("cameras", "a robot that sees nothing cannot be driven: list at least one")
	}
	seen := map[string]bool{}
	for i := range c.Cameras {
		if err := c.checkCamera(fmt.Sprintf("cameras[%d]", i), &c.Cameras[i], seen); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkCamera(key string, m *Camera, seen map[string]bool) error {
	if err := c.oneOf(key+".name", m.Name, "third_person", "wrist", "head", "lidar_left", "lidar_right"); err != nil {
		return err
	}
	if err := c.checkTopics(key, m); err != nil {
		return err
	}
	switch {
	case seen[m.Name]:
		return c.complain(key+".name", "there are two cameras called %s", m.Name)
	case m.Frame != "" && (m.Position != nil || m.Turn != nil):
		return c.complain(key+".frame", "places the sensor by what the robot publishes, position and turn by numbers; give one of them")
	case m.Frame == "" && (len(m.Position) != 3 || len(m.Turn) != 3):
		return c.complain(key, "needs position: [x, y, z] and turn: [roll, pitch, yaw] of the sensor in the frame of link, or frame: the name of its own frame")
	case m.Frame != "" && m.Link == "" && c.Robot.Model == "stretch4":
		return c.complain(key+".link", "must be the link that carries frame %s: nothing on a robot that drives stands in its odometry", m.Frame)
	case !(m.Near >= 0 && m.Near < m.Far):
		return c.complain(key+".near", "must be 0 or more and less than far, got %.3f m and %.3f m", float64(m.Near), float64(m.Far))
	}
	seen[m.Name] = true
	return nil
}

// checkTopics looks at what a camera or a lidar is read from.
func (c *Config) checkTopics(key string, m *Camera) error {
	given := 0
	for _, t := range []string{m.Color, m.Points, m.Scan} {
		if t != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return c.complain(key, "needs one of color (a camera), points (a lidar's cloud) and scan (a lidar's plane)")
	case m.lidar() && (m.Depth != "" || m.Info != "" || m.Noiseless):
		return c.complain(key, "a lidar has points or a scan alone, neither depth nor info nor noiseless")
	case m.Color != "" && m.Info == "":
		return c.complain(key+".info", "must be the camera_info topic: without intrinsics no pixel means a place")
	case strings.HasSuffix(m.Depth, "/compressed") || strings.HasSuffix(m.Depth, "/compressedDepth"):
		return c.complain(key+".depth", "compressed depth cannot be read, got %s: name the raw topic, 16UC1 or 32FC1", m.Depth)
	}
	for _, t := range []string{m.Color, m.Depth, m.Info, m.Points, m.Scan} {
		if t != "" && !strings.HasPrefix(t, "/") {
			return c.complain(key, "topics are absolute names, got %q", t)
		}
	}
	return nil
}

// trusts is the TLS of a rosbridge with a certificate of its own; nil trusts the system's.
func (r ROS) trusts() (*tls.Config, error) {
	if r.CA == "" {
		return nil, nil //nolint:nilnil // no config is a config
	}
	pem, err := os.ReadFile(r.CA)
	if err != nil {
		return nil, fmt.Errorf("robot.ros.ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("robot.ros.ca: %s holds no certificate in PEM", r.CA)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
