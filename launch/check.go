package launch

import (
	"crypto/sha256"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"viad/interface/operator"
)

// socketName is the operator socket inside the state folder.
const socketName = operator.SocketName

const degree = math.Pi / 180

// check is every rule of the file beyond its shape; the first that is broken is the error.
func (c *Config) check() error {
	for _, rule := range []func() error{c.checkRobot, c.checkCameras, c.checkListen, c.checkTokens, c.checkPerception, c.checkRest, c.checkLimits, c.checkCaps} {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

// oneOf refuses a word that is not in the list.
func (c *Config) oneOf(key, got string, words ...string) error {
	if slices.Contains(words, got) {
		return nil
	}
	return c.complain(key, "%q is not known; write one of: %s", got, strings.Join(words, ", "))
}

// within refuses a number outside [least, most]; NaN is outside.
func (c *Config) within(key string, got, least, most float64, show string) error {
	if got >= least && got <= most {
		return nil
	}
	return c.complain(key, "must be between %s", show)
}

// complainOf shows a room's own complaint, "key: sentence", at that key of a block.
func (c *Config) complainOf(block string, err error) error {
	key, sentence, ok := strings.Cut(strings.TrimPrefix(err.Error(), "safety: "), ": ")
	if !ok || strings.ContainsAny(key, " \n") {
		return c.complain(strings.TrimSuffix(block, "."), "%s", err)
	}
	return c.complain(block+key, "%s", sentence)
}

// first is the first error of several.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkRobot() error {
	r := c.Robot
	if err := c.oneOf("robot.arm", r.Arm, "operator", "auto"); err != nil {
		return err
	}
	if r.Arm == "auto" && r.Driver != "twin" {
		return c.complain("robot.arm", "auto is for the twin only: a real robot comes up disarmed, and a person arms it (viactl arm)")
	}
	err := first(
		c.oneOf("robot.driver", r.Driver, "twin", "ros", "serial"),
		c.oneOf("face", c.Face, "3d", "2d"),
	)
	if err != nil {
		return err
	}
	err = first(
		c.oneOf("robot.model", r.Model, "fr3", "panda", "stretch4"),
		c.oneOf("robot.world", r.World, "tabletop", "room"),
		c.oneOf("robot.pace", r.Pace, "real", "fast"),
	)
	if err != nil {
		return err
	}
	if r.Seed < 0 {
		return c.complain("robot.seed", "must be 0 or more, got %d", r.Seed)
	}
	mobile := r.Model == "stretch4"
	if r.real() {
		if r.Pace != "real" {
			return c.complain("robot.pace", "only a twin has another pace than the wall clock's")
		}
		if err := first(c.checkROS(), c.checkSerial(), c.checkBase()); err != nil {
			return err
		}
	} else if mobile != (r.World == "room") {
		return c.complain("robot.world", "%s stands in the %s, not in the %s", r.Model, pick(mobile, "room", "tabletop"), r.World)
	}
	if mobile != (c.Face == "2d") {
		return c.complain("face", "%s is driven through the %s face: the 3d face is for dense depth and a fixed arm, the 2d face for sparse depth and a mobile robot",
			r.Model, pick(mobile, "2d", "3d"))
	}
	return nil
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func (c *Config) checkListen() error {
	host, port, err := net.SplitHostPort(c.Listen.Address)
	if err != nil {
		return c.complain("listen.address", "%q must be host:port, for example 127.0.0.1:8787", c.Listen.Address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return c.complain("listen.address", "%q has no port between 0 and 65535", c.Listen.Address)
	}
	if err := first(c.checkTLS(host), c.checkNames(host)); err != nil {
		return err
	}
	if c.Listen.MaxBody < 4<<10 || c.Listen.MaxBody > 16<<20 {
		return c.complain("listen.max_body", "must be between 4 KiB and 16 MiB")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *Config) checkTokens() error {
	if c.Tokens.Generate {
		host, _, err := net.SplitHostPort(c.Listen.Address)
		if err != nil || c.Robot.Driver != "twin" || !loopback(host) {
			return c.complain("tokens", "generate is for a twin on a loopback address; list who may come in instead")
		}
		return nil
	}
	if len(c.Tokens.List) == 0 {
		return c.complain("tokens", "the list is empty, so nobody could come in; `viad token` makes one")
	}
	seen, whose := map[string]bool{}, map[[sha256.Size]byte]string{}
	for i, t := range c.Tokens.List {
		key := fmt.Sprintf("tokens[%d]", i)
		if strings.TrimSpace(t.Name) == "" {
			return c.complain(key, "needs a name, which stands in the record beside every call")
		}
		if strings.ContainsAny(t.Name, "()\"") || strings.ContainsFunc(t.Name, unicode.IsControl) {
			return c.complain(key+".name", "%q must have no brackets, quotes or control characters", t.Name)
		}
		if seen[t.Name] {
			return c.complain(key+".name", "%q stands there twice; a token is known by its name", t.Name)
		}
		seen[t.Name] = true
		if err := c.oneOf(key+".role", t.Role, "watcher", "driver", "operator"); err != nil {
			return err
		}
		d, err := digest(t.Hash)
		if err != nil {
			return c.complain(key+".hash", "%s", err)
		}
		if other, taken := whose[d]; taken {
			return c.complain(key+".hash", "%q has the token of %q: whoever comes in must be one of them, so make a token for each with `viad token`", t.Name, other)
		}
		whose[d] = t.Name
	}
	return nil
}

func (c *Config) checkPerception() error {
	p := c.Perception
	err := first(
		c.within("perception.rate", float64(p.Rate), 0, 30, "0 Hz (only when asked) and 30 Hz"),
		c.within("perception.self_margin", float64(p.Self), 0.001, 0.1, "1 mm and 10 cm"),
		c.within("perception.body_margin", float64(p.Body), float64(p.Self), 0.2, "perception.self_margin and 20 cm"),
		c.within("perception.voxel", float64(p.Voxel), 0.001, 0.1, "1 mm and 10 cm"),
	)
	if err != nil {
		return err
	}
	return c.checkBox("perception.bounds", p.Bounds, true)
}

// checkBox refuses spans that are not [least, most]. An absent box is fine when optional.
func (c *Config) checkBox(key string, b Box, optional bool) error {
	if optional && b.X == nil && b.Y == nil && b.Z == nil {
		return nil
	}
	for _, s := range []struct {
		axis string
		span Span
	}{{"x", b.X}, {"y", b.Y}, {"z", b.Z}} {
		if len(s.span) != 2 || !(s.span[0] < s.span[1]) || math.Abs(float64(s.span[0])) > 100 || math.Abs(float64(s.span[1])) > 100 {
			return c.complain(key+"."+s.axis, "must be [least, most] with least below most and both within 100 m, for example [-0.5 m, 0.5 m]")
		}
	}
	return nil
}

func (c *Config) checkRest() error {
	if strings.TrimSpace(c.Name) == "" {
		return c.complain("name", "must not be empty")
	}
	if c.StateDir == "" {
		return c.complain("state_dir", "must name a folder")
	}
	if n := len(filepath.Join(c.StateDir, socketName)); n > 100 {
		return c.complain("state_dir", "is %d characters long with the socket's name, and a Unix socket's path may have 100; choose a shorter folder", n)
	}
	if len(c.View.Target) != 3 {
		return c.complain("view.target", "must be [x, y, z], for example [0.5 m, 0 m, 0.1 m]")
	}
	return first(
		c.within("view.target[1]", float64(c.View.Target[1]), 0, 0, "0 m and 0 m: the start view looks along the robot's x axis"),
		c.within("view.distance", float64(c.View.Distance), float64(c.Caps.ZoomNear), float64(c.Caps.ZoomFar), "caps.zoom_near and caps.zoom_far"),
		c.within("view.elevation", float64(c.View.Elevation), 0, 85*degree, "0 deg and 85 deg"),
		c.within("preview.age", c.Preview.Age.D().Seconds(), 1, 24*3600, "1 s and 24 h"),
		c.within("preview.moved", float64(c.Preview.Moved), 1e-4, 0.1, "0.1 mm and 10 cm"),
		c.within("preview.turned", float64(c.Preview.Turn), 0.01*degree, 20*degree, "0.01 deg and 20 deg"),
		c.within("record.quota", float64(c.Record.Quota), 16<<20, 1<<44, "16 MiB and 16384 GiB"),
		c.within("record.states", float64(c.Record.States), 0, 100, "0 Hz (none) and 100 Hz"),
		c.oneOf("record.when_full", c.Record.WhenFull, "go_on", "refuse_motion"),
		c.within("page.rate", float64(c.Page.Rate), 0.2, 15, "0.2 Hz and 15 Hz"),
		c.oneOf("on_client_gone", c.OnClientGone, "stop", "finish"),
		c.within("seat_silence", c.SeatSilence.D().Seconds(), 10, 24*3600, "10 s and 24 h"),
		c.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error"),
		c.oneOf("log.format", c.Log.Format, "text", "json"),
	)
}
