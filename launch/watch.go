package launch

import (
	"errors"
	"image"
	"strings"
	"sync"
	"time"

	"viad/drivers/robot"
	"viad/interface/record"
	"viad/interface/stage"
	"viad/interface/tool"
	"viad/interface/tool/door"
	"viad/interface/view"
	"viad/interface/web"
)

// keptCalls is how many calls the page lists.
const keptCalls = 40

// watch sees every finished call once: it hands it to the recorder and keeps what the page shows.
type watch struct {
	rec   *record.Recorder // nil records nothing
	clock robot.Clock
	// holder is who has the seat, empty when it is free.
	holder func() string

	mu    sync.Mutex
	kept  map[string]time.Time // when a picture of who does not drive was last recorded
	seq   uint64
	calls []web.Call // newest first
	shown []web.Picture
	sent  uint64
}

// Call is tool.Recorder.
func (w *watch) Call(r tool.Record) {
	text := words(r.Texts)
	w.mu.Lock()
	w.seq++
	w.calls = append([]web.Call{{
		Seq: w.seq, At: time.Now().UTC().Format(time.RFC3339), Principal: r.Principal, Tool: r.Tool, Args: argsText(r.Args),
		Text: text, Refused: r.Refused, TookMS: float64(r.Took.Microseconds()) / 1000,
	}}, w.calls[:min(len(w.calls), keptCalls-1)]...)
	drives := w.drives(r)
	if len(r.Pictures) > 0 && drives {
		w.sent++
		w.shown = nil
		for _, p := range r.Pictures {
			w.shown = append(w.shown, web.Picture{Name: p.View, JPEG: p.JPEG, At: time.Now()})
		}
	}
	if len(r.Pictures) > 0 && !drives && !w.worthKeeping(r.Principal) {
		r.Pictures = nil
	}
	w.mu.Unlock()
	if w.rec != nil {
		w.rec.Call(w.line(r))
	}
}

// drives reports whether a call is of who drives, or could: its pictures are what the robot is driven by.
func (w *watch) drives(r tool.Record) bool {
	h := w.holder()
	return r.Role != door.Watcher.String() && (h == "" || h == r.Principal)
}

// keepEvery is how often the pictures of one who does not drive are recorded. A watcher that looks all day would push
// every earlier episode over the quota.
const keepEvery = time.Second

// worthKeeping says whether pictures of name are recorded now; it needs mu.
func (w *watch) worthKeeping(name string) bool {
	now := time.Now()
	if now.Sub(w.kept[name]) < keepEvery {
		return false
	}
	if w.kept == nil {
		w.kept = make(map[string]time.Time)
	}
	w.kept[name] = now
	return true
}

// line is the call as it is recorded, with the ages at the time it came in.
func (w *watch) line(r tool.Record) record.Call {
	c := record.Call{
		Principal: r.Principal, Role: r.Role, Tool: r.Tool, ID: r.ID, Args: r.Args, Readout: r.Texts, Refused: r.Refused, Took: r.Took,
		SceneAge: -1, StateAge: -1,
	}
	for _, p := range r.Pictures {
		c.Pictures = append(c.Pictures, record.Picture{Name: p.View, JPEG: p.JPEG})
	}
	if sn := r.Shown; sn != nil {
		c.StateAge = sn.Now.Sub(sn.State.Received)
		if sn.Scene != nil {
			c.SceneSeq, c.SceneAge = sn.Scene.Seq, sn.Now.Sub(sn.Scene.At)
		}
	}
	return c
}

// words is the readout without the labels of its pictures.
func words(texts []string) string {
	var out []string
	for _, t := range texts {
		if !strings.HasPrefix(t, "view: ") {
			out = append(out, t)
		}
	}
	return strings.Join(out, "\n")
}

func argsText(raw []byte) string {
	s := strings.TrimSpace(string(raw))
	if s == "" || s == "null" {
		return "{}"
	}
	return s[:min(len(s), 400)]
}

// Calls is the page's list.
func (w *watch) Calls() []web.Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]web.Call(nil), w.calls...)
}

// Shown is what was last sent.
func (w *watch) Shown() (uint64, []web.Picture) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent, w.shown
}

// paint draws the live scene as the agent would get it now.
func paint(sn *stage.Snapshot, p *view.Painter) ([]web.Picture, error) {
	if sn.Scene == nil {
		return nil, errors.New("the sensors have given no scene yet")
	}
	type shot struct {
		name string
		img  *image.RGBA
	}
	var shots []shot
	if sn.Face == stage.Face3D {
		shots = []shot{{"ui", p.UI(sn, view.Overlay{})}}
	} else {
		shots = []shot{{"head", p.Head(sn, view.Overlay{})}, {"wrist", p.Wrist(sn, view.Overlay{})}}
		if sn.Mode == stage.ModeNav {
			shots[1] = shot{"nav_map", p.NavMap(sn)}
		}
	}
	var out []web.Picture
	for _, s := range shots {
		b, err := view.JPEG(s.img, liveQuality)
		if err != nil {
			return nil, err
		}
		out = append(out, web.Picture{Name: s.name, JPEG: b})
	}
	return out, nil
}

// liveQuality is the JPEG quality of live pictures, a little below that of the agent's.
const liveQuality = 75
