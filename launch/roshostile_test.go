package launch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/interop"
	"viad/ros/msg/all"
	"viad/ros/rosbridge/local"
	"viad/ros/rosbridge/server"
	"viad/ros/rtps"
)

func rosDomain(t *testing.T) int {
	t.Helper()
	d, release, err := interop.Domain()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return d
}

// rosStranger announces topics with names that no ROS program would take.
func rosStranger(t *testing.T, domain int) {
	t.Helper()
	p, err := rtps.Open(rtps.Config{Domain: domain, Localhost: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	w, err := p.NewWriter(rtps.WriterConfig{
		Topic: "rt/other", Type: "std_msgs::msg::dds_::String_", QoS: rtps.QoS{Reliable: true, TransientLocal: true, Depth: 1},
		UserData: []byte("typehash=RIHS01_" + strings.Repeat("0", 64) + ";"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(t.Context(), []byte{0, 1, 0, 0, 2, 0, 0, 0, 'x', 0}, nil); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"rt//", "rt/red\x1b[31m\x1b[2J", "rt/two\nlines\tand tabs", "rt/bad\xff\xfe", "rt/\u202eback", "rt/" + strings.Repeat("long", 250)} {
		w, err := p.NewWriter(rtps.WriterConfig{Topic: topic, Type: "std_msgs::msg::dds_::String_", QoS: rtps.QoS{Depth: 1}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
	}
}

// What others call themselves is printed as text that a terminal shows and does not obey, and stops no command.
func TestRosNamesOfStrangers(t *testing.T) {
	domain := rosDomain(t)
	rosRobot(t, domain, cdr.Humble)
	rosStranger(t, domain)
	for _, args := range []string{"topic list", "topic list --json", "doctor --wait 1s", "topic echo /red"} {
		code, out, complaints := viadROS(t, domain, strings.Fields(args)...)
		if want := map[bool]int{true: ExitOK, false: ExitFailed}[strings.HasPrefix(args, "topic list")]; code != want {
			t.Errorf("%s: exit code %d, want %d:\n%s", args, code, want, complaints)
		}
		for _, r := range strings.ReplaceAll(out+complaints, "\n", "") {
			if r < ' ' || r == 0x7f || r == '\u202e' && !strings.Contains(args, "json") {
				t.Errorf("%s prints %U in\n%q", args, r, out+complaints)
				break
			}
		}
		if strings.HasPrefix(args, "doctor") && (!strings.Contains(out, "/lab/robot") || !strings.Contains(out, `the name "//" has an empty part`)) {
			t.Errorf("the doctor says\n%s%s", out, complaints)
		}
		for l := range strings.Lines(out + complaints) {
			if len(l) > 600 && !strings.Contains(args, "json") {
				t.Errorf("%s prints a line of %d bytes", args, len(l))
			}
		}
		if args == "topic list" && !strings.Contains(out, `/red\x1b[31m\x1b[2J  `) {
			t.Errorf("the list is\n%s", out)
		}
	}
}

// What is printed by a definition that is not the publisher's comes with a warning.
func TestRosEchoOfAnotherDefinition(t *testing.T) {
	domain := rosDomain(t)
	rosStranger(t, domain)
	code, out, complaints := viadROS(t, domain, "topic", "echo", "/other", "-n", "1")
	if code != ExitOK || !strings.Contains(out, "data: x") || !strings.Contains(complaints, "another definition of std_msgs/msg/String") {
		t.Errorf("exit code %d: %s%s", code, out, complaints)
	}
}

// Every command that takes --json prints JSON with it.
func TestRosJSON(t *testing.T) {
	domain, empty := rosDomain(t), rosDomain(t)
	rosRobot(t, domain, cdr.Humble)
	for _, args := range []string{
		"topic list", "topic info /joint_states", "topic echo /joint_states -n 2", "topic hz /joint_states --for 2s", "node list", "service list",
		"service call /runstop {}", "action list", "param list /lab/robot", "param get /lab/robot speed", "param set /lab/robot speed 0.5", "doctor --wait 1s",
	} {
		code, out, complaints := viadROS(t, domain, append(strings.Fields(args), "--json")...)
		if code != ExitOK || out == "" {
			t.Errorf("%s: exit code %d: %s", args, code, complaints)
		}
		d := json.NewDecoder(strings.NewReader(out))
		for {
			var v any
			if err := d.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v in\n%s", args, err, out)
				break
			}
		}
	}
	// Nobody is no success, whatever the form.
	for _, args := range []string{"topic list", "node list", "service list", "action list", "doctor"} {
		code, out, complaints := viadROS(t, empty, append(strings.Fields(args), "--json", "--wait", "300ms")...)
		if code != ExitFailed || !json.Valid([]byte(out)) || complaints == "" {
			t.Errorf("%s with nobody: exit code %d, %q, %q", args, code, out, complaints)
		}
	}
}

// brokenOutput takes some bytes, and no more.
type brokenOutput struct {
	left int
	err  error
}

func (o *brokenOutput) Write(b []byte) (int, error) {
	if o.left -= len(b); o.left < 0 {
		return 0, o.err
	}
	return len(b), nil
}

// A command ends with its output: quietly when its reader has seen enough, and not as if all were well when a disk is full.
func TestRosOutputBreaks(t *testing.T) {
	domain := rosDomain(t)
	rosRobot(t, domain, cdr.Humble)
	for _, args := range []string{"topic list", "topic echo /joint_states", "topic hz /joint_states", "node list", "service list", "service call /runstop {}", "action list", "param list /lab/robot", "param get /lab/robot speed", "doctor --wait 1s"} {
		for _, full := range []bool{false, true} {
			out := &brokenOutput{err: &os.PathError{Op: "write", Path: "/dev/stdout", Err: pipeOrFull(full)}}
			if !full && strings.Contains(args, "echo") {
				out.left = 100
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			var complaints strings.Builder
			code := run(ctx, append(append([]string{"ros"}, strings.Fields(args)...), "--localhost", "--domain", strconv.Itoa(domain)), streams{strings.NewReader(""), out, &complaints})
			if ctx.Err() != nil {
				t.Errorf("%s (full: %v) goes on", args, full)
			}
			cancel()
			if !full && (code != ExitOK || complaints.Len() > 0) || full && (code != ExitFailed || !strings.Contains(complaints.String(), "no space left")) {
				t.Errorf("%s (full: %v): exit code %d, %q", args, full, code, complaints.String())
			}
		}
	}
}

// What is interrupted in the middle has not succeeded; what goes on until it is interrupted has.
func TestRosInterrupted(t *testing.T) {
	domain, empty := rosDomain(t), rosDomain(t)
	rosRobot(t, domain, cdr.Humble)
	for args, want := range map[string]int{
		"topic echo /joint_states": ExitOK, "topic hz /joint_states": ExitOK, "topic list --wait 10s": ExitFailed,
		"topic echo /nothing --wait 10s": ExitFailed, "param get /nobody x --wait 10s": ExitFailed,
	} {
		in := domain
		if want != ExitOK {
			in = empty
		}
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(1500*time.Millisecond, cancel)
		var out, complaints strings.Builder
		code := run(ctx, append(append([]string{"ros"}, strings.Fields(args)...), "--localhost", "--domain", strconv.Itoa(in)), streams{strings.NewReader(""), &out, &complaints})
		timer.Stop()
		cancel()
		if code != want || want != ExitOK && !strings.Contains(complaints.String(), "interrupted") {
			t.Errorf("%s: exit code %d, want %d: %s", args, code, want, complaints.String())
		}
	}
}

// A rosbridge without rosapi cannot say what there is, which is not the same as that there is nothing.
func TestRosWithoutRosapi(t *testing.T) {
	n := local.NewGraph().Node("/rosbridge_websocket")
	t.Cleanup(func() { n.Close() })
	srv, err := server.NewServer(server.Options{Node: n, Types: all.New, Distro: cdr.Jazzy, Caveats: server.Caveats{NoRosapi: true}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(srv)
	t.Cleanup(func() { srv.Close(); h.Close() })
	for _, args := range []string{"topic list", "node list --json", "service list", "action list", "doctor"} {
		code, out, complaints := viadROS(t, 0, append(strings.Fields(args), "--wire", "rosbridge", "--url", "ws"+strings.TrimPrefix(h.URL, "http"), "--wait", "1s")...)
		if code != ExitFailed || !strings.Contains(out+complaints, "rosapi_node") {
			t.Errorf("%s: exit code %d: %s%s", args, code, out, complaints)
		}
	}
}

func TestRosPeerOfNoName(t *testing.T) {
	code, _, complaints := viadROS(t, 0, "topic", "list", "--peer", "nobody.invalid", "--wait", "2s")
	if code != ExitFailed || !strings.Contains(complaints, "the peer nobody.invalid") {
		t.Errorf("exit code %d: %s", code, complaints)
	}
}

func TestRosDoctorWithoutNetwork(t *testing.T) {
	c := &rosDoctor{}
	for _, x := range []struct {
		interfaces []string
		want       string
	}{{nil, "no network interface"}, {[]string{"lo 127.0.0.1/8"}, "only the loopback"}, {[]string{"eth0 10.0.0.1/24"}, "nobody answers in domain"}} {
		c.Wire = "dds"
		if got := c.troubles(ros.Graph{}, &doctorReport{Interfaces: x.interfaces}); len(got) == 0 || !strings.Contains(got[0], x.want) {
			t.Errorf("%q: %q", x.interfaces, got)
		}
	}
}

func TestRosNumbersOutOfRange(t *testing.T) {
	for _, args := range []string{"topic list --wait 0s", "topic list --wait=-1s", "topic echo /x --count=-1", "topic hz /x --for=-1s", "doctor --listen=-1s"} {
		code, _, complaints := viadROS(t, 0, strings.Fields(args)...)
		flag := strings.FieldsFunc(args[strings.Index(args, "--"):], func(r rune) bool { return r == '=' || r == ' ' })[0]
		if code != ExitUsage || !strings.Contains(complaints, flag+" is ") {
			t.Errorf("%s: exit code %d, %s", args, code, complaints)
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"/joint_states": "/joint_states", "größer °": "größer °", "": "", "\x1b[2J": `\x1b[2J`, "a\nb\tc": `a\nb\tc`, "\xff": `\xff`, `a"b\`: `a"b\`, "a\u202eb": `a\u202eb`, "\x00": `\x00`, "�": "�",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) is %q, not %q", in, got, want)
		}
	}
}

func pipeOrFull(full bool) error {
	if full {
		return syscall.ENOSPC
	}
	return syscall.EPIPE
}
