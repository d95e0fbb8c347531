package launch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"viad/drivers/geom"
	"viad/ros/rtps"
	"viad/sim"
	simwire "viad/sim/wire"
)

// twinRequest is a line to the control socket of a twin: a verb, and what it is about.
type twinRequest struct {
	Verb string   `json:"verb"`
	Args []string `json:"args,omitempty"`
}

// twinAnswer is the line that comes back for each.
type twinAnswer struct {
	OK    bool       `json:"ok"`
	Error string     `json:"error,omitempty"` // when it is not
	Did   string     `json:"did,omitempty"`   // in words
	Truth *twinTruth `json:"truth,omitempty"` // for truth
}

// twinTruth is sim.Truth on a line: metres, radians, newtons, seconds; poses are in the odometry frame.
type twinTruth struct {
	Time     time.Time           `json:"time"`
	Objects  map[string]twinPose `json:"objects"`
	Joints   map[string]float64  `json:"joints"` // furniture's too
	Q        []float64           `json:"q"`      // the robot's own, in its order
	Tool     twinPose            `json:"tool"`
	Base     [3]float64          `json:"base"` // x, y, yaw
	Aperture float64             `json:"aperture"`
	Contacts []twinContact       `json:"contacts"`
}

type twinPose struct {
	XYZ  [3]float64 `json:"xyz"`
	Quat [4]float64 `json:"quat"` // x, y, z, w
}

type twinContact struct {
	A     string     `json:"a"`
	B     string     `json:"b"`
	Force float64    `json:"force"`
	At    [3]float64 `json:"at"`
}

// twinDesk is what the control socket can do.
type twinDesk struct {
	robot string
	twin  *sim.Twin
	seed  func() uint64                    // for a reset that names none
	fault func(name string, on bool) error // switches one
	stop  func(on bool) error              // presses or releases the robot's own
	link  *cable
	plugs func(pulled bool) error // of its serial ports; nil: it has none
}

// desk is the control of what runs.
func (c *twinCommand) desk(tw *sim.Twin, f face, eyes *simwire.Sensors) *twinDesk {
	var resets atomic.Uint64
	d := &twinDesk{robot: c.Robot, twin: tw, link: c.link, seed: func() uint64 { return uint64(c.Seed) + resets.Add(1) }}
	switch w := f.(type) {
	case *simwire.Stretch:
		d.fault = func(name string, on bool) error { return switchStretch(w, name, on) }
		d.stop = func(on bool) error { w.Runstop(on); return nil }
	case *simwire.Serial:
		d.fault = func(name string, on bool) error { return switchSerial(w, name, on) }
		d.plugs = func(pulled bool) error { return pullAll(w, pulled) }
		d.stop = func(on bool) error { w.Runstop(on); return nil }
	case *simwire.Franka:
		d.fault = func(name string, on bool) error { return switchArm(w, name, on) }
		d.stop = func(on bool) error { return switchArm(w, "user-stop", on) }
	}
	robots := d.fault
	d.fault = func(name string, on bool) error {
		if switchCameras(eyes, name, on) {
			return nil
		}
		return robots(name, on)
	}
	return d
}

// do carries a request out.
func (d *twinDesk) do(ctx context.Context, q twinRequest) twinAnswer {
	a, err := d.try(ctx, q)
	if err != nil {
		return twinAnswer{Error: err.Error()}
	}
	a.OK = true
	return a
}

func (d *twinDesk) try(ctx context.Context, q twinRequest) (twinAnswer, error) {
	switch q.Verb {
	case "truth":
		t := truthOf(d.twin.Truth())
		return twinAnswer{Truth: &t}, wants(q, 0, 0, "")
	case "reset":
		return d.reset(ctx, q)
	case "fault":
		on, err := onOff(q, 1, "NAME on|off")
		if err == nil {
			err = d.fault(q.Args[0], on)
		}
		return twinAnswer{Did: "fault " + strings.Join(q.Args, " ")}, err
	case "cut", "restore":
		if err := wants(q, 0, 0, ""); err != nil {
			return twinAnswer{}, err
		}
		return d.cut(q.Verb == "cut")
	case "runstop", "user-stop":
		on, err := onOff(q, 0, "on|off")
		if err == nil {
			err = d.stop(on)
		}
		return twinAnswer{Did: q.Verb + " " + strings.Join(q.Args, " ")}, err
	}
	return twinAnswer{}, fmt.Errorf("there is no verb %q; there are truth, reset [SEED], fault NAME on|off, cut, restore, and runstop (or user-stop) on|off", q.Verb)
}

// wants refuses another number of arguments than between least and most.
func wants(q twinRequest, least, most int, form string) error {
	if n := len(q.Args); n < least || n > most {
		return fmt.Errorf("%s takes the form %q, not %d arguments", q.Verb, strings.TrimSpace(q.Verb+" "+form), n)
	}
	return nil
}

// onOff reads the argument at i, which is the last.
func onOff(q twinRequest, i int, form string) (bool, error) {
	if err := wants(q, i+1, i+1, form); err != nil {
		return false, err
	}
	switch q.Args[i] {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return false, fmt.Errorf("%s takes on or off, not %q", q.Verb, q.Args[i])
}

func (d *twinDesk) reset(ctx context.Context, q twinRequest) (twinAnswer, error) {
	if err := wants(q, 0, 1, "[SEED]"); err != nil {
		return twinAnswer{}, err
	}
	var seed uint64
	if len(q.Args) == 0 {
		seed = d.seed()
	} else {
		var err error
		if seed, err = strconv.ParseUint(q.Args[0], 10, 64); err != nil {
			return twinAnswer{}, fmt.Errorf("a seed is a whole number of 0 or more, not %q", q.Args[0])
		}
	}
	if err := d.twin.Reset(ctx, seed); err != nil {
		return twinAnswer{}, err
	}
	return twinAnswer{Did: fmt.Sprintf("reset with the seed %d", seed)}, nil
}

func (d *twinDesk) cut(on bool) (twinAnswer, error) {
	if d.robot == "panda" {
		return twinAnswer{}, errors.New("the link of a panda cannot be cut from here: ROS 1 goes over connections of its own; end the roscore, or this process")
	}
	d.link.cut.Store(on)
	if d.plugs != nil {
		if err := d.plugs(on); err != nil {
			return twinAnswer{}, err
		}
	}
	return twinAnswer{Did: map[bool]string{true: "the link is cut: the robot goes on, and nobody hears it", false: "the link is whole"}[on]}, nil
}

// pullAll pulls the plugs of all serial ports, or puts them in again. One that is as it is to be stays so.
func pullAll(w *simwire.Serial, pulled bool) error {
	var errs []error
	for _, port := range simwire.SerialPorts() {
		if pulled {
			errs = append(errs, w.Unplug(port))
		} else {
			errs = append(errs, w.Replug(port))
		}
	}
	return errors.Join(errs...)
}

// cable is the robot's connection to the network.
type cable struct{ cut atomic.Bool }

// wire is what a participant asks for each datagram. Nobody that cannot cut slows it down.
func (c *cable) wire() func(rtps.Datagram) bool {
	if c == nil {
		return nil
	}
	return func(rtps.Datagram) bool { return !c.cut.Load() }
}

func twinPoseOf(p geom.Pose) twinPose {
	return twinPose{[3]float64{p.P.X, p.P.Y, p.P.Z}, [4]float64{p.R.Imag, p.R.Jmag, p.R.Kmag, p.R.Real}}
}

func truthOf(t sim.Truth) twinTruth {
	out := twinTruth{
		Time: t.Time, Objects: map[string]twinPose{}, Joints: t.Joints, Q: t.Q, Tool: twinPoseOf(t.Tool),
		Base: [3]float64{t.Base.X, t.Base.Y, t.Base.Yaw}, Aperture: t.Aperture, Contacts: []twinContact{},
	}
	for name, p := range t.Objects {
		out.Objects[name] = twinPoseOf(p)
	}
	for _, c := range t.Contacts {
		out.Contacts = append(out.Contacts, twinContact{c.A, c.B, c.Force, [3]float64{c.At.X, c.At.Y, c.At.Z}})
	}
	return out
}

// twinSocket is the control socket of a running twin.
type twinSocket struct {
	l    *net.UnixListener
	desk *twinDesk
}

// listenTwin opens the socket, for the user's own processes alone. One that nobody answers is a leftover.
func listenTwin(ctx context.Context, path string, d *twinDesk) (*twinSocket, error) {
	other := net.Dialer{Timeout: time.Second}
	if c, err := other.DialContext(ctx, "unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("another twin answers at %s: end it first, or name another file", path), c.Close())
	}
	switch info, err := os.Lstat(path); {
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is a file and no socket: name another", path)
	case err == nil:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("cannot replace the old control socket: %w", err)
		}
	}
	old := syscall.Umask(0o177) // born closed to others
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("cannot open the control socket: %w", err)
	}
	return &twinSocket{l, d}, nil
}

// Run serves until ctx ends, then closes the socket and every connection.
func (s *twinSocket) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	unhook := context.AfterFunc(ctx, func() { _ = s.l.Close() }) // the accept below sees it
	defer unhook()
	for {
		c, err := s.l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil // closed on purpose
			}
			return fmt.Errorf("control socket: %w", err)
		}
		wg.Go(func() { s.serve(ctx, c) })
	}
}

// controlLine is the longest request, in bytes.
const controlLine = 64 << 10

// serve answers one connection's lines in order.
func (s *twinSocket) serve(ctx context.Context, c net.Conn) {
	defer func() { _ = c.Close() }() // who asked has gone or has its answers
	unhook := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer unhook()
	in, out := bufio.NewScanner(c), json.NewEncoder(c)
	in.Buffer(make([]byte, 4096), controlLine)
	for in.Scan() {
		var q twinRequest
		a := twinAnswer{}
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			a.Error = fmt.Sprintf("a line is %s: %v", `{"verb": "fault", "args": ["stale-hand", "on"]}`, err)
		} else {
			a = s.desk.do(ctx, q)
		}
		if out.Encode(a) != nil {
			return // it has hung up
		}
	}
}

// twinControlCommand speaks to a running twin's control socket.
type twinControlCommand struct {
	Socket string   `arg:"" help:"The file that viad twin was given with --control." type:"path"`
	Verb   string   `arg:"" help:"truth, reset, fault, cut, restore, runstop or user-stop."`
	Args   []string `arg:"" optional:"" help:"reset: a seed. fault: a name, and on or off. runstop, user-stop: on or off."`
}

// Run sends one request and prints its answer.
func (c *twinControlCommand) Run(ctx context.Context, s streams) error {
	a, err := askTwin(ctx, c.Socket, twinRequest{c.Verb, c.Args})
	switch {
	case err != nil:
		return err
	case !a.OK:
		return errors.New(a.Error)
	case a.Truth != nil:
		out := json.NewEncoder(s.out)
		out.SetIndent("", "  ")
		return out.Encode(a.Truth)
	}
	_, err = fmt.Fprintln(s.out, a.Did)
	return err
}

// askTwin sends a request to a control socket and reads the answer.
func askTwin(ctx context.Context, socket string, q twinRequest) (a twinAnswer, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return a, fmt.Errorf("no twin answers at %s (start one with viad twin ROBOT --control %s): %w", socket, socket, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	unhook := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer unhook()
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return a, fmt.Errorf("ask the twin: %w", err)
	}
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return a, fmt.Errorf("the twin's answer: %w", err)
	}
	return a, nil
}
