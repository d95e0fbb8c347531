package interop

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Setup is how a peer runs.
type Setup struct {
	Vendor Vendor
	Mode   string // publish, subscribe, serve, call, serve-action, send-goal, graph
	Domain int
	Stock  bool     // the vendor's own settings; otherwise this host alone over UDP
	Netns  string   // network namespace, "" is ours
	Lease  int      // seconds after which the others forget a dead peer; 0 is the vendor's
	Args   []string // key=value, see peers/*/main
}

// Event is one line that a peer printed; which fields are set depends on Ev.
type Event struct {
	Ev    string
	Topic string
	Count int
	Why   string

	// sent and report.
	N, Failed, First, Last, Corrupt, Disorder, Twice int
	Seconds, CPU, P50, P99, Max                      float64
	Acked                                            bool
	// sample.
	Seq   int
	Whole bool
	// mismatch.
	Policy int
	// answer and called.
	OK, Success bool
	Message     string
	MS          float64
	Answered    int
	// goal, accepted, feedback, status, result, cancel.
	ID                                             string
	Accepted                                       bool
	Joints, Points, Tolerance, Goals, Status, Code int
	Sum, Actual                                    float64
	Text                                           string
	Feedback                                       int
	// graph.
	From  string
	Nodes []GraphNode
}

// GraphNode is one node as a peer reads it from the graph.
type GraphNode struct {
	Name, NS         string
	Readers, Writers int
}

// Peer is a running program of another vendor.
type Peer struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer

	mu     sync.Mutex
	events []Event
	more   chan struct{} // closed and made anew with each event
	ended  bool
	bad    error
	done   chan struct{}
}

// localhost is Cyclone on this host alone. Participant index auto makes it found by static peers.
func localhost(lease int) string {
	return `<CycloneDDS><Domain id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces>` +
		`<AllowMulticast>false</AllowMulticast><MaxMessageSize>65500B</MaxMessageSize></General>` +
		`<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>30</MaxAutoParticipantIndex>` +
		`<LeaseDuration>` + strconv.Itoa(cmp.Or(lease, 10)) + `s</LeaseDuration>` +
		`<Peers><Peer address="127.0.0.1"/></Peers></Discovery></Domain></CycloneDDS>`
}

// Start builds the peer if need be and starts it. It ends with Close or Kill, or when this process ends.
func Start(ctx context.Context, s Setup) (*Peer, error) {
	program, err := Build(ctx, s.Vendor)
	if err != nil {
		return nil, err
	}
	args := append([]string{program, s.Mode, "domain=" + strconv.Itoa(s.Domain)}, s.Args...)
	if s.Stock {
		args = append(args, "net=stock")
	}
	if s.Lease > 0 {
		args = append(args, "lease="+strconv.Itoa(s.Lease))
	}
	if s.Netns != "" {
		args = append([]string{"ip", "netns", "exec", s.Netns}, args...)
	}
	p := &Peer{name: string(s.Vendor) + " " + s.Mode, more: make(chan struct{}), done: make(chan struct{})}
	p.cmd = exec.Command(args[0], args[1:]...) //nolint:noctx // it outlives the call: Close and Kill end it
	p.cmd.Stderr = &p.stderr
	if s.Vendor == Cyclone && !s.Stock {
		p.cmd.Env = append(os.Environ(), "CYCLONEDDS_URI="+localhost(s.Lease))
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s peer: %w", s.Vendor, err)
	}
	go p.listen(out)
	return p, nil
}

func (p *Peer) listen(out io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e Event
		err := json.Unmarshal(lines.Bytes(), &e)
		p.mu.Lock()
		if err != nil {
			p.bad = fmt.Errorf("the %s peer printed %q: %w", p.name, lines.Text(), err)
		} else {
			p.events = append(p.events, e)
		}
		p.wake()
		p.mu.Unlock()
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended = true; err != nil && p.bad == nil {
		p.bad = err
	}
	p.wake()
}

func (p *Peer) wake() {
	close(p.more)
	p.more = make(chan struct{})
}

// Await waits for an event, which may have come already, and returns the first that fits.
func (p *Peer) Await(ctx context.Context, fits func(Event) bool) (Event, error) {
	for seen := 0; ; {
		p.mu.Lock()
		events, more, ended, bad := p.events, p.more, p.ended, p.bad
		p.mu.Unlock()
		for ; seen < len(events); seen++ {
			if fits(events[seen]) {
				return events[seen], nil
			}
		}
		if ended {
			return Event{}, errors.Join(fmt.Errorf("the %s peer ended: %s", p.name, p.Story()), bad)
		}
		select {
		case <-more:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("waiting for the %s peer: %w; it printed %s", p.name, ctx.Err(), p.Story())
		}
	}
}

// Event waits for an event of this kind.
func (p *Peer) Event(ctx context.Context, ev string) (Event, error) {
	return p.Await(ctx, func(e Event) bool { return e.Ev == ev })
}

// Events are all events of a kind so far.
func (p *Peer) Events(ev string) []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Event
	for _, e := range p.events {
		if e.Ev == ev {
			out = append(out, e)
		}
	}
	return out
}

// Story is what the peer said, for errors.
func (p *Peer) Story() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, e := range p.events[max(0, len(p.events)-12):] {
		j, err := json.Marshal(e)
		if err != nil {
			continue // an Event always can
		}
		b.Write(j)
		b.WriteByte('\n')
	}
	if p.ended { // before that the process may still write there
		b.WriteString(p.stderr.String())
	}
	return b.String()
}

// PID is the peer's process.
func (p *Peer) PID() int { return p.cmd.Process.Pid }

// CPU is the processor time that the peer has used so far, user and system, from /proc.
func (p *Peer) CPU() (time.Duration, error) { return processTime(p.PID()) }

// Close asks the peer to end, as a node that shuts down does, and waits.
func (p *Peer) Close() error {
	_ = p.stdin.Close() // it may have ended
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		return errors.Join(fmt.Errorf("the %s peer did not end", p.name), p.Kill())
	}
	return nil
}

// Kill ends the peer at once, as a robot that loses power.
func (p *Peer) Kill() error {
	err := p.cmd.Process.Signal(syscall.SIGKILL)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-p.done
	return err
}

// processTime reads utime and stime of a process, in ticks of 10 ms.
func processTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields behind the name", pid, len(f))
	}
	user, err := strconv.Atoi(f[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond, err
}
