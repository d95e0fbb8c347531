package tool

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/interface/stage"
)

// fixed prints v with d decimals, without an exponent and without -0. What is not a number is "unknown".
func fixed(v float64, d int) string {
	if v-v != 0 {
		return "unknown"
	}
	s := strconv.FormatFloat(v, 'f', d, 64)
	if v <= 0 && strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return s
}

// m is metres or a unit vector's component.
func m(v float64) string { return fixed(v, 4) }

// degText is an angle given in radians, in degrees.
func degText(rad float64) string { return fixed(geom.Deg(rad), 2) }

// plain is a limit: as few decimals as it needs.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// xyz is three numbers with spaces between.
func xyz(v r3.Vec) string { return m(v.X) + " " + m(v.Y) + " " + m(v.Z) }

func jaw(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}

// gripperText is a gripper pose in words, in the frame that it is given in.
func gripperText(g stage.Gripper) string {
	return fmt.Sprintf("position %s; approach %s; opening %s; %s", xyz(g.Pose.P), xyz(g.Pose.X()), xyz(g.Pose.Y()), jaw(g.Open))
}

// cameraText is the viewport camera: degrees, azimuth in [0,360).
func cameraText(o stage.Orbit) string {
	az := math.Mod(geom.Deg(o.Azimuth), 360)
	if az < 0 {
		az += 360
	}
	if fixed(az, 2) == "360.00" {
		az = 0
	}
	return fmt.Sprintf("camera: target %s; distance %s; azimuth %s; elevation %s", xyz(o.Target), m(o.Distance), fixed(az, 2), degText(o.Elevation))
}

// seconds is a duration with two decimals.
func seconds(s float64) string { return fixed(s, 2) + " s" }

// sentence makes sure that s ends like a sentence.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

// capital makes the first letter large.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
