// Package launch is the composition room: the typed launch file, and all wiring of the rooms. Nothing else
// joins them, and nothing else knows a path, a port or a key of the file.
package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/interface/stage"
	"viad/safety"
)

// Config is a launch file. The shipped files in this folder are its manual: every key stands there with
// its meaning. A key that is absent takes the value of Default.
type Config struct {
	Name       string     `yaml:"name"`
	StateDir   string     `yaml:"state_dir"`
	Robot      Robot      `yaml:"robot"`
	Face       string     `yaml:"face"`
	Listen     Listen     `yaml:"listen"`
	Tokens     Tokens     `yaml:"tokens"`
	Limits     Limits     `yaml:"limits"`
	Caps       Caps       `yaml:"caps"`
	Cameras    []Camera   `yaml:"cameras"`
	Perception Perception `yaml:"perception"`
	View       View       `yaml:"view"`
	Preview    Preview    `yaml:"preview"`
	Record     Record     `yaml:"record"`
	Page       Page       `yaml:"page"`
	Log        Log        `yaml:"log"`

	SeatSilence  Duration `yaml:"seat_silence"`
	OnClientGone string   `yaml:"on_client_gone"` // stop, finish

	path string    // where it was read from, for messages
	file *ast.File // for the lines of later complaints
}

// Robot says which robot, and whether it is one.
type Robot struct {
	Driver string `yaml:"driver"` // twin, ros, serial
	Model  string `yaml:"model"`  // fr3, panda, stretch4
	World  string `yaml:"world"`  // tabletop, room
	Seed   int64  `yaml:"seed"`
	Pace   string `yaml:"pace"` // real, fast
	Arm    string `yaml:"arm"`  // auto, operator
	ROS    ROS    `yaml:"ros"`
	Serial Serial `yaml:"serial"`
}

// Listen is the door.
type Listen struct {
	Address string   `yaml:"address"`
	Hosts   []string `yaml:"hosts"`   // further names in the Host header
	Origins []string `yaml:"origins"` // further pages that may call
	MaxBody Size     `yaml:"max_body"`
	TLS     TLS      `yaml:"tls"`
}

// Perception sets the fusing.
type Perception struct {
	Rate   Rate   `yaml:"rate"`
	Voxel  Length `yaml:"voxel"`
	Bounds Box    `yaml:"bounds"`
	Self   Length `yaml:"self_margin"`
	Body   Length `yaml:"body_margin"`
}

// Box is an axis-aligned box in the odometry frame, metres.
type Box struct {
	X Span `yaml:"x"`
	Y Span `yaml:"y"`
	Z Span `yaml:"z"`
}

// Span is [least, most].
type Span []Length

// View is the 3D face's viewport at the start and after camera_reset.
type View struct {
	Target    []Length `yaml:"target"`
	Distance  Length   `yaml:"distance"`
	Elevation Angle    `yaml:"elevation"`
}

// orbit is the view as the stage takes it. The azimuth is the contract's: from +X, looking to -X.
func (v View) orbit() stage.Orbit {
	return stage.Orbit{
		Target:   r3.Vec{X: float64(v.Target[0]), Y: float64(v.Target[1]), Z: float64(v.Target[2])},
		Distance: float64(v.Distance), Azimuth: 90 * degree, Elevation: float64(v.Elevation),
	}
}

// Preview sets when a preview dies.
type Preview struct {
	Age   Duration `yaml:"age"`
	Moved Length   `yaml:"moved"`
	Turn  Angle    `yaml:"turned"`
}

// Record sets what is kept.
type Record struct {
	Folder   string `yaml:"folder"`
	Quota    Size   `yaml:"quota"`
	States   Rate   `yaml:"states"`
	WhenFull string `yaml:"when_full"` // go_on, refuse_motion
}

// Page sets the people's page.
type Page struct {
	Enabled bool `yaml:"enabled"`
	Rate    Rate `yaml:"rate"`
}

// Log sets the daemon's own log, on stderr.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text, json
}

// Default is what absent keys mean.
func Default() Config { return defaults(false) }

// defaults are those of a fixed arm or of a mobile robot.
func defaults(mobile bool) Config {
	return Config{
		Name: "viad", StateDir: "var", Face: "3d",
		Robot:      Robot{Driver: "twin", Model: "fr3", World: "tabletop", Seed: 1, Pace: "real", Arm: "operator", ROS: ROS{Wire: "dds", Master: "127.0.0.1:11311"}, Serial: Serial{Dir: "/dev"}},
		Listen:     Listen{Address: "127.0.0.1:8787", MaxBody: 1 << 20},
		Tokens:     Tokens{Generate: true},
		Limits:     defaultLimits(mobile),
		Caps:       defaultCaps(),
		Perception: Perception{Rate: 5, Voxel: 0.004, Self: 0.015, Body: 0.03},
		View:       View{Target: []Length{0.45, 0, 0.2}, Distance: 1.4, Elevation: 35 * degree},
		Preview:    Preview{Age: Duration(600e9), Moved: 0.005, Turn: Angle(0.5 * degree)},
		Record:     Record{Folder: "record", Quota: 2 << 30, States: 10, WhenFull: "go_on"},
		Page:       Page{Enabled: true, Rate: 3},
		Log:        Log{Level: "info", Format: "text"},

		SeatSilence: Duration(safety.DefaultSilence), OnClientGone: "stop",
	}
}

// Read reads and checks a launch file. The error shows the line with a caret below the place.
func Read(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the launch file: %w", err)
	}
	return Parse(path, text)
}

// Parse checks the text of a launch file; path is used in messages and to place relative folders.
func Parse(path string, text []byte) (*Config, error) {
	if err := notAFile(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := defaults(mobile(text))
	c.path = path
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, c.shown(err)
	}
	c.file = file
	if len(file.Docs) > 1 {
		return nil, fmt.Errorf("%s: holds %d documents, and a launch file is one", path, len(file.Docs))
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, fmt.Errorf("%s: %w", path, errEmpty)
	}
	body := file.Docs[0].Body
	if err := first(noNulls(body), shaped(body, reflect.TypeFor[Config]())); err != nil {
		return nil, c.shown(err)
	}
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict()); err != nil {
		return nil, c.shown(err)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return &c, nil
}

// mobile reports whether the file names a mobile robot, for its defaults. A file that is not well-formed is
// complained of by the strict reading that follows.
func mobile(text []byte) bool {
	var glance struct {
		Robot struct {
			Model string `yaml:"model"`
		} `yaml:"robot"`
	}
	return yaml.Unmarshal(text, &glance) == nil && glance.Robot.Model == "stretch4"
}

// shown is err with the file's name before its line and caret.
func (c *Config) shown(err error) error {
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	line := 0
	if tk := ye.GetToken(); tk != nil && tk.Position != nil {
		line = tk.Position.Line
	}
	what := strings.TrimPrefix(ye.GetMessage(), "cannot unmarshal ")
	return fmt.Errorf("%s:%d: %w", c.path, line, &shownError{what, ye.FormatError(false, true), err})
}

// shownError prints the line and caret, and unwraps to the parser's own error.
type shownError struct {
	what, text string
	err        error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }

// complain is an error at the line of a key such as "limits.box.x".
func (c *Config) complain(key, sentence string, args ...any) error {
	msg := fmt.Sprintf(sentence, args...)
	at := &yaml.SyntaxError{Message: key + ": " + msg}
	for k := key; k != "" && at.Token == nil; k = parent(k) {
		if p, err := yaml.PathString("$." + k); err == nil && c.file != nil {
			if n, err := p.FilterFile(c.file); err == nil && n != nil {
				at.Token = n.GetToken()
			}
		}
	}
	if at.Token == nil {
		return fmt.Errorf("%s: %s: %s", c.path, key, msg)
	}
	return c.shown(at)
}

func parent(key string) string {
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		return key[:i]
	}
	return ""
}

// state is a path inside the state folder.
func (c *Config) state(name string) string { return filepath.Join(c.StateDir, name) }

// recordFolder is where episodes go: relative to the state folder unless absolute.
func (c *Config) recordFolder() string {
	if filepath.IsAbs(c.Record.Folder) {
		return c.Record.Folder
	}
	return c.state(c.Record.Folder)
}
