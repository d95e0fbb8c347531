package launch

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"viad/interface/operator"
)

// instant is where the twin truly was at one time.
type instant struct {
	wall, phys time.Time
	x          []float64 // joints, and the base's x, y and yaw
}

// tracker watches the twin's true joints, behind safety's back.
type tracker struct {
	quit, done chan struct{}
	moves      chan struct{} // closed once it has seen them move
	seen       []instant
}

// trackMoving samples until rest is called, which also ends with the test. It returns when its own samples show that
// the robot moves: whatever is done then is done to a robot that this watcher has seen moving.
func (d *daemon) trackMoving() *tracker {
	d.t.Helper()
	k := &tracker{quit: make(chan struct{}), done: make(chan struct{}), moves: make(chan struct{})}
	go func() {
		defer close(k.done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for moves := false; ; {
			select {
			case <-k.quit:
				return
			case now := <-tick.C:
				t := d.Twin().Truth()
				if t.Time.IsZero() { // it is closed
					continue
				}
				k.seen = append(k.seen, instant{now, t.Time, append(t.Q, t.Base.X, t.Base.Y, t.Base.Yaw)})
				if fast, _ := k.speed(len(k.seen) - 1); fast > 2*crawl && !moves {
					moves = true
					close(k.moves)
				}
			}
		}
	}()
	d.t.Cleanup(k.end)
	select {
	case <-k.moves:
	case <-time.After(30 * time.Second):
		d.t.Fatal("the robot does not begin to move")
	}
	return k
}

func (k *tracker) end() {
	select {
	case <-k.quit:
	default:
		close(k.quit)
	}
	<-k.done
}

// crawl is slower than any commanded motion and faster than the sway of a robot that holds its pose, per second.
const crawl = 0.02

// speed is that of the fastest joint at sample i: a difference over at least 20 ms of physics.
func (k *tracker) speed(i int) (fast float64, ok bool) {
	b, j := k.seen[i], i
	for j > 0 && b.phys.Sub(k.seen[j].phys) < 20*time.Millisecond {
		j--
	}
	dt := b.phys.Sub(k.seen[j].phys).Seconds()
	if dt < 0.02 {
		return 0, false
	}
	for n := range b.x {
		fast = max(fast, math.Abs(b.x[n]-k.seen[j].x[n])/dt)
	}
	return fast, true
}

// rest ends the watching and says how long after an instant, on the wall and in physics, the last joint still moved,
// and whether any did before.
func (k *tracker) rest(since time.Time) (wall, phys time.Duration, moved bool) {
	k.end()
	var from instant
	for i, b := range k.seen {
		if from.x == nil && !b.wall.Before(since) {
			from = b
		}
		fast, ok := k.speed(i)
		switch {
		case !ok || fast < crawl:
		case b.wall.Before(since):
			moved = true
		default:
			wall, phys = b.wall.Sub(since), b.phys.Sub(from.phys)
		}
	}
	return wall, phys, moved
}

// stopTimes checks that a robot that moved at an instant stood still within most, and keeps the figures.
func (k *tracker) stopTimes(t *testing.T, what string, since time.Time, most time.Duration) {
	t.Helper()
	wall, phys, moved := k.rest(since)
	if !moved {
		t.Errorf("%s: the robot did not move before the stop", what)
	}
	if wall > most || phys > most {
		t.Errorf("%s: it moved for another %v of physics, %v of wall time; at most %v is allowed", what, phys, wall, most)
	}
	t.Logf("%s: still moved for %v of physics, %v of wall time", what, phys.Round(time.Millisecond), wall.Round(time.Millisecond))
}

// built is what TestMain removes.
var built []string

// viactlBinary builds the operator's tool once.
var viactlBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "viactl-test-")
	if err != nil {
		return "", err
	}
	built = append(built, dir)
	path := filepath.Join(dir, "viactl")
	c := exec.Command("go", "build", "-o", path, "viad/cmd/viactl")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// viactl runs the operator's tool as a person does.
func (d *daemon) viactl(args ...string) (string, error) {
	d.t.Helper()
	path, err := viactlBinary()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := exec.CommandContext(d.t.Context(), path, append(args, "--socket", d.desk.Path())...).CombinedOutput()
	return string(out), err
}

// farOn stages a motion that takes some seconds.
func farOn(file string, a *agent) {
	if file == "twin-franka.yaml" {
		far(a)
		return
	}
	a.must("nav_translate", map[string]any{"dx_m": 0.4, "dy_m": 0})
}

// realTime lets the twin keep the wall clock's pace.
func realTime(c *Config) { c.Robot.Pace = "real" }

// From each of the places that a stop can come from, a running goal ends at once.
func TestStopFromEveryPlace(t *testing.T) {
	change, tokens := people(t, "driver ann", "watcher will", "operator olga")
	if _, err := viactlBinary(); err != nil { // built before anything is timed
		t.Fatal(err)
	}
	for _, file := range []string{"twin-franka.yaml", "twin-stretch4.yaml"} {
		for place, stop := range map[string]func(*testing.T, *daemon) string{
			"the stop tool, of a watcher": func(t *testing.T, d *daemon) string {
				w := connect(t, d.MCP(), tokens["watcher will"])
				return w.must("stop", nil)
			},
			"the page, of a watcher": func(_ *testing.T, d *daemon) string {
				return d.page(tokens["watcher will"]).act("stop").Note
			},
			"a script with a token": func(t *testing.T, d *daemon) string {
				b := &browser{t, strings.TrimSuffix(d.MCP(), "/mcp"), http.DefaultClient}
				return b.post("stop", http.Header{"Authorization": {"Bearer " + tokens["watcher will"]}}).Note
			},
			"viactl stop": func(t *testing.T, d *daemon) string {
				out, err := d.viactl("stop")
				if err != nil {
					t.Error(err)
				}
				return out
			},
			"viactl estop": func(t *testing.T, d *daemon) string {
				out, err := d.viactl("estop")
				if err != nil || d.guard.Latched() == "" {
					t.Errorf("%v, latched: %q", err, d.guard.Latched())
				}
				return out
			},
			"viactl disarm": func(t *testing.T, d *daemon) string {
				_, err := d.viactl("disarm")
				if err != nil || d.guard.Status().Armed {
					t.Errorf("%v, armed: %t", err, d.guard.Status().Armed)
				}
				return "stopped, confirmed"
			},
			"SIGTERM": func(t *testing.T, d *daemon) string {
				if err := d.end(); err != nil { // what the signal does; that it does is TestSIGTERMStopsARunningMotion
					t.Error(err)
				}
				return "stopped, confirmed"
			},
		} {
			t.Run(file+", "+place, func(t *testing.T) {
				if file != "twin-franka.yaml" && (testing.Short() || place == "a script with a token" || place == "viactl disarm") {
					t.Skip("the other robot from the four places, in the long form")
				}
				d := start(t, file, func(c *Config) { change(c); realTime(c) })
				a := connect(t, d.MCP(), tokens["driver ann"])
				farOn(file, a)
				told := make(chan string, 1)
				go func() {
					text, _, _ := a.call("execute_waypoint", nil)
					told <- text
				}()
				k := d.trackMoving()
				asked := time.Now()
				said := stop(t, d)
				if !strings.Contains(said, "stopped, confirmed") {
					t.Errorf("it says %q", said)
				}
				if text := <-told; !strings.Contains(text, "stopped, confirmed") || strings.Contains(text, ": reached") {
					t.Errorf("the driver is told: %s", text)
				}
				k.stopTimes(t, place, asked, time.Second)
			})
		}
	}
}

// hung is a listener that takes no connection any more once it is shut.
type hung struct {
	net.Listener
	shut, closed chan struct{}
}

func (h *hung) Accept() (net.Conn, error) {
	for {
		select {
		case <-h.shut:
			<-h.closed
			return nil, net.ErrClosed
		default:
		}
		c, err := h.Listener.Accept()
		select {
		case <-h.shut:
			if err == nil {
				_ = c.Close()
			}
		default:
			return c, err
		}
	}
}

func (h *hung) Close() error {
	select {
	case <-h.closed:
	default:
		close(h.closed)
	}
	return h.Listener.Close()
}

// With the network's door hung, the operator's socket still stops; with it gone, the daemon stops the robot itself.
func TestStopWithoutHTTP(t *testing.T) {
	for _, op := range []string{"stop", "estop"} {
		t.Run("hung, viactl "+op, func(t *testing.T) {
			h := &hung{shut: make(chan struct{}), closed: make(chan struct{})}
			d := startWith(t, "twin-franka.yaml", realTime, func(s *System) { h.Listener, s.listener = s.listener, h }, nil)
			told := moveOn(d)
			k := d.trackMoving()
			close(h.shut)
			// Forty clients that are never answered, as when the door is flooded.
			for range 40 {
				c, err := net.Dial("tcp", d.Addr())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.Addr()+"/page.css", nil)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := (&http.Transport{}).RoundTrip(req); err == nil {
				t.Fatalf("HTTP answers: %d", r.StatusCode)
			}
			asked := time.Now()
			if out, err := d.viactl(op); err != nil || !strings.Contains(out, "stopped, confirmed") {
				t.Errorf("%v: %s", err, out)
			}
			k.stopTimes(t, op, asked, time.Second)
			<-told
		})
	}
	t.Run("gone", func(t *testing.T) {
		d := start(t, "twin-franka.yaml", realTime)
		told := moveOn(d)
		k := d.trackMoving()
		asked := time.Now()
		if err := d.listener.Close(); err != nil {
			t.Fatal(err)
		}
		<-told
		if err := d.end(); err == nil || !strings.Contains(err.Error(), "http") {
			t.Errorf("the daemon ends with %v", err)
		}
		k.stopTimes(t, "listener gone", asked, time.Second)
	})
}

// moveOn starts a motion of seconds and returns where its result comes.
func moveOn(d *daemon) <-chan string {
	d.t.Helper()
	a := connect(d.t, d.MCP(), d.Token())
	far(a)
	told := make(chan string, 1)
	go func() {
		text, _, _ := a.call("execute_waypoint", nil)
		told <- text
	}()
	return told
}

// A stop does not wait behind a goal, a status, a flood of other requests or one another.
func TestManyStopsAtOnce(t *testing.T) {
	d := start(t, "twin-franka.yaml", realTime)
	told := moveOn(d)
	k := d.trackMoving()
	asked := time.Now()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := operator.Ask(t.Context(), d.desk.Path(), operator.OpStatus); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if a, err := operator.Ask(t.Context(), d.desk.Path(), operator.OpStop); err != nil || a.Note != "stopped, confirmed" {
				t.Error(a, err)
			}
		})
		wg.Go(func() {
			if a := d.page(d.Token()).act("stop"); !a.OK {
				t.Errorf("%+v", a)
			}
		})
	}
	wg.Wait()
	<-told
	k.stopTimes(t, "twenty stops", asked, time.Second)
}

// The signal itself, on the process itself, in the process's own record of what was measured.
func TestSIGTERMWithinASecond(t *testing.T) {
	p := launchProcess(t, denseRecord(t))
	a := connect(t, p.url, p.token)
	far(a)
	told := make(chan string, 1)
	go func() {
		text, _, _ := a.call("execute_waypoint", nil)
		told <- text
	}()
	p.untilFast(t)
	asked := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if text := <-told; !strings.Contains(text, "stopped, confirmed") {
		t.Errorf("the agent was told: %s", text)
	}
	<-p.rest
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("exit: %v\n%s", err, p.log)
	}
	p.stood(t, "SIGTERM", asked, time.Second)
}
