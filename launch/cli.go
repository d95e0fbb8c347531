package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/alecthomas/kong"
)

// The exit codes, for systemd units and scripts.
const (
	ExitOK     = 0
	ExitFailed = 1 // it ran, and something went wrong
	ExitUsage  = 2 // the command line or the launch file is wrong: starting again will not help
	ExitStart  = 3 // it could not start: a port in use, a missing library, a full disk
)

// commands is the command line.
type commands struct {
	Run     runCommand         `cmd:"" help:"Run the daemon of a launch file: agents over HTTP, people on the page."`
	Stdio   stdioCommand       `cmd:"" help:"Serve the tools of a launch file on stdin and stdout, for a client that starts its own server."`
	Check   checkCommand       `cmd:"" help:"Read and check a launch file, and start nothing."`
	Token   tokenCommand       `cmd:"" help:"Make a token and the line that goes into the launch file."`
	Ros     rosCommand         `cmd:"" help:"Look at a ROS graph, with no ROS installed."`
	Twin    twinCommand        `cmd:"" help:"Run a robot in physics behind its own ROS topics and actions, for a launch file of a real one."`
	Control twinControlCommand `cmd:"" name:"twin-control" help:"Look behind the sensors of a running twin, reset its world, switch its faults, cut its link, press its stop."`
	Guard   guardCommand       `cmd:"" help:"Stop a Stretch's base when the daemon of a launch file falls silent: beside drivers that repeat the last velocity for ever."`
	Version versionCommand     `cmd:"" help:"Print the version."`
}

type fileArgument struct {
	File string `arg:"" help:"The launch file, for example launch/twin-franka.yaml."`
}

// overrides are what one start may want otherwise than the file; they are checked like the file's own.
type overrides struct {
	Listen   string `help:"Address instead of listen.address; port 0 takes a free one." placeholder:"HOST:PORT"`
	StateDir string `help:"Folder instead of state_dir." placeholder:"DIR"`
	Seed     *int64 `help:"Seed instead of robot.seed."`
}

type (
	runCommand struct {
		fileArgument
		overrides
	}
	stdioCommand struct {
		fileArgument
		overrides
	}
	checkCommand struct{ fileArgument }
	tokenCommand struct {
		Name string `arg:"" optional:"" default:"alice" help:"Who the token is for."`
		Role string `arg:"" optional:"" default:"driver" enum:"watcher,driver,operator" help:"watcher, driver or operator."`
	}
	versionCommand struct{}
)

// streams are the process's own.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// usageError ends with ExitUsage.
type usageError struct{ error }

// startError ends with ExitStart.
type startError struct{ error }

func (e usageError) Unwrap() error { return e.error }
func (e startError) Unwrap() error { return e.error }

// Main runs the command line and returns the exit code. SIGTERM, SIGINT and SIGHUP stop the robot and then the
// daemon; a second one ends the process at once.
func Main(args []string, in io.Reader, out, complaints io.Writer) int {
	// Who reads the log may go, or the terminal: that must not end the process in the middle of a motion.
	signal.Ignore(syscall.SIGPIPE)
	ends := []os.Signal{syscall.SIGTERM, os.Interrupt}
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants to outlive its terminal
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), ends...)
	defer cancel()
	unhook := context.AfterFunc(ctx, cancel) // from now on a second signal has its usual effect
	defer unhook()
	spareThreads()
	return run(ctx, args, streams{in, out, complaints})
}

// spare is how many threads may run Go code beyond one for each processor.
const spare = 6

// spareThreads lets the system's scheduler choose who runs when pictures and clouds keep every processor busy: it prefers a
// thread that has waited for a robot's answer, at once, where Go's makes it wait for a turn of 10 ms. A line that is asked
// and answers through three goroutines took 24 ms at p50 beside two that compute, on two processors; with spare threads it
// takes 0.01 ms. GOMAXPROCS in the environment has the last word.
func spareThreads() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spare)
	}
}

func run(ctx context.Context, args []string, io streams) int {
	var c commands
	exit := -1
	parser, err := kong.New(&c, kong.Name("viad"), kong.Writers(io.out, io.err), kong.Exit(func(code int) { exit = code }),
		kong.Description("viad lets an AI agent drive a robot: it shows what the robot sees with a virtual gripper in it, and moves the robot to where the agent has put that."),
		faultVars(), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(io))
	if err != nil {
		fmt.Fprintln(io.err, "viad:", err)
		return ExitFailed
	}
	k, err := parser.Parse(args)
	if exit >= 0 { // --help has been answered
		return exit
	}
	if err != nil {
		fmt.Fprintln(io.err, "viad:", err)
		return ExitUsage
	}
	err = k.Run()
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, new(usageError)):
		fmt.Fprintln(io.err, "viad:", err)
		return ExitUsage
	case errors.As(err, new(startError)):
		fmt.Fprintln(io.err, "viad: cannot start:", err)
		return ExitStart
	}
	fmt.Fprintln(io.err, "viad:", err)
	return ExitFailed
}

// Run checks the file and says what it would start.
func (c *checkCommand) Run(io streams) error {
	cfg, err := Read(c.File)
	if err != nil {
		return usageError{err}
	}
	fmt.Fprintf(io.out, "%s: fine: %s, %s face, agents at %s\n", c.File, cfg.robotName(), cfg.Face, cfg.mcpURL(cfg.Listen.Address))
	return nil
}

// Run prints a token once, and its hash.
func (c *tokenCommand) Run(io streams) error {
	token, hash, err := NewToken()
	if err != nil {
		return err
	}
	fmt.Fprintf(io.out, "token (give it to %s; it is printed only once):\n  %s\nline for the launch file:\n  tokens:\n    - {name: %s, role: %s, hash: %q}\n",
		c.Name, token, word(c.Name), c.Role, hash)
	return nil
}

// word is s as a launch file takes it: as it is, or in quotes when it has signs that mean something there.
func word(s string) string {
	plain := func(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) }
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// Run prints the version.
func (versionCommand) Run(io streams) error {
	fmt.Fprintln(io.out, "viad", Version())
	return nil
}

// Version is the module's version, or the commit it was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "development"
}

// logger is the daemon's own log as the file asks for it.
func (c *Config) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		level = slog.LevelInfo // check has refused anything else
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// readable rounds numbers to what somebody reads: a tenth of a millimetre, a millisecond.
func readable(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() { //nolint:exhaustive // all others are left as they are
	case slog.KindFloat64:
		if v := a.Value.Float64(); math.Abs(v) < 1e9 {
			a.Value = slog.Float64Value(math.Round(v*1e4)/1e4 + 0)
		}
	case slog.KindDuration:
		a.Value = slog.DurationValue(a.Value.Duration().Round(time.Millisecond))
	}
	return a
}

// read reads the file and puts the command line's wishes over it.
func (o *overrides) read(file string) (*Config, error) {
	cfg, err := Read(file)
	if err != nil {
		return nil, err
	}
	if o.Listen != "" {
		cfg.Listen.Address = o.Listen
	}
	if o.StateDir != "" {
		cfg.StateDir = o.StateDir
	}
	if o.Seed != nil {
		cfg.Robot.Seed = *o.Seed
	}
	cfg.file = nil // it was fine by itself: no line of it is to blame for what the command line says
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("with what the command line says: %w", err)
	}
	return cfg, nil
}

// Run runs the daemon.
func (c *runCommand) Run(ctx context.Context, io streams) error {
	cfg, err := c.read(c.File)
	if err != nil {
		return usageError{err}
	}
	said, printed := newNews(io.err), newNews(io.out)
	defer said.close()
	defer printed.close()
	if cfg.Robot.real() {
		fmt.Fprintf(said, "%s: connecting to %s over %s\n", cfg.Name, cfg.robotName(), cfg.wire())
	}
	s, err := New(ctx, cfg, Options{Log: cfg.logger(said)})
	if err != nil {
		return startError{err}
	}
	if !cfg.Robot.real() {
		fmt.Fprintf(said, "%s: starting %s in its world, with the seed %d\n", cfg.Name, cfg.robotName(), cfg.Robot.Seed)
	}
	err = s.Run(ctx, func() error {
		return errors.Join(cfg.banner(printed, s.Addr(), s.token, s.desk.Path(), s.shown), latchedLine(printed, s.guard.Latched(), s.desk.Path()))
	})
	return errors.Join(err, s.Close())
}

// Run serves the tools on the process's own streams; everything else goes to stderr.
func (c *stdioCommand) Run(ctx context.Context, io streams) error {
	cfg, err := c.read(c.File)
	if err != nil {
		return usageError{err}
	}
	said := newNews(io.err)
	defer said.close()
	s, err := New(ctx, cfg, Options{Log: cfg.logger(said), Stdio: true})
	if err != nil {
		return startError{err}
	}
	return errors.Join(s.RunStdio(ctx, io.in, io.out), s.Close())
}
