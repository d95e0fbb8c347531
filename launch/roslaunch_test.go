package launch

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// element is one element of a ROS launch file.
type element struct {
	name  string
	attrs map[string]string
}

func elements(t *testing.T, file string) (out []element) {
	t.Helper()
	b, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(b)))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if s, ok := tok.(xml.StartElement); ok {
			e := element{s.Name.Local, map[string]string{}}
			for _, a := range s.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			out = append(out, e)
		}
	}
}

// TestROSLaunchFiles: what the launch files of the robot's side refer to is declared, and the topics that viad's launch
// files subscribe to are those of the nodes that they start.
func TestROSLaunchFiles(t *testing.T) {
	for _, c := range []struct {
		file, ours string
		names      map[string][]string // beginning of our topics -> attribute values that make them
	}{
		{"franka.launch.xml", "franka.yaml", map[string][]string{"/camera/": {"camera", "/"}, "/gripper_camera/": {"gripper_camera", "/"}}},
		{"panda.launch", "panda-ros1.yaml", map[string][]string{"/camera/": {"camera"}, "/gripper_camera/": {"gripper_camera"}}},
		{"stretch4.launch.xml", "stretch4.yaml", map[string][]string{
			"/cameras_head/center/": {"$(find-pkg-share stretch_core)/launch/luxonis.launch.py"},
			"/cameras_gripper/":     {"$(find-pkg-share stretch_core)/launch/gripper_camera.launch.py"},
			"/lidar_points_":        {"$(find-pkg-share stretch_core)/launch/dual_hesai.launch.py"},
		}},
	} {
		t.Run(c.file, func(t *testing.T) {
			all := elements(t, filepath.Join("ros", c.file))
			if all[0].name != "launch" {
				t.Errorf("its root is %s", all[0].name)
			}
			var declared, values []string
			for _, e := range all {
				if e.name == "arg" && e.attrs["value"] == "" {
					declared = append(declared, e.attrs["name"])
				}
				for _, v := range e.attrs {
					values = append(values, v)
					for _, m := range regexp.MustCompile(`\$\((?:var|arg) (\w+)\)`).FindAllStringSubmatch(v, -1) {
						if !slices.Contains(declared, m[1]) {
							t.Errorf("%s: $(%s) is not declared before it", e.name, m[1])
						}
					}
				}
			}
			cfg, err := Read(c.ours)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range cfg.Cameras {
				topic := m.Color + m.Points
				begins := func(p string) bool { return strings.HasPrefix(topic, p) }
				made := false
				for p, need := range c.names {
					made = made || begins(p) && !slices.ContainsFunc(need, func(v string) bool { return !slices.Contains(values, v) })
				}
				if !made {
					t.Errorf("nothing that it starts publishes %s of %s", topic, c.ours)
				}
			}
		})
	}
}

// TestPandaLaunches: Debian's roslaunch takes the file and starts what the daemon needs. The packages of the robot are
// stand-ins that have the arguments which it gives them.
func TestPandaLaunches(t *testing.T) {
	if _, err := os.Stat("/usr/bin/roslaunch"); err != nil {
		if os.Getenv("VIAD_CI") != "" {
			t.Fatal(err)
		}
		t.Skip("there is no roslaunch: apt-get install python3-roslaunch")
	}
	stage := t.TempDir()
	stand := func(pkg, file string, args ...string) {
		launch := "<launch>\n"
		for _, a := range args {
			launch += `<arg name="` + a + `"/>` + "\n"
		}
		launch += `<node pkg="` + pkg + `" type="stand_in" name="` + pkg + `_$(arg ` + args[0] + `)"/>` + "\n</launch>\n"
		manifest := `<package format="2"><name>` + pkg + `</name><version>1.0.0</version><description>a stand-in</description><maintainer email="a@b.cd">a</maintainer><license>none</license></package>`
		dir := filepath.Join(stage, pkg, "launch")
		err := os.MkdirAll(dir, 0o750)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), []byte(launch), 0o600), os.WriteFile(filepath.Join(stage, pkg, "package.xml"), []byte(manifest), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	stand("franka_control", "franka_control.launch", "load_gripper", "robot_ip")
	stand("realsense2_camera", "rs_camera.launch", "camera", "serial_no", "align_depth", "enable_sync",
		"color_width", "color_height", "color_fps", "depth_width", "depth_height", "depth_fps")
	list := func(args ...string) string {
		file, err := filepath.Abs("ros/panda.launch")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "/usr/bin/roslaunch", append([]string{"--nodes", file}, args...)...)
		cmd.Env = append(os.Environ(), "ROS_PACKAGE_PATH="+stage, "ROS_LOG_DIR="+t.TempDir(), "ROS_MASTER_URI=http://127.0.0.1:11311")
		out, err := cmd.CombinedOutput()
		if err != nil && len(args) > 0 {
			t.Fatalf("roslaunch: %v\n%s", err, out)
		}
		return string(out)
	}
	all := list("robot_ip:=172.16.0.2")
	for _, n := range []string{"/franka_control_true", "/viad_trajectory_spawner", "/realsense2_camera_camera", "/realsense2_camera_gripper_camera"} {
		if !slices.Contains(strings.Fields(all), n) {
			t.Errorf("it does not start %s:\n%s", n, all)
		}
	}
	if some := list("robot_ip:=172.16.0.2", "cameras:=false"); strings.Contains(some, "realsense") || !strings.Contains(some, "/franka_control_true") {
		t.Errorf("without cameras it starts\n%s", some)
	}
	if none := list(); !strings.Contains(none, "robot_ip") {
		t.Errorf("without the robot's address it says\n%s", none)
	}
}
