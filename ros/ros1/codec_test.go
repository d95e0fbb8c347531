package ros1

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"viad/ros/msg"
	"viad/ros/msg/all"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/sensor_msgs"
)

// spoken are the parts that have a message of ROS 2.
func spoken(t testing.TB) (names []string, ts *types) {
	t.Helper()
	ts = newTypes()
	for _, name := range slices.Sorted(maps.Keys(ts.parts)) {
		if _, ok := all.New(name); ok {
			names = append(names, name)
		}
	}
	return names, ts
}

func make2(t testing.TB, name string) msg.Message {
	t.Helper()
	m, ok := all.New(name)
	if !ok {
		t.Fatal(name)
	}
	return m
}

// Every message goes to ROS 1 and back without loss, and goroslib's own codec, written by others, reads and writes the
// same bytes.
func TestEveryType(t *testing.T) {
	names, ts := spoken(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range names {
		m := make2(t, name)
		p, _, err := ts.of(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fill(r, p.layout, reflect.ValueOf(m).Elem())
		f, err := frame(func(b []byte) ([]byte, error) { return ts.encode(b, m) })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, share := range []bool{true, false} {
			back := make2(t, name)
			if err := ts.decode(f[4:], back, share); err != nil {
				t.Errorf("%v", err)
			} else if d := cmp.Diff(m, back, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s came back otherwise:\n%s", name, d)
			}
		}
		theirs := reflect.New(p.layout)
		if err := protocommon.MessageDecode(bytes.NewReader(f), theirs.Interface()); err != nil {
			t.Errorf("goroslib reads %s: %v", name, err)
		}
		var again bytes.Buffer
		if err := protocommon.MessageEncode(&again, theirs.Interface()); err != nil || !bytes.Equal(again.Bytes(), f) {
			t.Errorf("goroslib writes %s otherwise (%v):\n% x\n% x", name, err, f, again.Bytes())
		}
	}
	if len(names) < 150 {
		t.Errorf("only %d parts have a message", len(names))
	}
}

// fill sets what both sides have to something.
func fill(r *rand.Rand, one reflect.Type, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 1)
	case reflect.String:
		v.SetString(strings.Repeat("ä", r.IntN(5)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(float32(r.NormFloat64())))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(3), 3))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			el := one
			if one.Kind() == reflect.Slice || one.Kind() == reflect.Array {
				el = one.Elem()
			}
			fill(r, el, v.Index(i))
		}
	case reflect.Struct:
		if isStamp(v.Type()) {
			v.Field(0).SetInt(int64(1 + r.IntN(1000))) // as seconds in a float64, still true to the nanosecond
			v.Field(1).SetUint(uint64(r.IntN(1e9)))
			return
		}
		for _, f := range fields(one) {
			if i := index(v.Type(), counterpart(one, f.Name)); i >= 0 {
				fill(r, f.Type, v.Field(i))
			}
		}
	default:
		if v.CanInt() {
			v.SetInt(int64(int8(r.Uint64())))
		} else {
			v.SetUint(r.Uint64() & 0xff)
		}
	}
}

// What differs between the two, all of it: whoever adds a type or a distribution looks here.
func TestDifferences(t *testing.T) {
	names, ts := spoken(t)
	got := make(map[string]string)
	for _, name := range names {
		p := ts.parts[name]
		differences(p.layout, reflect.TypeOf(make2(t, name)).Elem(), got)
	}
	want := map[string]string{
		"control_msgs/FollowJointTrajectoryActionFeedback": "ROS 1: [] ROS 2: [MultiDofJointNames MultiDofDesired MultiDofActual MultiDofError]",
		"control_msgs/FollowJointTrajectoryActionGoal":     "ROS 1: [] ROS 2: [MultiDofTrajectory ComponentPathTolerance ComponentGoalTolerance]",
		"control_msgs/JointTrajectoryControllerState":      "ROS 1: [] ROS 2: [Output MultiDofJointNames MultiDofReference MultiDofFeedback MultiDofError MultiDofOutput Desired Actual MultiDofDesired MultiDofActual]",
		"controller_manager_msgs/ControllerState":          "ROS 1: [ClaimedResources] ROS 2: [ClaimedInterfaces RequiredCommandInterfaces RequiredStateInterfaces IsChainable IsChained ExportedStateInterfaces ReferenceInterfaces ChainConnections]", // special.go
		"controller_manager_msgs/SwitchControllerReq":      "ROS 1: [] ROS 2: [StartControllers StopControllers StartAsap]",                                                                                                                             // Humble's other names
		"controller_manager_msgs/SwitchControllerRes":      "ROS 1: [] ROS 2: [Message]",
		"franka_gripper/GraspFeedback":                     "ROS 1: [] ROS 2: [CurrentWidth]",
		"franka_gripper/MoveFeedback":                      "ROS 1: [] ROS 2: [CurrentWidth]",
		"sensor_msgs/Range":                                "ROS 1: [] ROS 2: [Variance]",
		"std_msgs/Header":                                  "ROS 1: [Seq] ROS 2: []",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("differences between ROS 1 and ROS 2:\n%s", d)
	}
}

func differences(one, two reflect.Type, out map[string]string) {
	for one.Kind() == reflect.Slice || one.Kind() == reflect.Array {
		if two.Kind() != one.Kind() {
			return
		}
		one, two = one.Elem(), two.Elem()
	}
	if one.Kind() != reflect.Struct || two.Kind() != reflect.Struct || rosName(one) == "" {
		return
	}
	var only1, only2 []string
	used := make(map[int]bool)
	for _, f := range fields(one) {
		if i := index(two, counterpart(one, f.Name)); i >= 0 {
			used[i] = true
			differences(f.Type, two.Field(i).Type, out)
		} else {
			only1 = append(only1, f.Name)
		}
	}
	for i := range two.NumField() {
		if !used[i] && two.Field(i).IsExported() {
			only2 = append(only2, two.Field(i).Name)
		}
	}
	if len(only1)+len(only2) > 0 {
		out[rosName(one)] = fmt.Sprint("ROS 1: ", only1, " ROS 2: ", only2)
	}
}

func TestShared(t *testing.T) {
	ts := newTypes()
	m := &sensor_msgs.Image{Data: []byte{1, 2, 3}}
	b, err := ts.encode(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	var shared, own sensor_msgs.Image
	if err := ts.decode(b, &shared, true); err != nil {
		t.Fatal(err)
	}
	if err := ts.decode(b, &own, false); err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] = 9
	if shared.Data[2] != 9 || own.Data[2] != 3 {
		t.Errorf("shared %v, own %v", shared.Data, own.Data)
	}
}

func TestDurations(t *testing.T) {
	for _, c := range []struct {
		wire []byte
		want builtin_interfaces.Duration
	}{
		{[]byte{0xff, 0xff, 0xff, 0xff, 0, 0x65, 0xcd, 0x1d}, builtin_interfaces.Duration{Sec: -1, Nanosec: 500_000_000}}, // as roscpp says -0.5 s
		{[]byte{0, 0, 0, 0, 0, 0x9b, 0x32, 0xe2}, builtin_interfaces.Duration{Sec: -1, Nanosec: 500_000_000}},             // as goroslib does
		{[]byte{1, 0, 0, 0, 0, 0, 0, 0}, builtin_interfaces.Duration{Sec: 1}},
	} {
		var d builtin_interfaces.Duration
		v := reflect.ValueOf(&d).Elem()
		k, err := stamp(v.Type(), "d")
		if err != nil {
			t.Fatal(err)
		}
		if k.read(&reader{b: c.wire}, v); d != c.want {
			t.Errorf("% x is %+v, want %+v", c.wire, d, c.want)
		}
	}
}

// Anything may come; memory stays in proportion to it.
func FuzzDecode(f *testing.F) {
	names, ts := spoken(f)
	f.Add(0, []byte{})
	f.Add(7, []byte{0xff, 0xff, 0xff, 0x7f, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, which int, b []byte) {
		m := make2(t, names[uint(which)%uint(len(names))])
		if err := ts.decode(b, m, true); err != nil {
			return
		}
		again, err := ts.encode(nil, m)
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", m.TypeName(), err)
		}
		back := make2(t, m.TypeName())
		if err := ts.decode(again, back, false); err != nil {
			t.Fatalf("%s: %v", m.TypeName(), err)
		}
	})
}

// A list of controllers as ros_control writes it.
func TestControllerState(t *testing.T) {
	type modern struct {
		Name, State, Type string
		ClaimedInterfaces []string
		IsChained         bool
	}
	c, err := compile(typ[ControllerState](), reflect.TypeFor[modern](), "c")
	if err != nil {
		t.Fatal(err)
	}
	wire := putText(putText(putText(nil, "arm"), "running"), "effort_controllers/JointTrajectoryController")
	wire = putText(putUint(wire, 4, 1), "hardware_interface::EffortJointInterface")
	wire = putText(putText(putUint(wire, 4, 2), "panda_joint1"), "panda_joint2")
	var m modern
	r := &reader{b: wire}
	if c.read(r, reflect.ValueOf(&m).Elem()); r.err != nil || len(r.b) > 0 {
		t.Fatal(r.err, r.b)
	}
	want := modern{Name: "arm", State: "active", Type: "effort_controllers/JointTrajectoryController", ClaimedInterfaces: []string{
		"panda_joint1/hardware_interface::EffortJointInterface", "panda_joint2/hardware_interface::EffortJointInterface",
	}}
	if d := cmp.Diff(want, m); d != "" {
		t.Error(d)
	}
	if back, err := c.write(nil, reflect.ValueOf(&m).Elem()); err != nil || !bytes.Equal(back, wire) {
		t.Errorf("%v\n% x\n% x", err, back, wire)
	}
}

func FuzzActionlib(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := goalStates(b); err == nil && 17*len(l) > len(b) {
			t.Errorf("%d goals from %d bytes", len(l), len(b))
		}
	})
}
