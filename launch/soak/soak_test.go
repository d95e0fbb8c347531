package soak

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	calls   = flag.Int("calls", 0, "how many calls, over both robots; 0: 5000, or 1000 with -short")
	clients = flag.Int("clients", 4, "how many clients at once: two drivers, a watcher, an operator, and again")
	seed    = flag.Uint64("seed", 1, "what the clients do is made from this alone")
	prof    = flag.String("heapprofile", "", "file for a profile of the heap while the daemon still runs")
	each    = flag.Bool("phases", false, "log what the process holds after each tenth")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSoak is the soak: see the package's words.
func TestSoak(t *testing.T) {
	n := *calls
	switch {
	case n > 0:
	case testing.Short():
		n = 1000
	default:
		n = 5000
	}
	for _, file := range []string{"twin-franka.yaml", "twin-stretch4.yaml"} {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) { soak(t, file, n/2) })
	}
}

// phases are how often all clients wait for each other while memory is looked at.
const phases = 10

func soak(t *testing.T, file string, n int) {
	h := start(t, file, n)
	began := time.Now()
	var marks []mark
	for phase := range phases {
		h.phase(phase)
		marks = append(marks, h.measure(t))
		if *each {
			t.Logf("phase %d: %v after %v", phase, marks[phase], time.Since(began).Round(time.Second))
		}
	}
	// What is held goes up and down with what was last looked at: three measurements each, and the least of them.
	third, last := least(marks[1:4]), least(marks[phases-3:])
	h.judge(t, third, last)
	if *prof != "" {
		f, err := os.Create(*prof)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s: %d calls in %v, seed %d, %d clients\n%s\nat 20 to 40 %%: %v\nat 80 to 100 %%: %v",
		file, h.count("sent"), time.Since(began).Round(time.Second), *seed, *clients, h.report(), third, last)
}

// judge is what must hold.
func (h *house) judge(t *testing.T, third, last mark) {
	t.Helper()
	if v := h.mon.Violations(); len(v) > 0 {
		t.Errorf("%d violations in the physics, the first: %v", len(v), v[:min(len(v), 10)])
	}
	h.log.mu.Lock()
	panics := h.log.panics
	h.log.mu.Unlock()
	if len(panics) > 0 {
		t.Errorf("%d panics, the first: %s", len(panics), panics[0])
	}
	if bad, n := h.complaints(); n > 0 {
		t.Errorf("%d calls were answered otherwise than they should:\n%s", n, strings.Join(bad, "\n"))
	}
	if grown := last.heap - third.heap; grown > 20 {
		t.Errorf("the heap grew by %.1f MB", grown)
	}
	if grown := last.resident - third.resident; grown > 100 { // with the heap's own 20: what C and GL hold, and the race detector's 60
		t.Errorf("the resident memory grew by %.0f MB", grown)
	}
	if last.files > third.files+4 {
		t.Errorf("open files grew from %d to %d", third.files, last.files)
	}
	if last.routines > third.routines+10 {
		t.Errorf("goroutines grew from %d to %d", third.routines, last.routines)
	}
	h.log.mu.Lock()
	motions := h.log.lines["INFO motion ended"]
	h.log.mu.Unlock()
	if sent := h.count("sent"); motions < sent/100 {
		t.Errorf("%d motions in %d calls: this was no soak", motions, sent)
	} else if sent >= 5000 {
		for _, what := range troubles() {
			if h.count("machine: "+string(what)) == 0 {
				t.Errorf("the machine never had this trouble: %s", what)
			}
		}
	}
	if h.mon.Steps() == 0 {
		t.Error("the monitor saw nothing")
	}
}

// mark is what the process holds while nobody calls.
type mark struct {
	heap, resident float64 // MB
	routines       int
	files          int
}

// least is the smallest of everything: what is never given back stays in it.
func least(marks []mark) mark {
	out := marks[0]
	for _, m := range marks[1:] {
		out.heap, out.resident = min(out.heap, m.heap), min(out.resident, m.resident)
		out.routines, out.files = min(out.routines, m.routines), min(out.files, m.files)
	}
	return out
}

func (m mark) String() string {
	return fmt.Sprintf("heap %.1f MB, resident %.0f MB, %d goroutines, %d open files", m.heap, m.resident, m.routines, m.files)
}

func (h *house) measure(t *testing.T) mark {
	t.Helper()
	h.quiet(t)
	h.rest()
	var m runtime.MemStats
	runtime.GC()
	debug.FreeOSMemory() // which collects once more, what finalizers freed, and gives back what the collector keeps
	runtime.ReadMemStats(&m)
	out := mark{heap: float64(m.HeapAlloc) / 1e6, routines: runtime.NumGoroutine()}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	out.files = len(fds)
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	out.resident = float64(pages) * float64(os.Getpagesize()) / 1e6
	return out
}

func TestScriptIsMadeFromTheSeedAlone(t *testing.T) {
	lo, hi := -0.1, 0.1
	tools := []toolInfo{{Name: "stop"}, {Name: "execute_waypoint"}, {Name: "end_episode"}, {Name: "gripper_translate"}}
	tools[3].InputSchema.Properties = map[string]property{
		"d_x": {Type: "number", Minimum: &lo, Maximum: &hi}, "d_y": {Type: "number", Minimum: &lo, Maximum: &hi}, "state": {Type: "string", Enum: []string{"a", "b"}},
	}
	a, b := script(7, 1, person, tools, 500), script(7, 1, person, tools, 500)
	if !reflect.DeepEqual(a, b) {
		t.Error("twice the same seed, and not the same script")
	}
	if reflect.DeepEqual(a, script(8, 1, person, tools, 500)) || reflect.DeepEqual(a, script(7, 2, person, tools, 500)) {
		t.Error("another seed or client, and the same script")
	}
	var kind [doTurn + 1]int
	for _, s := range a {
		kind[s.kind]++
		for _, o := range s.own {
			kind[o.kind]++
		}
	}
	for k, n := range kind {
		if n == 0 {
			t.Errorf("500 steps of an operator have none of kind %d", k)
		}
	}
}
