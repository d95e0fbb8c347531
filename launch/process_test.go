package launch

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/client"

	"viad/interface/operator"
)

// viad is this test binary as the daemon, with the given arguments.
func viad(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), asViad+"=1")
	return c
}

// ends runs a command that must end by itself with a code and say something on stderr.
func ends(t *testing.T, c *exec.Cmd, code int, says ...string) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := c.ProcessState.ExitCode(); got != code {
		t.Errorf("%v: exit code %d, want %d:\n%s", c.Args[1:], got, code, out.String())
	}
	for _, s := range says {
		if !strings.Contains(out.String(), s) {
			t.Errorf("%v: does not say %q:\n%s", c.Args[1:], s, out.String())
		}
	}
	if strings.Contains(out.String(), "panic") || strings.Contains(out.String(), "goroutine ") {
		t.Errorf("%v: a panic:\n%s", c.Args[1:], out.String())
	}
}

func TestCommandLine(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	text := strings.Replace(shipped(t, "twin-franka.yaml"), "  translate: 0.1 m", "  translat: 0.1 m", 1)
	if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ends(t, viad(t, "check", "twin-franka.yaml"), ExitOK, "fine", "Franka FR3 (twin)")
	ends(t, viad(t, "check", "twin-stretch4.yaml"), ExitOK, "Stretch 4 (twin), 2d face")
	ends(t, viad(t, "check", bad), ExitUsage, bad+":", "translat:", "^")
	ends(t, viad(t, "run", bad), ExitUsage, "translat:")
	ends(t, viad(t, "run", "nothing.yaml"), ExitUsage, "nothing.yaml")
	ends(t, viad(t, "run", "twin-franka.yaml", "--listen", "0.0.0.0:1"), ExitUsage, "not a loopback address")
	ends(t, viad(t, "dance"), ExitUsage, "dance")
	ends(t, viad(t), ExitUsage)
	ends(t, viad(t, "--help"), ExitOK, "run", "stdio", "check", "token")
	ends(t, viad(t, "version"), ExitOK, "viad ")
	ends(t, viad(t, "token", "alice", "watcher"), ExitOK, "name: alice, role: watcher", `hash: "sha256:`)
	ends(t, viad(t, "token", "alice", "king"), ExitUsage, "king")
}

// The line that `viad token` prints works in a launch file, and the token that it prints opens the door.
func TestTokenCommandFitsTheLaunchFile(t *testing.T) {
	out, err := viad(t, "token", "alice", "driver").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(out), "launch file:\n")
	text := strings.Replace(shipped(t, "twin-franka.yaml"), "tokens: generate", strings.ReplaceAll(strings.TrimRight(lines, "\n"), "\n  ", "\n")[2:], 1)
	c, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	token := regexp.MustCompile(`viad_\S+`).FindString(string(out))
	if len(c.Tokens.List) != 1 || c.Tokens.List[0].Hash != HashToken(token) || c.Tokens.List[0].Name != "alice" {
		t.Errorf("%+v", c.Tokens)
	}
}

func TestStartFailuresSayWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(t.TempDir(), "a-file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	s, err := openStateDir(state)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	franka := func(more ...string) *exec.Cmd {
		return viad(t, append([]string{"run", "twin-franka.yaml", "--listen", "127.0.0.1:0"}, more...)...)
	}
	ends(t, franka("--listen", l.Addr().String(), "--state-dir", t.TempDir()), ExitStart, "port", "in use", l.Addr().String(), "--listen")
	ends(t, franka("--state-dir", state), ExitStart, "another viad uses the state folder", "state_dir")
	ends(t, franka("--state-dir", filepath.Join(file, "x")), ExitStart, "state folder", "state_dir")

	recordIn := func(folder string) string {
		path := filepath.Join(t.TempDir(), "x.yaml")
		text := strings.Replace(shipped(t, "twin-franka.yaml"), "  folder: record ", "  folder: "+folder+" ", 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ends(t, viad(t, "run", recordIn(filepath.Join(file, "x")), "--listen", "127.0.0.1:0", "--state-dir", t.TempDir()), ExitStart, "record folder", "record.folder")
	full := t.TempDir()
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=100k"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	ends(t, viad(t, "run", recordIn(full), "--listen", "127.0.0.1:0", "--state-dir", t.TempDir()), ExitStart, "record folder", "no space left", "free some space")
	if err := syscall.Unmount(full, 0); err != nil {
		t.Error(err)
	}
}

// Without the physics or a way to make pictures the daemon says which package is missing. The libraries are
// hidden in a mount namespace of the child's own.
func TestMissingLibrariesAreNamed(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "unshare", "-m", "true").Run(); err != nil {
		t.Skipf("no mount namespace can be had here: %v", err)
	}
	for pattern, says := range map[string]string{"libmujoco.so*": "libmujoco2.2.2", "libEGL*.so*": "libegl1"} {
		libs, err := filepath.Glob("/usr/lib/*-linux-gnu/" + pattern)
		if err != nil || len(libs) == 0 {
			t.Fatalf("%s is not installed: %v", pattern, err)
		}
		c := viad(t, "run", "twin-franka.yaml", "--listen", "127.0.0.1:0", "--state-dir", t.TempDir())
		script := `for l in ` + strings.Join(libs, " ") + `; do mount --bind /dev/null "$(readlink -f $l)" || exit 77; done; exec "$@"`
		c.Args = append([]string{"unshare", "-m", "sh", "-c", script, "sh"}, append([]string{c.Path}, c.Args[1:]...)...)
		if c.Path, err = exec.LookPath("unshare"); err != nil {
			t.Fatal(err)
		}
		ends(t, c, ExitStart, "cannot start", says)
	}
}

// The robot's binary must start on a machine that has no physics and no graphics.
func TestBinaryNeedsNeitherPhysicsNorGraphics(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil || len(libs) == 0 {
		t.Fatal(libs, err)
	}
	for _, l := range libs {
		if !strings.HasPrefix(l, "libc.so") && !strings.HasPrefix(l, "libm.so") && !strings.HasPrefix(l, "ld-linux") &&
			!strings.HasPrefix(l, "libpthread.so") && !strings.HasPrefix(l, "libdl.so") {
			t.Errorf("linked hard: %s", l)
		}
	}
}

// process is a daemon in a process of its own, in real time.
type process struct {
	cmd        *exec.Cmd
	url, token string
	state      string
	log        *bytes.Buffer
	rest       chan struct{} // closed when its stdout has ended
}

func launchProcess(t *testing.T, file string) *process {
	t.Helper()
	return launchInto(t, file, nil)
}

// launchInto is launchProcess with a place for its log, nil for p.log.
func launchInto(t *testing.T, file string, log *os.File) *process {
	t.Helper()
	return launchIn(t, file, t.TempDir(), log)
}

// launchIn is launchInto with the state folder of a daemon that was.
func launchIn(t *testing.T, file, state string, log *os.File) *process {
	t.Helper()
	p := &process{state: state, log: &bytes.Buffer{}, rest: make(chan struct{})}
	p.cmd = viad(t, "run", file, "--listen", "127.0.0.1:0", "--state-dir", p.state)
	p.cmd.Stderr = p.log
	if log != nil {
		p.cmd.Stderr = log
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	for in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) == 2 && f[0] == "agents" {
			p.url = f[1]
		}
		if len(f) == 2 && f[0] == "token" {
			p.token = f[1]
		}
		if strings.Contains(in.Text(), "default_tools_approval_mode") {
			break
		}
	}
	go func() {
		defer close(p.rest)
		_, _ = io.Copy(io.Discard, out) // until the process ends
	}()
	if p.url == "" || p.token == "" {
		<-p.rest
		t.Fatalf("viad did not start: %v\n%s", p.cmd.Wait(), p.log)
	}
	return p
}

// untilMoving returns when the robot moves.
func (p *process) untilMoving(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		a, err := operator.Ask(t.Context(), filepath.Join(p.state, socketName), operator.OpStatus)
		if err != nil {
			t.Fatal(err)
		}
		if a.Status.Mode == "moving" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the robot does not begin to move")
		}
	}
}

// denseRecord is a launch file of the arm with a hundred recorded readings a second.
func denseRecord(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dense.yaml")
	text := strings.Replace(shipped(t, "twin-franka.yaml"), "states: 10 Hz ", "states: 100 Hz ", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// reading is a recorded one: when, and the fastest joint, per second.
type reading struct {
	at   time.Time
	fast float64
}

// readings are those that the record holds so far.
func (p *process) readings(t *testing.T) []reading {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "record", "*", "states.jsonl"))
	if err != nil || len(files) == 0 {
		return nil
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var out []reading
	for line := range strings.Lines(string(b)) {
		var s struct {
			Wall time.Time
			QD   []float64
		}
		if json.Unmarshal([]byte(line), &s) != nil {
			break // the last line is being written
		}
		r := reading{at: s.Wall}
		for _, v := range s.QD {
			r.fast = max(r.fast, math.Abs(v))
		}
		out = append(out, r)
	}
	return out
}

// untilFast returns when the robot is seen to move at more than its crawl.
func (p *process) untilFast(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if r := p.readings(t); len(r) > 0 && r[len(r)-1].fast > 5*crawl {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the robot does not begin to move")
		}
	}
}

// stood checks in the record that the robot moved at an instant, and that no joint moved later than most after it.
func (p *process) stood(t *testing.T, what string, since time.Time, most time.Duration) {
	t.Helper()
	var before, end reading
	last := time.Duration(-1)
	for _, r := range p.readings(t) {
		if end = r; r.at.Before(since) {
			before = r
		} else if r.fast >= crawl {
			last = r.at.Sub(since)
		}
	}
	if before.fast < crawl || last > most || end.fast >= crawl {
		t.Errorf("%s: moved at %.3f per second when asked to stop, last faster than %.2f after %v, at the end at %.3f; at most %v is allowed",
			what, before.fast, crawl, last, end.fast, most)
	}
	t.Logf("%s: still moved for %v", what, last.Round(time.Millisecond))
}

// At SIGTERM in the middle of a motion the robot is stopped first, standstill is measured, the record says
// so, and the process ends in peace.
func TestSIGTERMStopsARunningMotion(t *testing.T) {
	p := launchProcess(t, "twin-franka.yaml")
	a := connect(t, p.url, p.token)
	for range 3 {
		a.must("gripper_translate", map[string]any{"d_x": 0.08, "d_y": -0.1})
	}
	moved := make(chan string, 1)
	go func() {
		text, _, _ := a.call("execute_waypoint", nil)
		moved <- text
	}()
	p.untilMoving(t)
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	text := <-moved
	<-p.rest
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, p.log)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if !strings.Contains(text, "stopped, confirmed") {
		t.Errorf("the agent was told: %s", text)
	}
	files, err := filepath.Glob(filepath.Join(p.state, "record", "*", "decisions.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(b), `"result":"stopped_short"`) || !strings.Contains(string(b), `"stop":"stopped, confirmed"`) {
		t.Errorf("%v:\n%s", err, b)
	}
}

// Over stdio the same tools are served; the end of stdin ends the daemon in peace, and nothing but MCP is
// written to stdout.
func TestStdio(t *testing.T) {
	c := viad(t, "stdio", "twin-franka.yaml", "--state-dir", t.TempDir())
	cl, err := mcpgo.NewStdioMCPClient(c.Path, c.Env, c.Args[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	a := hello(t, cl)
	if text, pictures, refused := a.call("screenshot", nil); refused || pictures != 1 {
		t.Error(text)
	}
	a.must("gripper_translate", map[string]any{"d_z": -0.05})
	if text := a.must("execute_waypoint", nil); !strings.Contains(text, "reached") {
		t.Error(text)
	}
	if err := cl.Close(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
}
