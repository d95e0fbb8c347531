package kill

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"viad/interface/operator"
)

// What is killed.
const (
	daemonKilled  = "daemon killed"
	daemonStopped = "daemon stopped"
	linkCut       = "link cut"
	linkSilent    = "link silent"
	bridgeGone    = "bridge gone"
	actionGone    = "action server gone"
	driverGone    = "robot's driver gone"
	coreKilled    = "roscore killed"

	armUnplugged   = "lift's port unplugged"
	wheelUnplugged = "a wheel's port unplugged"
	allUnplugged   = "all ports unplugged"
)

// kill is one thing that dies and comes back.
type kill struct {
	name string
	does func(s *scene) error
	back func(s *scene) error
	says []string // all of these are in what the daemon says of the motion; none: it cannot say anything
	lost bool     // the daemon's status says that the robot is not there
}

// kills are those of a cell.
func (c cell) kills() []kill {
	list := []kill{
		{daemonKilled, func(s *scene) error { return s.signal(syscall.SIGKILL) }, (*scene).restart, nil, false},
		{daemonStopped, func(s *scene) error { return s.signal(syscall.SIGSTOP) }, func(s *scene) error { return s.signal(syscall.SIGCONT) }, []string{"held up"}, false},
	}
	if c.wire == "serial" {
		return append(list, unplugged(armUnplugged, "hello-motor-lift"), unplugged(wheelUnplugged, "hello-motor-omni-1"), unplugged(allUnplugged, ports()...))
	}
	list = append(list,
		kill{actionGone, func(s *scene) error { return s.robot.node.die() }, func(s *scene) error { return s.robot.node.revive() }, []string{"follow_joint_trajectory"}, false},
		kill{driverGone, func(s *scene) error { return s.robot.down() }, func(s *scene) error { return s.robot.up() }, []string{"look"}, true})
	silent := func(on bool) func(*scene) error {
		return func(s *scene) error { s.robot.mute.Store(on); return nil }
	}
	cable := func(state string) func(*scene) error {
		return func(s *scene) error { s.robot.bridge.cable.set(state); return nil }
	}
	switch c.wire {
	case "dds":
		list = append(list, kill{linkSilent, silent(true), silent(false), []string{"look"}, true})
	case "rosbridge":
		list = append(list,
			kill{linkCut, cable("cut"), cable(""), []string{"look"}, true},
			kill{linkSilent, cable("silent"), cable(""), []string{"look"}, true},
			kill{bridgeGone, func(s *scene) error { return s.robot.bridge.down() }, func(s *scene) error { return s.robot.bridge.up() }, []string{"look"}, true})
	case "ros1":
		list = append(list, kill{coreKilled, func(s *scene) error { return s.robot.core.kill() }, func(s *scene) error { return s.robot.core.up() }, []string{"master"}, true})
	}
	return list
}

// ports are the serial ports of a Stretch 4.
func ports() []string {
	return []string{
		"hello-motor-lift", "hello-motor-arm", "hello-motor-omni-0", "hello-motor-omni-1", "hello-motor-omni-2",
		"hello-power-periph", "hello-feetech-wrist",
	}
}

// unplugged pulls serial ports, and puts them back.
func unplugged(name string, ports ...string) kill {
	each := func(f func(s *scene) func(port string) error) func(*scene) error {
		return func(s *scene) error {
			var errs []error
			for _, p := range ports {
				errs = append(errs, f(s)(p))
			}
			return errors.Join(errs...)
		}
	}
	return kill{
		name, each(func(s *scene) func(string) error { return s.robot.boards.Unplug }),
		each(func(s *scene) func(string) error { return s.robot.boards.Replug }),
		[]string{ports[0]},
		true,
	}
}

// scene is one robot and one daemon.
type scene struct {
	t     *testing.T // of the case that runs
	robot *machine
	file  string
	state string
	d     *daemon
	turn  int // of the way: to and fro
}

func TestKill(t *testing.T) {
	for _, c := range cells() {
		var todo []kill
		for _, k := range c.kills() {
			if wanted(c.name, k.name) {
				todo = append(todo, k)
			}
		}
		if len(todo) == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, c)
			for _, k := range todo {
				if !t.Run(k.name, func(t *testing.T) { s.t = t; s.carryOut(k) }) {
					s.anew(t)
				}
			}
		})
	}
}

func newScene(t *testing.T, c cell) *scene {
	t.Helper()
	m, set := c.start(t)
	s := &scene{t: t, robot: m, file: launchFile(t, c.file, set), state: t.TempDir(), turn: 1}
	s.d = startDaemon(t, s.file, s.state)
	t.Cleanup(func() { s.end() })
	s.d.ready(t, time.Minute)
	return s
}

// end ends the daemon.
func (s *scene) end() {
	s.d.hangUp()
	_ = s.d.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.d.cmd.Process.Signal(syscall.SIGTERM)
	over := time.AfterFunc(20*time.Second, func() { _ = s.d.cmd.Process.Kill() })
	<-s.d.rest
	_ = s.d.cmd.Wait()
	over.Stop()
}

// anew lets a case that failed be none of the next one's business.
func (s *scene) anew(t *testing.T) {
	t.Helper()
	s.end()
	if err := errors.Join(s.robot.down(), s.robot.up()); err != nil { // also out of a reflex, or a runstop
		t.Fatal(err)
	}
	s.d = startDaemon(t, s.file, s.state)
	s.d.ready(t, time.Minute)
}

func (s *scene) signal(what syscall.Signal) error { return s.d.cmd.Process.Signal(what) }

// restart is what systemd does.
func (s *scene) restart() error {
	s.d.gone()
	s.d = startDaemon(s.t, s.file, s.state)
	return nil
}

// told is what became of a call.
type told struct {
	text string
	err  error
}

// carryOut is one case.
func (s *scene) carryOut(k kill) {
	t := s.t
	s.d.ready(t, 30*time.Second)
	s.d.arm(t)
	track, answer := s.begin()
	killed := time.Now()
	if err := k.does(s); err != nil {
		t.Fatal(err)
	}
	fast := track.speed(killed)

	bound := s.robot.deadman()
	<-time.After(bound + 2*time.Second)
	h := track.halted(killed)
	switch {
	case fast < 0.03:
		t.Errorf("the tool moved at %.3f m/s when it happened: that was not in mid-motion", fast)
	case h.own > bound:
		t.Errorf("the robot: %v, the driver states %v", h, bound)
	}
	halted := time.Now()
	var what told
	var status operator.Status
	if k.name != daemonKilled && k.name != daemonStopped {
		what, status = s.heard(answer, killed)
	}
	if err := k.back(s); err != nil {
		t.Fatal(err)
	}
	if k.name == daemonKilled || k.name == daemonStopped {
		what = <-answer
	}
	back := s.d.ready(t, 30*time.Second)
	<-time.After(time.Second)
	most := settling
	if k.name == driverGone {
		most = handedOver
	}
	if by, who := track.moved(halted); by > most {
		t.Errorf("%s moved by %.4f after the halt, with nobody asking for it", who, by)
	}
	track.end()
	did := s.d.arm(t)
	s.again()
	text := s.says(k, what)
	t.Logf("%-18s %-24s %.2f m/s, %v of %d, coasted %3.0f mm, ready %.1f s after, %s. Told: %s", s.robot.name, k.name, fast, h, bound.Milliseconds(),
		h.coasted*1e3, back.Seconds(), did, text)
	if k.lost && (status.Mode == "ready" || status.Fault == "") {
		t.Errorf("its status while the robot is away: %s, %q", status.Mode, status.Fault)
	}
}

// begin begins a motion and returns in the midst of it. One that a late reading refuses, as on a computer that is busy
// otherwise, is begun anew.
func (s *scene) begin() (*track, chan told) {
	s.t.Helper()
	for try := 1; ; try++ {
		s.stageFar()
		k := follow(s.t, s.robot.twin)
		answer := make(chan told, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
			defer cancel()
			text, _, err := s.d.call(ctx, "execute_waypoint", none{})
			answer <- told{text, err}
		}()
		what := k.went(0.06, answer)
		if what == nil {
			return k, answer
		}
		k.end()
		if try == 3 {
			s.t.Fatalf("the motion does not begin: %v %s", what.err, what.text)
		}
	}
}

// heard waits for the daemon's answer while what was killed is dead, and asks for its status.
func (s *scene) heard(answer chan told, killed time.Time) (what told, status operator.Status) {
	s.t.Helper()
	select {
	case what = <-answer:
	case <-time.After(30 * time.Second):
		s.t.Errorf("no answer %v after it", time.Since(killed).Round(time.Second))
	}
	a, err := s.d.ask(s.t.Context(), operator.OpStatus)
	if err != nil {
		s.t.Error(err)
		return what, status
	}
	return what, *a.Status
}

// says checks what the daemon says of the motion.
func (s *scene) says(k kill, w told) string {
	s.t.Helper()
	if k.says == nil {
		if w.err == nil {
			s.t.Errorf("a dead daemon answered: %s", w.text)
		}
		return "the call broke off"
	}
	if w.err != nil {
		s.t.Errorf("the call: %v", w.err)
		return ""
	}
	for _, words := range k.says {
		if !strings.Contains(w.text, words) {
			s.t.Errorf("it does not say %q: %s", words, w.text)
		}
	}
	return sentence(w.text)
}

// sentence is what the answer to an execute says of the outcome, without its numbers.
func sentence(text string) string {
	if _, rest, ok := strings.Cut(text, `"why":"`); ok { // the JSON of the 2d face
		text, _, _ = strings.Cut(rest, `"`)
	}
	text, _, _ = strings.Cut(text, "ordered:")
	text, _, _ = strings.Cut(text, " The pictures are")
	return strings.Join(strings.Fields(text), " ")
}

type none struct{}

type by struct {
	X float64 `json:"d_x"`
	Y float64 `json:"d_y"`
	Z float64 `json:"d_z"`
}

type byMetres struct {
	X float64 `json:"dx_m"`
	Y float64 `json:"dy_m"`
	Z float64 `json:"dz_m"`
}

// must is a call that may not be refused.
func (s *scene) must(tool string, args any) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	text, refused, err := s.d.call(ctx, tool, args)
	if err != nil || refused {
		s.t.Fatalf("%s: %v %s\n%s", tool, err, text, s.d.log)
	}
	return text
}

// stageFar stages a motion of some seconds at full speed, to and fro: of a Stretch with its base, lift and arm.
func (s *scene) stageFar() {
	s.t.Helper()
	s.turn = -s.turn
	way := float64(s.turn)
	if s.robot.mobile() {
		s.must("reset_target", none{})
		s.must("ee_robot_centric_translate", byMetres{Y: 0.4 * way, Z: 0.2 * way})
		return
	}
	s.must("gripper_reset", none{})
	for range 4 {
		s.must("gripper_translate", by{Y: 0.1 * way})
	}
}

// again is a small motion, which must reach its end. Where a late reading refuses it or ends it, as on a computer that is
// busy otherwise, it is tried anew.
func (s *scene) again() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for try := 1; ; try++ {
		up := 0.03 * float64(s.turn)
		if s.robot.mobile() {
			s.must("observe", none{})
			s.must("reset_target", none{})
			s.must("ee_robot_centric_translate", byMetres{Z: up})
		} else {
			s.must("screenshot", none{})
			s.must("gripper_reset", none{})
			s.must("gripper_translate", by{Z: up})
		}
		text, refused, err := s.d.call(ctx, "execute_waypoint", none{})
		if err == nil && !refused && strings.Contains(text, "reached") {
			return
		}
		if err != nil || try == 3 || !refused && !strings.Contains(text, "stopped_short") {
			s.t.Errorf("the next motion, try %d: %v %s", try, err, text)
			return
		}
	}
}
