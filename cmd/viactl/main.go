// Command viactl is the operator's light tool. It speaks to a running viad over its Unix socket, needs no
// network and no token, and links no C: it starts in milliseconds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"viad/interface/operator"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// Exit codes: 0 done, 1 the daemon said no, 2 bad usage, 3 no daemon answered.
const (
	exitOK = iota
	exitRefused
	exitUsage
	exitSilent
)

const usage = `viactl: speak to a running viad beside the network

  viactl status           what robot, seat, scene and record are doing
  viactl stop             stop the motion and measure standstill
  viactl estop            stop and latch: nothing moves until viactl clear and viactl arm
  viactl clear            you have looked at the robot: clear the latch; it stays disarmed
  viactl arm              allow motion; refused while latched
  viactl disarm           stop and allow no motion
  viactl takeover [NAME]  stop, and take the seat from whoever drives; NAME drives now, or nobody
  viactl free             give the seat free, whoever has it
  viactl doctor           what the driver found out about the robot, and what keeps it from moving
  viactl do TASK          homing, recovery and the like, as doctor lists them; give --wait time for it

  --socket PATH    the daemon's socket (default: $VIAD_SOCKET, or the only one below ./var or /run/viad)
  --wait 20s       how long to wait for an answer
`

func run(args []string, out, complaints io.Writer) int {
	f := flag.NewFlagSet("viactl", flag.ContinueOnError)
	f.SetOutput(complaints)
	f.Usage = func() { fmt.Fprint(complaints, usage) }
	socket := f.String("socket", "", "")
	wait := f.Duration("wait", 20*time.Second, "")
	var words []string // flags may stand before, between and after them
	for rest := args; ; rest = f.Args()[1:] {
		if err := f.Parse(rest); err != nil {
			return exitUsage
		}
		if f.NArg() == 0 {
			break
		}
		words = append(words, f.Arg(0))
	}
	req, ok := request(words)
	if !ok {
		if len(words) > 0 {
			fmt.Fprintf(complaints, "viactl: cannot do %q; it can do this:\n\n", strings.Join(words, " "))
		}
		f.Usage()
		return exitUsage
	}
	path, err := operator.Find(*socket)
	if err != nil {
		fmt.Fprintln(complaints, "viactl:", err)
		return exitSilent
	}
	ctx, cancel := context.WithTimeout(context.Background(), *wait)
	defer cancel()
	a, err := operator.Send(ctx, path, req)
	if err != nil {
		fmt.Fprintln(complaints, "viactl:", err)
		if errors.Is(err, operator.ErrRefused) {
			return exitRefused
		}
		return exitSilent
	}
	switch {
	case a.Status != nil:
		show(out, a.Status)
	case a.Health != nil:
		return healthy(out, a.Health)
	default:
		fmt.Fprintln(out, a.Note)
	}
	return exitOK
}

// healthy prints what the driver found out; the exit code says whether the robot may move for its part.
func healthy(w io.Writer, h *operator.Health) int {
	code, wide := exitOK, 0
	for _, f := range h.Facts {
		wide = max(wide, len(f.Name))
	}
	for _, f := range h.Facts {
		mark, next := "ok  ", f.Warn
		switch {
		case f.Bad != "":
			mark, next, code = "BAD ", f.Bad, exitRefused
		case f.Warn != "":
			mark = "warn"
		}
		fmt.Fprintf(w, "%s  %-*s  %s\n", mark, wide, f.Name, f.Value)
		if next != "" {
			fmt.Fprintf(w, "      -> %s\n", next)
		}
	}
	if len(h.Facts) == 0 {
		fmt.Fprintln(w, "this robot has nothing to be examined for: a twin is always well")
	}
	for _, t := range h.Tasks {
		fmt.Fprintf(w, "viactl do %-14s %s\n", t.Name, t.What)
	}
	return code
}

// request is what the words ask for; only takeover and do take a second one.
func request(words []string) (operator.Request, bool) {
	var r operator.Request
	if len(words) == 0 || len(words) > 2 {
		return r, false
	}
	r.Op = operator.Op(words[0])
	if len(words) == 2 {
		if r.Op != operator.OpTakeOver && r.Op != operator.OpDo {
			return r, false
		}
		r.Name = words[1]
	}
	return r, slices.Contains(operator.Ops(), r.Op)
}

// show prints the status a person reads at a glance, worst news first.
func show(w io.Writer, s *operator.Status) {
	line := func(k, v string) {
		if v != "" {
			fmt.Fprintf(w, "%-9s %s\n", k, v)
		}
	}
	for _, m := range s.Warnings {
		line("WARNING", m)
	}
	line("LATCHED", s.Latched)
	line("FAULT", s.Fault)
	armed := "disarmed: nothing moves until viactl arm"
	switch {
	case s.Armed:
		armed = "armed"
	case s.Latched != "":
		armed = "latched: look at the robot, then viactl clear and viactl arm"
	}
	line("motion", armed)
	line("robot", fmt.Sprintf("%s, %s, joint reading %s old", s.Robot, s.Mode, age(s.StateAge)))
	line("moving", map[bool]string{true: "yes", false: "no"}[s.Moving])
	line("scene", fmt.Sprintf("number %d, %s old", s.SceneSeq, age(s.SceneAge)))
	line("seat", s.Seat)
	line("staged", s.Staged)
	line("last", s.Last)
	line("episode", fmt.Sprint(s.Episode))
	line("record", s.Record)
	line("agents", s.MCP)
	line("tls", s.TLS)
	line("page", s.Page)
	if s.Refused > 0 {
		line("refused", fmt.Sprintf("%d requests at the door, for host, origin or token", s.Refused))
	}
	line("viad", fmt.Sprintf("%s %s, %s face, up %s", s.Name, s.Version, s.Face, (time.Duration(s.UptimeS)*time.Second).String()))
}

func age(s float64) string {
	if s < 0 {
		return "no reading,"
	}
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}
