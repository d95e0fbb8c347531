package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report is one run.
type report struct {
	at      time.Time
	machine string
	tables  []table
}

// machine says in a few words what this ran on; nothing that names it.
func machine() string {
	gpu := "no GPU"
	if _, err := os.Stat("/dev/dri"); !errors.Is(err, fs.ErrNotExist) {
		gpu = "a GPU"
	}
	s := fmt.Sprintf("%d cores, %s, %s/%s, %s", runtime.NumCPU(), gpu, runtime.GOOS, runtime.GOARCH, runtime.Version())
	if a, err := unix.SchedGetAttr(0, 0); err == nil && (a.Policy == unix.SCHED_FIFO || a.Policy == unix.SCHED_RR) {
		s += "; real-time priority for both sides of each comparison, because others worked on the machine"
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		if one, _, ok := strings.Cut(string(b), " "); ok {
			s += "; load before the run " + one
		}
	}
	return s
}

func (r *report) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, `# Speed

The last run of `+"`make bench`"+`, %s: %s.

Each row is two measurements of one run, taken in turns, and their ratio. Only ratios are compared with a goal,
and none is a test.
`, r.at.UTC().Format(time.DateOnly), r.machine)
	if err != nil {
		return err
	}
	for i := range r.tables {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := r.tables[i].write(w); err != nil {
			return err
		}
	}
	return nil
}

// save replaces the file that keeps the last run.
func (r *report) save(path string) error {
	var b strings.Builder
	if err := r.write(&b); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644) //nolint:gosec // a document
}

// editNotes say what the first table compares.
func editNotes(rs []editResult) []string {
	b := rs[0].browser
	out := make([]string, 0, 4+len(rs))
	out = append(
		out,
		fmt.Sprintf("viad: `gripper_translate` by a few centimetres through mcp-go's client over loopback HTTP, from the request to the decoded bytes of the JPEG (1280x800), with everything an edit does: plan, check against the cloud, draw, pack, record. %d samples a scene.", len(rs[0].ours)),
		fmt.Sprintf("Browser: a page with the same cloud in three.js points of the same size on the picture, the target as a mesh, both feeds, in headless Chromium %s (%s); the gripper is moved, the page draws once, and playwright takes a JPEG (1280x800) of the same quality; from the move to the bytes. %d samples a scene. The page draws only when asked, which is its quickest way; in the row that says so it draws all the time, as a viewer for people does.", b.Version, b.Renderer, len(rs[0].theirs)),
		fmt.Sprintf("The dense cloud is the same scene through the same cameras with three times the pixels along both sides, interpolated, and fused with a grain of %.2f mm instead of 4 mm. Turning the viewport (`camera_orbit_via_key`, 20 degrees to and fro) draws the whole cloud anew on both sides; an edit in the same viewport does not on viad's.", 1e3*denseVoxel),
		"In all rows but the last two the daemon does nothing but what it is asked, as the page does; as shipped it steps physics in real time and makes five new scenes a second besides, and the page still shows one.",
	)
	for _, r := range rs {
		out = append(out, fmt.Sprintf("%s: mean picture %.0f kB by viad, %.0f kB by the browser.", r.name, r.oursKB, r.othKB))
	}
	return out
}
