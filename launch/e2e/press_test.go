package e2e

import (
	"strings"
	"testing"
)

// A closed hand told to go through a cube stops on it as contact, the cube stays where it is, and the way
// back up is free.
func TestPressOnACubeEndsAsContact(t *testing.T) {
	d := start(t, "twin-franka.yaml", *from)
	f := &tabletop{agentFor(t, d, dialMCPGo)}
	cube, _, at := f.measure(red)
	f.jaw("closed")
	f.do("gripper_teleport_via_click", at)
	above := cube.at
	above[2] += 0.10
	f.moveTarget(above)
	f.execute("screenshot")
	before := d.twin.Truth().Objects["red_cube"]

	through := cube.at
	through[2] -= 0.015
	f.moveTarget(through)
	said := f.execute("screenshot").text()
	after := d.twin.Truth().Objects["red_cube"]
	t.Logf("the cube moved %.2f mm, %.2f degrees: %.160s", 1e3*after.Dist(before), deg(after.Angle(before)), said)
	if !strings.Contains(said, ": contact; stopped, confirmed") {
		t.Errorf("pressing on a cube ended otherwise: %s", said)
	}
	if after.Dist(before) > 0.002 || after.Angle(before) > 0.05 {
		t.Errorf("the cube moved %.1f mm and %.1f degrees", 1e3*after.Dist(before), deg(after.Angle(before)))
	}

	f.moveTarget(above)
	if said := f.execute("screenshot").text(); !strings.Contains(said, ": reached") {
		t.Errorf("going back up ended otherwise: %s", said)
	}
}
