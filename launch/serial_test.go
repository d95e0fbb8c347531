package launch

import (
	"reflect"
	"strings"
	"testing"
)

func TestSerialFileNamesEveryKey(t *testing.T) {
	text := shipped(t, "stretch4-serial.yaml")
	for _, typ := range []reflect.Type{reflect.TypeFor[Serial](), reflect.TypeFor[SerialPorts]()} {
		for i := range typ.NumField() {
			if key := typ.Field(i).Tag.Get("yaml"); !strings.Contains(text, " "+key+":") {
				t.Errorf("the file does not name %s", key)
			}
		}
	}
	c, err := Parse("stretch4-serial.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.Robot.Driver != "serial" || c.Robot.Serial != Default().Robot.Serial || c.Robot.Arm != "operator" || c.Tokens.Generate {
		t.Errorf("%+v, tokens %+v", c.Robot, c.Tokens)
	}
	other, err := Read("stretch4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c.Limits, other.Limits) || !reflect.DeepEqual(c.Cameras, other.Cameras) {
		t.Error("it is one robot: limits and cameras are not those of stretch4.yaml")
	}
}

func TestSerialMistakes(t *testing.T) {
	text := shipped(t, "stretch4-serial.yaml")
	for _, c := range []struct{ old, new, says string }{
		{"    dir: /dev ", "    dri: /dev ", "dri"},
		{"    dir: /dev ", "    dir: dev ", `must be an absolute path, got "dev"`},
		{"    dir: /dev ", "    dir: \"\" ", "must be the folder of the ports"},
		{"      lift: \"\" ", "      lfit: \"\" ", "lfit"},
		{"      lift: \"\" ", "      lift: ttyACM0 ", "must be an absolute path"},
		{"      arm: \"\" ", "      arm: /dev ", "another port already"},
		{"  base_speed: 0.2 m/s ", "  base_speed: 0.25 m/s ", "at most 0.24 m/s on a real robot, got 0.25 m/s"},
		{"  arm: operator ", "  arm: auto ", "auto is for the twin only"},
		{"    wire: dds ", "    wire: ros1 ", "every other robot ROS 2"},
		{"  model: stretch4 ", "  model: fr3 ", "only a stretch4 is driven over its serial ports"},
		{"  driver: serial ", "  driver: usb ", "twin, ros, serial"},
		{"face: 2d", "face: 3d", "driven through the 2d face"},
	} {
		if strings.Count(text, c.old) != 1 {
			t.Errorf("%q stands %d times in the file", c.old, strings.Count(text, c.old))
			continue
		}
		_, err := Parse("x.yaml", []byte(strings.Replace(text, c.old, c.new, 1)))
		if err == nil {
			t.Errorf("%q was accepted", c.new)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, c.says) || !strings.HasPrefix(msg, "x.yaml:") || !strings.Contains(msg, "^") {
			t.Errorf("%q: want %q with line and caret, got\n%s", c.new, c.says, msg)
		}
	}
	for _, twice := range []string{
		strings.Replace(strings.Replace(text, "      lift: \"\" ", "      lift: /dev/a ", 1), "      arm: \"\" ", "      arm: /dev/a ", 1),
		strings.Replace(text, "      lift: \"\" ", "      lift: /dev/hello-motor-arm ", 1),
	} {
		if _, err := Parse("x.yaml", []byte(twice)); err == nil || !strings.Contains(err.Error(), "another port already") {
			t.Errorf("one port for two boards: %v", err)
		}
	}
}

// The driver of a real base is held to the file's speeds, over either wire: what brings the base back to a plan is no
// faster than the operator allows.
func TestBaseIsHeldToTheFile(t *testing.T) {
	text := shipped(t, "stretch4.yaml")
	slow := strings.Replace(strings.Replace(text, "  base_speed: 0.2 m/s ", "  base_speed: 0.05 m/s ", 1), "  base_turn: 0.6 rad/s", "  base_turn: 0.1 rad/s", 1)
	c, err := Parse("x.yaml", []byte(slow))
	if err != nil {
		t.Fatal(err)
	}
	if d := c.stretch(nil, nil); d.BaseSpeed != 0.05 || d.BaseTurn != 0.1 {
		t.Errorf("the driver is given %v m/s and %v rad/s, the file says 0.05 and 0.1", d.BaseSpeed, d.BaseTurn)
	}
	for _, f := range [][2]string{{"  base_speed: 0.2 m/s ", "  base_speed: 0.3 m/s "}, {"  base_turn: 0.6 rad/s", "  base_turn: 3 rad/s"}} {
		if strings.Count(text, f[0]) != 1 {
			t.Fatalf("%q is not in the file", f[0])
		}
		if _, err := Parse("x.yaml", []byte(strings.Replace(text, f[0], f[1], 1))); err == nil || !strings.Contains(err.Error(), "on a real robot") {
			t.Errorf("%q: %v", f[1], err)
		}
	}
}
