package ros1

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/bluenviron/goroslib/v2/pkg/msgproc"
)

// What Debian's Python messages say of themselves.
const theirSums = `
import sys, importlib
for line in sys.stdin:
    pkg, kind, name = line.strip().split('/')
    try:
        print(line.strip(), getattr(importlib.import_module(pkg + '.' + kind), name)._md5sum)
    except (ImportError, AttributeError):
        print(line.strip(), '-')
`

func TestChecksumsWithDebian(t *testing.T) {
	needs(t, "python3", "roscore")
	ours := make(map[string]string)
	for _, m := range messages() {
		s, err := part{m, m}.message()
		if err != nil {
			t.Fatal(err)
		}
		ours[rosPackage(m)+"/msg/"+typeName(m)] = s.md5
	}
	for _, m := range services() {
		s, err := part{nil, m}.service()
		if err != nil {
			t.Fatal(err)
		}
		ours[modern(s.name, "srv")] = s.md5
	}
	for _, a := range actions() {
		g, r, f, err := part{nil, a}.action()
		if err != nil {
			t.Fatal(err)
		}
		ours[modern(g.name, "msg")], ours[modern(r.name, "msg")], ours[modern(f.name, "msg")] = g.md5, r.md5, f.md5
	}
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", theirSums)
	var in strings.Builder
	for name := range ours {
		in.WriteString(name + "\n")
	}
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	var not []string
	for l := range strings.Lines(string(out)) {
		name, sum, _ := strings.Cut(strings.TrimSpace(l), " ")
		if sum == "-" {
			not = append(not, name)
			continue
		}
		checked++
		if ours[name] != sum {
			t.Errorf("%s has the checksum %s here and %s in Debian", name, ours[name], sum)
		}
	}
	t.Logf("%d checked, not in Debian: %v", checked, not)
	if checked < 90 {
		t.Errorf("only %d types were checked: are python3-{std,geometry,sensor,nav,trajectory,tf2,diagnostic}-msgs and python3-std-srvs installed?", checked)
	}
}

// Checksums of what Debian does not have, as generated code of franka_ros 0.10 and ros_control 0.20 in public
// repositories has them.
func TestChecksumsPublished(t *testing.T) {
	for _, c := range []struct {
		zero any
		want string
	}{
		{FrankaState{}, "431567d5df6caf4e4dd7385f25cb71ee"},
		{FrankaErrors{}, "082e9a670c96d8bc64b53e32777458e7"},
		{SetLoadReq{}, "0bcbb33b081d0f0b2611ae00474a91d6"},
		{SetFullCollisionBehaviorReq{}, "bc875909c147220ba1720adcd48e47ea"},
		{SetForceTorqueCollisionBehaviorReq{}, "af37de8897f6124b6b82b8dad5d5a876"},
		{SwitchControllerReq{}, "36d99a977432b71d4bf16ce5847949d7"},
		{ControllerState{}, "aeb6b261d97793ab74099a3740245272"},
	} {
		if got, err := msgproc.MD5(c.zero); err != nil || got != c.want {
			t.Errorf("%T: %s, %v; want %s", c.zero, got, err, c.want)
		}
	}
	for goal, want := range map[string]string{
		"franka_msgs/action/Grasp_Goal":                  "7bd1a6e7f94ef15bb6dd05cb170e7909",
		"franka_msgs/action/Move_Goal":                   "f8907a1e7bb902f2e4c7db8e1cf3d24f",
		"control_msgs/action/FollowJointTrajectory_Goal": "cff5c1d533bf2f82dd0138d57f4304bb",
	} {
		if g, _, _, err := newTypes().parts[goal].action(); err != nil || g.md5 != want {
			t.Errorf("%s: %s, %v; want %s", goal, g.md5, err, want)
		}
	}
}
