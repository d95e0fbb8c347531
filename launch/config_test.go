package launch

import (
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		q    quantity
		text string
		want float64
	}{
		{lengthQ(), "0.1 m", 0.1},
		{lengthQ(), "5mm", 0.005},
		{lengthQ(), "-12.5 cm", -0.125},
		{angleQ(), "90 deg", math.Pi / 2},
		{angleQ(), "1.5rad", 1.5},
		{speedQ(), "250 mm/s", 0.25},
		{turnQ(), "180 deg/s", math.Pi},
		{rateQ(), "5 Hz", 5},
		{ratioQ(), "25 %", 0.25},
		{ratioQ(), "0.5x", 0.5},
		{durationQ(), "200ms", 0.2},
		{durationQ(), "10 min", 600},
		{sizeQ(), "2 GiB", 2147483648},
		{forceQ(), "20 N", 20},
		{lengthQ(), "1e-3 m", 0.001},
	} {
		got, err := c.q.parse(c.text)
		if err != nil || math.Abs(got-c.want) > 1e-12*math.Abs(c.want) {
			t.Errorf("%q = %v, %v; want %v", c.text, got, err, c.want)
		}
	}
	for _, c := range []struct {
		q          quantity
		text, says string
	}{
		{lengthQ(), "0.1", "has no unit"},
		{lengthQ(), "5 in", `has the unit "in"`},
		{lengthQ(), "0.1 s", "one of mm, cm, m"},
		{lengthQ(), "m", "is not a length"},
		{lengthQ(), "NaN m", "is not a length"},
		{lengthQ(), "1e999 m", "is not a length"},
		{lengthQ(), "", "is not a length"},
		{lengthQ(), "0.1 m 2", "is not a length"},
		{durationQ(), "30 sec", `has the unit "sec"`},
		{durationQ(), "30", "for example 30 s"},
	} {
		if v, err := c.q.parse(c.text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q = %v, %v; want an error that says %q", c.text, v, err, c.says)
		}
	}
}

func shipped(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestShippedFilesAreFine(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		if _, err := Read(f); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// The shipped files are the manual: every key of Config stands in them, and what they leave to the reader
// as the default is the default. How a real robot is reached stands in the files of real robots.
func TestShippedFilesNameEveryKey(t *testing.T) {
	for _, f := range []string{"twin-franka.yaml", "twin-stretch4.yaml"} {
		text := shipped(t, f)
		var walk func(reflect.Type, string)
		walk = func(typ reflect.Type, path string) {
			for i := range typ.NumField() {
				sf := typ.Field(i)
				key := sf.Tag.Get("yaml")
				if key == "" || sf.Type == reflect.TypeFor[ROS]() || sf.Type == reflect.TypeFor[Serial]() || sf.Type == reflect.TypeFor[[]Camera]() {
					continue
				}
				if !strings.Contains(text, "\n"+strings.Repeat("  ", strings.Count(path, "."))+key+":") &&
					!strings.Contains(text, " "+key+":") {
					t.Errorf("%s does not name %s%s", f, path, key)
				}
				if sf.Type.Kind() == reflect.Struct && sf.Type != reflect.TypeFor[Tokens]() {
					walk(sf.Type, path+key+".")
				}
			}
		}
		walk(reflect.TypeFor[Config](), "")
	}
}

func TestDefaultsAreWhatTheManualSays(t *testing.T) {
	full, err := Parse("twin-franka.yaml", []byte(shipped(t, "twin-franka.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	d := Default()
	if full.Caps != d.Caps || full.Preview != d.Preview || full.Page != d.Page || full.Log != d.Log {
		t.Errorf("caps, preview, page or log of the manual are not the defaults:\n%+v\n%+v", full, d)
	}
	if full.Record.Quota != d.Record.Quota || full.Perception.Rate != d.Perception.Rate || full.Perception.Voxel != d.Perception.Voxel {
		t.Errorf("record or perception of the manual are not the defaults")
	}
}

// Each mistake: what is changed in the shipped file, the line it must be shown at (by its text), and words
// of the sentence.
func TestMistakesAreShownWithLineAndCaret(t *testing.T) {
	text := shipped(t, "twin-franka.yaml")
	for _, c := range []struct{ old, new, says string }{
		{"  translate: 0.1 m ", "  tarnslate: 0.1 m ", "tarnslate"},
		{"  translate: 0.1 m ", "  translate: 0.1 ", "has no unit"},
		{"  translate: 0.1 m ", "  translate: 100 s ", `has the unit "s"`},
		{"  translate: 0.1 m ", "  translate: 0.2 m ", "must be between 1 mm and 0.1 m"},
		{"  motion: 30 s ", "  motion: 31 s ", "between 0.1 and 30 s"},
		{"    arm: 2 cm ", "    arm: 2 mm ", "between 0.005 and 0.5 m"},
		{"  keep_in: []", "  keep_in: [[1 m]]", "a corner is [x, y]"},
		{"  tool_speed: 0.25 m/s", "  tool_speed: 0.25 m", "has the unit \"m\""},
		{"on_client_gone: stop", "on_client_gone: pray", "stop, finish"},
		{"  seed: 1  ", "  seed: one  ", "seed"},
		{"  seed: 1  ", "  seed: -1  ", "must be 0 or more"},
		{"  pace: real ", "  pace: slow ", "real, fast"},
		{"  model: fr3 ", "  model: ur5 ", "fr3, panda, stretch4"},
		{"  model: fr3 ", "  model: stretch4 ", "stands in the room"},
		{"face: 3d", "face: 2d", "driven through the 3d face"},
		{"face: 3d", "face: 3d\nface: 3d", "already defined"},
		{"  address: 127.0.0.1:8787", "  address: 0.0.0.0:8787", "not a loopback address"},
		{"  address: 127.0.0.1:8787", "  address: 8787", "must be host:port"},
		{"  address: 127.0.0.1:8787", "  address: 192.168.1.20:8787", "listen.tls.generate: true"},
		{"  address: 127.0.0.1:8787", "  address: :8787", "every address is not a loopback address"},
		{"    generate: false", "    generate: perhaps", "true or false"},
		{"    key: \"\"", "    key: k.pem", "needs both cert and key"},
		{"  hosts: []", "  hosts: [\"https://robot.lab\"]", "as clients call this machine"},
		{"  hosts: []", "  hosts: [\"*\"]", "as clients call this machine"},
		{"  origins: []", "  origins: [lab.example]", "scheme and host of a page"},
		{"  origins: []", "  origins: [\"https://lab.example/\"]", "scheme and host of a page"},
		{"tokens: generate", "tokens: anybody", "the word generate"},
		{"tokens: generate", "tokens: []", "the list is empty"},
		{"tokens: generate", "tokens:\n  - {name: a, role: driver, hash: \"sha256:00\"}", "64 hex digits"},
		{"tokens: generate", "tokens:\n  - {name: a, role: king, hash: \"sha256:00\"}", "watcher, driver, operator"},
		{"tokens: generate", "tokens:\n  - {name: a, role: driver, hush: x}", "hush"},
		{"  quota: 2 GiB ", "  quota: 2 GB ", `has the unit "GB"`},
		{"  voxel: 4 mm ", "  voxel: 4 m ", "between 1 mm and 10 cm"},
		{"x: [-0.3 m, 1.1 m]", "x: [1.1 m, -0.3 m]", "least below most"},
		{"x: [-0.3 m, 1.1 m]", "x: [-0.3, 1.1 m]", "has no unit"},
		{"  arm: auto ", "  arm: maybe ", "operator, auto"},
		{"  enabled: true", "  enabled: perhaps", "true or false"},
	} {
		if strings.Count(text, c.old) != 1 {
			t.Errorf("%q stands %d times in the manual", c.old, strings.Count(text, c.old))
			continue
		}
		_, err := Parse("x.yaml", []byte(strings.Replace(text, c.old, c.new, 1)))
		if err == nil {
			t.Errorf("%q was accepted", c.new)
			continue
		}
		msg := err.Error()
		if !strings.Contains(msg, c.says) || !strings.HasPrefix(msg, "x.yaml:") || !strings.Contains(msg, "^") || !strings.Contains(msg, "\n>") {
			t.Errorf("%q: want %q with line and caret, got\n%s", c.new, c.says, msg)
		}
	}
}

func TestBrokenFilesAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "# nothing", "robot: [", "\t", "name: x\n---\nname: y\n", "robot: 5", "- a\n- b", "caps:\n  steps: 1e400", "limits:\n", "limits:\n  tool_box:\n", "name: ~",
	} {
		if _, err := Parse("x.yaml", []byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestWhatIsLeftOutIsTheDefault(t *testing.T) {
	c, err := Parse("x.yaml", []byte("name: lab\ncaps: {steps: 20}\nlimits: {clearance: {arm: 5 cm}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Name, want.Caps.Steps, want.Limits.Clearance.Arm = "lab", 20, 0.05
	if c.Caps != want.Caps || !reflect.DeepEqual(c.Limits, want.Limits) || !reflect.DeepEqual(c.Robot, want.Robot) {
		t.Errorf("got %+v\nwant %+v", c, want)
	}
	if c.Robot.Arm != "operator" {
		t.Error("without a word about it, a robot comes up disarmed")
	}
	m, err := Parse("x.yaml", []byte("robot: {model: stretch4, world: room}\nface: 2d\n"))
	if err != nil || m.Limits.Clearance.Arm != 0.03 {
		t.Errorf("a mobile robot has margins of its own: %+v %v", m, err)
	}
}

func TestARealRobotIsNeverArmedByItsFile(t *testing.T) {
	c := Default()
	c.Robot.Driver, c.Robot.Arm = "franka", "auto"
	if err := c.checkRobot(); err == nil || !strings.Contains(err.Error(), "auto is for the twin only") {
		t.Errorf("arm: auto for a driver that is not the twin: %v", err)
	}
}

// A token crosses a network only under TLS, and by names that the daemon knows.
func TestListeningOffLoopbackNeedsTLS(t *testing.T) {
	list := Tokens{List: []Token{{Name: "a", Role: "driver", Hash: HashToken("x")}}}
	for _, c := range []struct {
		listen Listen
		says   string // empty: fine
	}{
		{Listen{Address: "127.0.0.1:1"}, ""},
		{Listen{Address: "[::1]:1"}, ""},
		{Listen{Address: "127.0.0.1:1", TLS: TLS{Generate: true}}, ""},
		{Listen{Address: "192.168.1.20:1"}, "not a loopback address"},
		{Listen{Address: "robot.lab:1"}, "not a loopback address"},
		{Listen{Address: "[fe80::1]:1"}, "not a loopback address"},
		{Listen{Address: "192.168.1.20:1", TLS: TLS{Key: "k"}}, "both cert and key"},
		{Listen{Address: "192.168.1.20:1", TLS: TLS{Cert: "c", Key: "k", Generate: true}}, "choose one"},
		{Listen{Address: "192.168.1.20:1", TLS: TLS{Generate: true}}, ""},
		{Listen{Address: "192.168.1.20:1", TLS: TLS{Cert: "c", Key: "k"}}, ""},
		{Listen{Address: "0.0.0.0:1", TLS: TLS{Generate: true}}, "listen.hosts"},
		{Listen{Address: "[::]:1", TLS: TLS{Cert: "c", Key: "k"}}, "listen.hosts"},
		{Listen{Address: ":1", Hosts: []string{"robot.lab"}, TLS: TLS{Generate: true}}, ""},
	} {
		f := Default()
		f.Tokens, f.Listen = list, c.listen
		f.Listen.MaxBody = 1 << 20
		err := f.check()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %q", c.listen, err, c.says)
		}
	}
}

func TestDurationIsExact(t *testing.T) {
	c, err := Parse("x.yaml", []byte("preview: {age: 90 s}\n"))
	if err != nil || c.Preview.Age.D() != 90*time.Second {
		t.Errorf("%v %v", c, err)
	}
}

// Whatever a launch file says: it is refused, or what it sets is inside what is safe. Both are the same the next time.
func FuzzParse(f *testing.F) {
	for _, n := range []string{"twin-franka.yaml", "twin-stretch4.yaml"} {
		b, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{
		"name: lab\ncaps: {steps: 20}\nlimits: {clearance: {arm: 5 cm}}\n",
		"robot: {model: stretch4, world: room, arm: auto}\nface: 2d\n",
		"robot: {driver: franka, arm: auto}\n",
		"listen: {address: \"0.0.0.0:1\", hosts: [a], tls: {generate: true}}\ntokens: [{name: a, role: driver, hash: \"sha256:" + strings.Repeat("0f", 32) + "\"}]\n",
		"limits: {motion: .inf s, tool_speed: NaN m/s, joint_margin: -0.0 rad}\n",
		"a: &a [*a]\n", "x: &x {y: *x}\n", "<<: {name: b}\n", "name: !!binary aGk=\n", "name: |\n  a\n b\n", "? [name]\n: b\n", "%YAML 1.2\n---\nname: x\n...\n",
		"limits: {tool_box: {x: [0 m, 1 m], y: [0 m, 1 m], z: [0 m, 1 m]}, keep_in: [[0 m, 0 m], [1 m, 0 m], [0 m, 1 m]]}\n",
		"name: \"\\ud800\"\n", "\xef\xbb\xbfname: x\n", "name: 'x\n", "view: {target: [0.45 m, 0 m, 0.2 m]}\nlog: {level: debug}\n", "seat_silence: 20 s\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse("x.yaml", b)
		if (c == nil) == (err == nil) {
			t.Fatal("both or neither of config and error")
		}
		again, err2 := Parse("x.yaml", b)
		if err != nil {
			if err2 == nil || err.Error() != err2.Error() || strings.TrimSpace(err.Error()) == "" {
				t.Errorf("refused with %q, then with %q", err, err2)
			}
			return
		}
		if err2 != nil {
			t.Fatalf("accepted, then refused: %v", err2)
		}
		c.file, again.file = nil, nil
		if !reflect.DeepEqual(c, again) {
			t.Error("the second reading is another")
		}
		mustBeSafe(t, c)
	})
}

// FuzzValue puts anything in the place of one value of the manual.
func FuzzValue(f *testing.F) {
	for n, v := range []string{
		"1e308 m", "-0 m", "1e-320 s", "0x1p-2 m", "٣ m", "1_000 m", "+1 m", "1,5 m", ".5 m", "1e9 min", "Infinity s", "1 %", "1000 %", "-1", "[]", "[1 m, 2 m, 3 m]", "{}", "~",
		"&a 1 m", "*a", "!!float 1 m", "\"1 m\"", "'1 m'", "true", "auto", "franka", "2d", "0.0.0.0:1", ":0", "localhost:99999", "[::1]:1", "127.1:1", "0177.0.0.1:1", "127.0.0.1.evil.example:1", "| \n  x",
	} {
		f.Add(uint8(7*n), v)
	}
	manual, err := os.ReadFile("twin-franka.yaml")
	if err != nil {
		f.Fatal(err)
	}
	values := regexp.MustCompile(`(?m)^ *[a-z_]+: +([^ #\n][^#\n]*?)(?: +#.*)?$`).FindAllSubmatchIndex(manual, -1)
	if len(values) < 60 {
		f.Fatalf("only %d values found in the manual", len(values))
	}
	f.Fuzz(func(t *testing.T, which uint8, value string) {
		at := values[int(which)%len(values)]
		text := slices.Concat(manual[:at[2]], []byte(value), manual[at[3]:])
		c, err := Parse("x.yaml", text)
		if (c == nil) == (err == nil) {
			t.Fatal("both or neither of config and error")
		}
		if c != nil {
			mustBeSafe(t, c)
		}
	})
}

// mustBeSafe checks in its own words what no launch file may do.
func mustBeSafe(t *testing.T, c *Config) {
	t.Helper()
	host, _, err := net.SplitHostPort(c.Listen.Address)
	if err != nil {
		t.Fatal(err)
	}
	near := host == "localhost" || net.ParseIP(host).IsLoopback()
	for what, bad := range map[string]bool{
		"a token in clear on a network":  !near && !c.Listen.TLS.Generate && (c.Listen.TLS.Cert == "" || c.Listen.TLS.Key == ""),
		"a generated token on a network": c.Tokens.Generate && !near,
		"nobody may come in":             !c.Tokens.Generate && len(c.Tokens.List) == 0,
		"a real robot that arms itself":  c.Robot.Arm == "auto" && c.Robot.Driver != "twin",
		"a motion of over 30 s":          !(c.Limits.Motion > 0 && c.Limits.Motion.D() <= 30*time.Second),
		"speed over the scale":           !(c.Limits.SpeedScale > 0 && c.Limits.SpeedScale <= 1),
		"no clearance":                   !(c.Limits.Clearance.Arm > 0 && c.Limits.Clearance.Base > 0),
		"a wider cap than the tools say": !(c.Caps.Translate > 0 && c.Caps.Translate <= 0.1 && c.Caps.NavTravel > 0 && c.Caps.NavTravel <= 0.5 && c.Caps.Steps > 0 && c.Caps.Steps <= 50),
		"joint state of over a second":   !(c.Limits.StateAge > 0 && c.Limits.StateAge.D() <= time.Second),
		"endless silence in the seat":    !(c.SeatSilence.D() >= 10*time.Second && c.SeatSilence.D() <= 24*time.Hour),
	} {
		if bad {
			t.Errorf("accepted: %s", what)
		}
	}
	for _, v := range []float64{
		float64(c.Limits.ToolSpeed), float64(c.Limits.BaseSpeed), float64(c.Limits.ToolTurn), float64(c.Limits.JointMargin), float64(c.Limits.ContactStop),
		float64(c.Perception.Voxel), float64(c.View.Distance), float64(c.Preview.Moved), float64(c.Page.Rate),
	} {
		if v-v != 0 || v < 0 {
			t.Errorf("accepted: a value of %v", v)
		}
	}
	for i, k := range c.Tokens.List {
		if k.Name == "" || k.Hash == "" || k.Role != "watcher" && k.Role != "driver" && k.Role != "operator" {
			t.Errorf("accepted: token %d is %+v", i, k)
		}
	}
}

func TestTokens(t *testing.T) {
	token, hash, err := NewToken()
	if err != nil || HashToken(token) != hash {
		t.Fatal(token, hash, err)
	}
	// printf %s abc | sha256sum
	if h := HashToken("abc"); h != "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error(h)
	}
	path := filepath.Join(t.TempDir(), "token")
	a, err := development(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := development(path)
	if err != nil || a != b {
		t.Errorf("the second start makes another token: %q %q %v", a, b, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := development(path); err == nil {
		t.Error("an empty token was taken")
	}
}
