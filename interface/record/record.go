// Package record keeps what was asked, shown, decided and moved, so that an incident can be replayed and
// a person can read an episode as a story. It is append-only and never in the way of a motion: callers
// hand over values and go on, one goroutine writes.
//
// One folder per episode, named by its start so that names sort by age:
//
//	index.md          the story: one entry per call, with its pictures
//	episode.json      format version, robot, limits in force, start, end, verdict
//	calls.jsonl       every tool call: time, principal, arguments, readout, refused or not, ages
//	decisions.jsonl   every motion and stop: plan, ages, outcome, who asked
//	states.jsonl      joint readings, rate-limited, while the robot moves
//	pictures/         every picture that was sent, as sent
//
// Times are UTC with microseconds; "clock" is the robot.Clock, "wall" the machine's. Lengths are metres,
// angles radians, poses in the odometry frame (package robot).
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"viad/drivers/robot"
)

// Format is the version of the layout above; it stands in every episode.json.
const Format = 1

// queueLen bounds what waits for a slow disk. Beyond it entries are dropped and counted.
const queueLen = 512

// probeSize is what must fit on the disk at the start: a few pictures.
const probeSize = 1 << 20

// Options of a Recorder.
type Options struct {
	Folder string       // where episode folders go
	Quota  int64        // bytes of all episodes together
	Files  Files        // Disk{} unless a test says otherwise
	Clock  robot.Clock  // stamps entries
	Log    *slog.Logger // gets one warning when recording stops
	Info   Info         // the same in every episode
}

// Info describes what is being recorded.
type Info struct {
	Name    string          `json:"name"`
	Robot   string          `json:"robot"`
	World   string          `json:"world,omitempty"`
	Seed    int64           `json:"seed"`
	Face    string          `json:"face"`
	Version string          `json:"viad"`
	Limits  json.RawMessage `json:"limits"` // the operator's limits and caps in force
}

// Picture is one picture as it was sent.
type Picture struct {
	Name string // "ui", "head", "wrist", "nav_map"
	JPEG []byte // never changed after it is handed over
}

// Call is one tool call with its answer.
type Call struct {
	Principal string
	Role      string
	Tool      string
	ID        string // the JSON-RPC id
	Args      []byte // as received; kept as text when it is not JSON
	Readout   []string
	Refused   bool
	Pictures  []Picture
	Took      time.Duration // wall time
	SceneSeq  uint64
	SceneAge  time.Duration // on the robot.Clock when the call was answered; negative when there was no scene
	StateAge  time.Duration // likewise of the joint reading
}

// Decision is something that was decided about motion: a go, a stop, an arming, an end.
type Decision struct {
	Kind   string      `json:"kind"` // go, outcome, stop, arm, disarm, estop, seat, episode
	Who    string      `json:"who,omitempty"`
	Text   string      `json:"text"`
	Motion *Motion     `json:"motion,omitempty"`
	Ages   *AgesMillis `json:"ages_ms,omitempty"`
}

// AgesMillis is how old the readings were when it was decided, in milliseconds.
type AgesMillis struct {
	State float64 `json:"state"`
}

// Recorder writes episodes. Its methods may be called from anywhere and do not block; Run writes.
type Recorder struct {
	opt   Options
	queue chan entry

	dropped atomic.Int64
	mu      sync.Mutex
	status  Status
}

// Status is what operator and page show of the recording.
type Status struct {
	Folder  string // of the running episode, empty when nothing is recorded
	Warning string // why recording stopped, empty while it runs
	Bytes   int64  // of all episodes
}

// entry is one thing to write, with the times at which it was handed over.
type entry struct {
	wall, clock time.Time
	call        *Call
	decision    *Decision
	state       *robot.State
	begin       int // episode number, when a new one begins
	end         *string
	flushed     chan struct{}
}

// New checks that the folder can be written and returns a Recorder whose first episode has not begun.
func New(opt Options) (*Recorder, error) {
	if opt.Files == nil {
		opt.Files = Disk{}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if err := opt.Files.MkdirAll(opt.Folder); err != nil {
		return nil, fmt.Errorf("the record folder %s cannot be made: %w; name another in record.folder", opt.Folder, err)
	}
	probe := filepath.Join(opt.Folder, ".probe")
	if err := opt.Files.Write(probe, make([]byte, probeSize)); err != nil {
		return nil, fmt.Errorf("the record folder %s cannot be written: %w; free some space or name another in record.folder", opt.Folder, err)
	}
	if err := opt.Files.RemoveAll(probe); err != nil {
		return nil, fmt.Errorf("the record folder %s: %w", opt.Folder, err)
	}
	return &Recorder{opt: opt, queue: make(chan entry, queueLen)}, nil
}

// Begin starts episode n; the one before it is closed first.
func (r *Recorder) Begin(n int) { r.put(entry{begin: n}) }

// End closes the running episode with a verdict in words.
func (r *Recorder) End(verdict string) { r.put(entry{end: &verdict}) }

// Call records a tool call.
func (r *Recorder) Call(c Call) { r.put(entry{call: &c}) }

// Decide records a decision.
func (r *Recorder) Decide(d Decision) { r.put(entry{decision: &d}) }

// State records a reading.
func (r *Recorder) State(s robot.State) { r.put(entry{state: &s}) }

// Status is the state of the recording.
func (r *Recorder) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// Flush returns when all that was handed over before is with the operating system, or ctx ends it by
// closing done.
func (r *Recorder) Flush(done <-chan struct{}) error {
	f := make(chan struct{})
	select {
	case r.queue <- entry{flushed: f}:
	case <-done:
		return errFlush
	}
	select {
	case <-f:
		return nil
	case <-done:
		return errFlush
	}
}

var errFlush = errors.New("record: given up before everything was written")

func (r *Recorder) put(e entry) {
	e.wall, e.clock = time.Now(), r.opt.Clock.Now()
	select {
	case r.queue <- e:
	default:
		r.dropped.Add(1)
	}
}
