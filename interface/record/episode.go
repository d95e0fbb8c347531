package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// timeForm is how times stand in the files.
const timeForm = "2006-01-02T15:04:05.000000Z"

// nameForm is the start of an episode in its folder's name.
const nameForm = "2006-01-02T15-04-05.000"

// episode is the open folder.
type episode struct {
	files  Files
	dir    string
	head   head
	lines  map[string]File // the .jsonl files and index.md, by name
	calls  int
	denied int      // of the calls, refused ones
	ends   []string // of the motions: when, and how
	bytes  int64
	dirty  bool
	synced time.Time
}

// head is episode.json.
type head struct {
	Format  int    `json:"format"`
	Episode int    `json:"episode"`
	Started string `json:"started"`
	Ended   string `json:"ended,omitempty"`
	Verdict string `json:"verdict,omitempty"`
	Dropped int64  `json:"dropped_entries,omitempty"`
	Info
}

// maxEnds is how many motions the summary of an episode lists.
const maxEnds = 1000

// headName marks a folder as an episode of ours; nothing without it is ever removed.
const headName = "episode.json"

func openEpisode(files Files, folder string, n int, wall time.Time, info Info) (*episode, error) {
	wall = wall.UTC()
	name := fmt.Sprintf("%s-episode-%03d", wall.Format(nameForm), n)
	e := &episode{
		files: files, dir: filepath.Join(folder, name), lines: map[string]File{}, synced: wall,
		head: head{Format: Format, Episode: n, Started: wall.Format(timeForm), Info: info},
	}
	if err := files.MkdirAll(filepath.Join(e.dir, "pictures")); err != nil {
		return nil, err
	}
	if err := e.writeHead(); err != nil {
		return nil, err
	}
	title := fmt.Sprintf("# Episode %d of %s\n\n%s, %s face, viad %s. Started %s.\n\n"+
		"Times are UTC. The files beside this one hold the same in full: calls, decisions, states.\n",
		n, info.Name, info.Robot, info.Face, info.Version, wall.Format(time.DateTime))
	return e, e.append("index.md", []byte(title))
}

func (e *episode) writeHead() error {
	b, err := json.MarshalIndent(e.head, "", "  ")
	if err != nil {
		return err
	}
	e.bytes += int64(len(b))
	return e.files.Write(filepath.Join(e.dir, headName), append(b, '\n'))
}

func (e *episode) append(name string, text []byte) error {
	f := e.lines[name]
	if f == nil {
		var err error
		if f, err = e.files.Append(filepath.Join(e.dir, name)); err != nil {
			return err
		}
		e.lines[name] = f
	}
	n, err := f.Write(text)
	e.bytes += int64(n)
	e.dirty = true
	return err
}

func (e *episode) appendJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		// A value that JSON cannot hold (NaN) is no reason to stop recording the rest.
		b = fmt.Appendf(nil, `{"unwritable":%q}`, err.Error())
	}
	return e.append(name, append(b, '\n'))
}

// stamps open every line.
type stamps struct {
	Wall  string `json:"wall"`
	Clock string `json:"clock"`
}

func stampsOf(en entry) stamps {
	return stamps{en.wall.UTC().Format(timeForm), en.clock.UTC().Format(timeForm)}
}

// callLine is a line of calls.jsonl.
type callLine struct {
	stamps
	Seq       int             `json:"seq"`
	Principal string          `json:"principal"`
	Role      string          `json:"role"`
	Tool      string          `json:"tool"`
	ID        string          `json:"id,omitempty"`
	Args      json.RawMessage `json:"args"`
	Refused   bool            `json:"refused"`
	Readout   []string        `json:"readout"`
	Pictures  []string        `json:"pictures,omitempty"`
	TookMS    float64         `json:"took_ms"`
	SceneSeq  uint64          `json:"scene_seq"`
	SceneAge  float64         `json:"scene_age_ms"`
	StateAge  float64         `json:"state_age_ms"`
}

func (e *episode) writeCall(en entry) error {
	c := en.call
	e.calls++
	if c.Refused {
		e.denied++
	}
	l := callLine{
		stamps: stampsOf(en), Seq: e.calls, Principal: c.Principal, Role: c.Role, Tool: c.Tool, ID: string(clip([]byte(c.ID))),
		Args: asJSON(clip(c.Args)), Refused: c.Refused, Readout: c.Readout, TookMS: millis(c.Took),
		SceneSeq: c.SceneSeq, SceneAge: millis(c.SceneAge), StateAge: millis(c.StateAge),
	}
	for i, p := range c.Pictures {
		name := fmt.Sprintf("pictures/%04d-%s-%d-%s.jpg", e.calls, plain(c.Tool), i+1, plain(p.Name))
		if err := e.files.Write(filepath.Join(e.dir, name), p.JPEG); err != nil {
			return err
		}
		e.bytes += int64(len(p.JPEG))
		l.Pictures = append(l.Pictures, name)
	}
	if err := e.appendJSON("calls.jsonl", l); err != nil {
		return err
	}
	return e.append("index.md", e.story(en, l))
}

// story is a call as a person reads it.
func (e *episode) story(en entry, l callLine) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "\n## %d. %s %s%s\n\n", l.Seq, l.Tool, code(string(l.Args)), map[bool]string{true: " refused"}[l.Refused])
	fmt.Fprintf(&b, "%s, by %s (%s), %.0f ms\n\n", en.wall.UTC().Format("15:04:05.000"), said(l.Principal), l.Role, l.TookMS)
	for _, t := range l.Readout {
		for line := range strings.SplitSeq(t, "\n") {
			fmt.Fprintf(&b, "> %s  \n", said(line)) // two spaces: Markdown would join the lines
		}
	}
	for _, p := range l.Pictures {
		fmt.Fprintf(&b, "\n![%s](%s)\n", p, p)
	}
	return b.Bytes()
}

// decisionLine is a line of decisions.jsonl.
type decisionLine struct {
	stamps
	Decision
}

func (e *episode) writeDecision(en entry) error {
	if err := e.appendJSON("decisions.jsonl", decisionLine{stampsOf(en), *en.decision}); err != nil {
		return err
	}
	d := en.decision
	if d.Kind == "outcome" && len(e.ends) < maxEnds {
		e.ends = append(e.ends, en.wall.UTC().Format("15:04:05.000")+" "+said(oneLine(d.Text)))
	}
	who := ""
	if d.Who != "" {
		who = " (" + said(d.Who) + ")"
	}
	return e.append("index.md", fmt.Appendf(nil, "\n- %s **%s**%s: %s\n", en.wall.UTC().Format("15:04:05.000"), d.Kind, who, said(oneLine(d.Text))))
}

// stateLine is a line of states.jsonl.
type stateLine struct {
	stamps
	Seq      uint64     `json:"seq"`
	Q        []float64  `json:"q"`
	QD       []float64  `json:"qd"`
	Base     [3]float64 `json:"base_xy_yaw"`
	Aperture float64    `json:"aperture"`
	JawKnown bool       `json:"jaw_known"`
	Contact  float64    `json:"contact_n"`
	Mode     string     `json:"mode"`
	Fault    string     `json:"fault,omitempty"`
}

func (e *episode) writeState(en entry) error {
	s := en.state
	return e.appendJSON("states.jsonl", stateLine{
		stamps: stampsOf(en), Seq: s.Seq, Q: finite(s.Q), QD: finite(s.QD), Base: [3]float64{s.Base.X, s.Base.Y, s.Base.Yaw},
		Aperture: s.Jaw.Aperture, JawKnown: s.Jaw.Known, Contact: s.Contact, Mode: s.Mode.String(), Fault: s.Fault,
	})
}

// sync puts what was written on the disk itself.
func (e *episode) sync(now time.Time) error {
	e.synced = now
	if !e.dirty {
		return nil
	}
	e.dirty = false
	for _, f := range e.lines {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// close writes the verdict and closes all files; the first error is returned, all files are closed anyway.
func (e *episode) close(wall time.Time, verdict string, dropped int64) error {
	e.head.Ended, e.head.Verdict, e.head.Dropped = wall.UTC().Format(timeForm), verdict, dropped
	err := e.append("index.md", e.summary(wall, verdict))
	if err == nil {
		err = e.writeHead()
	}
	if err == nil {
		err = e.sync(wall)
	}
	return firstError(err, e.abandon())
}

// summary is the end of the story: how it ended, and what the robot did in it.
func (e *episode) summary(wall time.Time, verdict string) []byte {
	b := fmt.Appendf(nil, "\n---\n\nEnded %s: %s\n\nCalls: %d, refused: %d. Motions: %d\n", wall.UTC().Format(time.DateTime), said(oneLine(verdict)), e.calls, e.denied, len(e.ends))
	for i, end := range e.ends {
		if i == 0 {
			b = append(b, '\n')
		}
		b = fmt.Appendf(b, "%d. %s\n", i+1, end)
	}
	return b
}

// abandon closes the files as they are.
func (e *episode) abandon() error {
	var err error
	for _, f := range e.lines {
		err = firstError(err, f.Close())
	}
	e.lines = map[string]File{}
	return err
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// maxForeign is how much is kept of what a client sent, in bytes. No tool takes nearly as much; more would let
// anybody who may call push the old episodes over the quota.
const maxForeign = 4 << 10

// clip is the start of b, with its length when that is not all.
func clip(b []byte) []byte {
	if len(b) <= maxForeign {
		return b
	}
	return fmt.Appendf(nil, "%s... (%d bytes)", bytes.ToValidUTF8(b[:maxForeign], nil), len(b))
}

// asJSON is b when it is JSON, else b as a JSON string.
func asJSON(b []byte) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("{}")
	}
	if json.Valid(b) {
		var out bytes.Buffer
		if json.Compact(&out, b) == nil {
			return out.Bytes()
		}
	}
	s, err := json.Marshal(string(b))
	if err != nil {
		return json.RawMessage(`""`)
	}
	return s
}

// plain is a name that is safe as part of a file's name.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, strings.ToLower(s[:min(len(s), 60)]))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// finite is v, with what JSON cannot hold as nil: a reading with NaN is recorded as missing.
func finite(v []float64) []float64 {
	for _, x := range v {
		if x-x != 0 {
			return nil
		}
	}
	return v
}
