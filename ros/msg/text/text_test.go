package text_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"viad/ros/msg"
	"viad/ros/msg/all"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/controller_manager_msgs"
	"viad/ros/msg/diagnostic_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
	"viad/ros/msg/text"
	"viad/ros/msg/unique_identifier_msgs"
)

func TestYAML(t *testing.T) {
	for _, c := range []struct {
		m    msg.Message
		o    text.Options
		want string
	}{
		{&std_srvs.Trigger_Request{}, text.Options{}, "{}\n"},
		{&std_msgs.Header{Stamp: builtin_interfaces.Time{Sec: 3, Nanosec: 4}, FrameId: "base_link"}, text.Options{}, "stamp:\n  sec: 3\n  nanosec: 4\nframe_id: base_link\n"},
		{&std_msgs.String{Data: "yes"}, text.Options{}, "data: \"yes\"\n"},
		{&std_msgs.String{Data: "a: b"}, text.Options{}, "data: \"a: b\"\n"},
		{&std_msgs.String{Data: "abcdef"}, text.Options{String: 3}, "data: abc # 6 bytes in all\n"},
		{&std_msgs.Float64{Data: 1}, text.Options{}, "data: 1.0\n"},
		{&std_msgs.Float64{Data: math.NaN()}, text.Options{}, "data: .nan\n"},
		{&std_msgs.Float32{Data: 0.1}, text.Options{}, "data: 0.1\n"},
		{
			&sensor_msgs.JointState{Name: []string{"a", "b"}, Position: []float64{1, -2.5}},
			text.Options{},
			"header:\n  stamp:\n    sec: 0\n    nanosec: 0\n  frame_id: \"\"\nname: [a, b]\nposition: [1.0, -2.5]\nvelocity: []\neffort: []\n",
		},
		{&sensor_msgs.Image{Data: []byte{1, 2, 3}}, text.Options{Array: 2}, "header:\n  stamp:\n    sec: 0\n    nanosec: 0\n  frame_id: \"\"\nheight: 0\nwidth: 0\nencoding: \"\"\nis_bigendian: 0\nstep: 0\ndata: [1, 2, ...] # 3 in all\n"},
		{
			&diagnostic_msgs.DiagnosticStatus{Values: []diagnostic_msgs.KeyValue{{Key: "k", Value: "1"}, {}, {}}},
			text.Options{Array: 1},
			"level: 0\nname: \"\"\nmessage: \"\"\nhardware_id: \"\"\nvalues:\n- key: k\n  value: \"1\"\n# 2 more, 3 in all\n",
		},
		{&controller_manager_msgs.SwitchController_Request{}, text.Options{}, "activate_controllers: []\ndeactivate_controllers: []\nstrictness: 0\nactivate_asap: false\ntimeout:\n  sec: 0\n  nanosec: 0\n"},
	} {
		var b bytes.Buffer
		if err := text.YAML(&b, c.m, c.o); err != nil || b.String() != c.want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.m.TypeName(), err, b.String(), c.want)
		}
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct {
		m    msg.Message
		want string
	}{
		{&std_srvs.Trigger_Request{}, `{}`},
		{&std_srvs.Trigger_Response{Success: true, Message: "a\"b"}, `{"success":true,"message":"a\"b"}`},
		{&std_msgs.UInt8MultiArray{Data: []byte{1, 2}}, `{"layout":{"dim":[],"data_offset":0},"data":"AQI="}`},
		{&unique_identifier_msgs.UUID{Uuid: [16]byte{1}}, `{"uuid":"AQAAAAAAAAAAAAAAAAAAAA=="}`},
		{&geometry_msgs.Vector3{X: 1, Y: -0.5, Z: 1e300}, `{"x":1,"y":-0.5,"z":1e+300}`},
		{&std_msgs.Float32MultiArray{Data: []float32{0.1}}, `{"layout":{"dim":[],"data_offset":0},"data":[0.1]}`},
	} {
		got, err := text.AppendJSON(nil, c.m)
		if err != nil || string(got) != c.want || !json.Valid(got) {
			t.Errorf("%s: %v\n got %s\nwant %s", c.m.TypeName(), err, got, c.want)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		m := &sensor_msgs.JointState{Position: []float64{0, bad}}
		if _, err := text.AppendJSON(nil, m); err == nil || !strings.Contains(err.Error(), "sensor_msgs/msg/JointState.position[1] is") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// What is written is read again, for every message.
func TestEveryMessageThroughJSON(t *testing.T) {
	for _, n := range all.Names() {
		m, _ := all.New(n)
		first, err := text.AppendJSON(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		back, _ := all.New(n)
		if err := text.ParseJSON(first, back); err != nil {
			t.Errorf("%s: %v", n, err)
		}
		second, err := text.AppendJSON(nil, back)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: %v\n was %s\n  is %s", n, err, first, second)
		}
		if len(text.Fields(m)) != reflect.TypeOf(m).Elem().NumField() {
			t.Errorf("%s: %q", n, text.Fields(m))
		}
	}
}

func TestParse(t *testing.T) {
	js := new(sensor_msgs.JointState)
	in := `{"name":["a","b"],"position":[1,2.5e-1],"header":{"frame_id":"base","stamp":{"sec":-1}}}`
	if err := text.ParseJSON([]byte(in), js); err != nil || js.Position[1] != 0.25 || js.Name[1] != "b" || js.Header.Stamp.Sec != -1 || js.Header.FrameId != "base" {
		t.Errorf("%+v %v", js, err)
	}
	img := new(sensor_msgs.Image)
	if err := text.ParseJSON([]byte(`{"data":"AQI="}`), img); err != nil || !bytes.Equal(img.Data, []byte{1, 2}) {
		t.Errorf("base64: %v %v", img.Data, err)
	}
	if err := text.ParseJSON([]byte(`{"data":[3,4]}`), img); err != nil || !bytes.Equal(img.Data, []byte{3, 4}) {
		t.Errorf("list: %v %v", img.Data, err)
	}
	id := new(unique_identifier_msgs.UUID)
	if err := text.ParseJSON([]byte(`{"uuid":"AQAAAAAAAAAAAAAAAAAAAA=="}`), id); err != nil || id.Uuid[0] != 1 {
		t.Errorf("%v %v", id, err)
	}
	// A pose whose orientation is not named stands upright, as in ROS, and is not a quaternion of zeros.
	p := new(geometry_msgs.PoseArray)
	if err := text.ParseJSON([]byte(`{"poses":[{"position":{"x":1}}]}`), p); err != nil || p.Poses[0].Orientation.W != 1 {
		t.Errorf("%+v %v", p, err)
	}
	if err := text.ParseJSONLoose([]byte(`{"success":true,"new":{"a":[1,{}]},"message":"m"}`), new(std_srvs.Trigger_Response)); err != nil {
		t.Errorf("a newer peer's field: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		m       msg.Message
		in, why string
	}{
		{new(std_srvs.SetBool_Request), `{"dta":true}`, `std_srvs/srv/SetBool_Request has no field "dta"; it has: data`},
		{new(std_srvs.Trigger_Request), `{"a":1}`, "it has: none"},
		{new(std_srvs.SetBool_Request), `{"data":true,"data":false}`, "comes twice"},
		{new(std_srvs.SetBool_Request), `{"data":1}`, "1 is no bool"},
		{new(std_srvs.SetBool_Request), `{"data":null}`, "null is no bool"},
		{new(std_srvs.SetBool_Request), `{"data":true} x`, "more comes behind"},
		{new(std_srvs.SetBool_Request), `[true]`, "a list is no object"},
		{new(std_srvs.SetBool_Request), `{"data":`, "EOF"},
		{new(std_msgs.UInt8), `{"data":256}`, "std_msgs/msg/UInt8.data: 256 does not fit a uint8"},
		{new(std_msgs.Int32), `{"data":1.5}`, "1.5 does not fit a int32"},
		{new(std_msgs.Float32), `{"data":1e39}`, "does not fit a float32"},
		{new(std_msgs.Float64), `{"data":"nan"}`, `"nan" is no float64`},
		{new(std_msgs.Float64), `{"data":null}`, "null is no float64"},
		{new(std_msgs.String), `{"data":3}`, "3 is no string"},
		{new(sensor_msgs.JointState), `{"position":[0,null]}`, "position[1]: null is no float64"},
		{new(sensor_msgs.CameraInfo), `{"k":[1,2]}`, "2 elements; it has 9"},
		{new(sensor_msgs.CameraInfo), `{"k":[1,2,3,4,5,6,7,8,9,10]}`, "more than the 9"},
		{new(sensor_msgs.Image), `{"data":"?"}`, "neither a list nor base64"},
		{new(unique_identifier_msgs.UUID), `{"uuid":"AQ=="}`, "1 bytes; it has 16"},
	} {
		if err := text.ParseJSON([]byte(c.in), c.m); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v; want %q", c.in, err, c.why)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	names := all.Names()
	for i, n := range names {
		m, _ := all.New(n)
		b, err := text.AppendJSON(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(i), b)
	}
	f.Fuzz(func(t *testing.T, which uint16, in []byte) {
		m, _ := all.New(names[int(which)%len(names)])
		if text.ParseJSON(in, m) != nil {
			return
		}
		if _, err := text.AppendJSON(nil, m); err != nil {
			t.Errorf("%s: %v", m.TypeName(), err)
		}
	})
}
