package record

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/drivers/robot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Recorder that runs until the test ends.
type rig struct {
	*Recorder
	t   *testing.T
	log *lockedBuffer
	end func()
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, opt Options) *rig {
	t.Helper()
	log := &lockedBuffer{}
	opt.Log = slog.New(slog.NewTextHandler(log, nil))
	opt.Clock = robot.WallClock{}
	if opt.Quota == 0 {
		opt.Quota = 1 << 30
	}
	opt.Info = Info{Name: "test", Robot: "none", Face: "3d", Version: "v0", Limits: json.RawMessage(`{"cap_m":0.1}`)}
	rec, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rec.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return &rig{rec, t, log, end}
}

func (r *rig) flush() {
	r.t.Helper()
	if err := r.Flush(r.t.Context().Done()); err != nil {
		r.t.Fatal(err)
	}
}

func call(i int, jpeg int) Call {
	return Call{
		Principal: "alice", Role: "driver", Tool: "gripper_translate", ID: fmt.Sprint(i), Args: []byte(`{ "d_x": 0.05 }`),
		Readout: []string{"moved the target\npose delta: 0.05 0 0"}, Took: 31500 * time.Microsecond, SceneSeq: 7,
		SceneAge: 120 * time.Millisecond, StateAge: 3 * time.Millisecond,
		Pictures: []Picture{{Name: "ui", JPEG: bytes.Repeat([]byte{0xff}, jpeg)}},
	}
}

func readLines[T any](t *testing.T, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	for s := bufio.NewScanner(f); s.Scan(); {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v in %s", path, err, s.Text())
		}
		out = append(out, v)
	}
	return out
}

func TestAnEpisodeReadsAsAStory(t *testing.T) {
	r := start(t, Options{Folder: filepath.Join(t.TempDir(), "record")})
	r.Begin(1)
	r.Call(call(1, 100))
	refused := call(2, 0)
	refused.Pictures, refused.Refused, refused.Args = nil, true, []byte(`{"d_x": NaN}`)
	r.Call(refused)
	r.Decide(Decision{Kind: "stop", Who: "bob", Text: "stopped, confirmed"})
	r.Decide(Decision{Kind: "outcome", Text: "contact after 1.40 s, stopped, confirmed"})
	r.State(robot.State{Seq: 9, Q: []float64{1, 2}, QD: []float64{0, math.NaN()}, Mode: robot.ModeReady})
	r.flush()
	dir := r.Status().Folder
	if dir == "" || r.Status().Warning != "" {
		t.Fatalf("%+v", r.Status())
	}
	r.End("the agent ended it")
	r.flush()

	var h head
	b, err := os.ReadFile(filepath.Join(dir, "episode.json"))
	if err != nil || json.Unmarshal(b, &h) != nil {
		t.Fatalf("%s %v", b, err)
	}
	if h.Format != Format || h.Verdict != "the agent ended it" || h.Ended == "" || string(h.Limits) == "" || h.Name != "test" {
		t.Errorf("%+v", h)
	}
	calls := readLines[callLine](t, filepath.Join(dir, "calls.jsonl"))
	if len(calls) != 2 || calls[0].Principal != "alice" || string(calls[0].Args) != `{"d_x":0.05}` || calls[0].TookMS != 31.5 ||
		calls[0].SceneAge != 120 || calls[0].StateAge != 3 || calls[0].SceneSeq != 7 || calls[0].Refused || !calls[1].Refused {
		t.Errorf("%+v", calls)
	}
	if got := string(calls[1].Args); got != `"{\"d_x\": NaN}"` {
		t.Errorf("arguments that are not JSON are kept as they came: %s", got)
	}
	pic, err := os.ReadFile(filepath.Join(dir, calls[0].Pictures[0]))
	if err != nil || len(pic) != 100 {
		t.Errorf("%d %v", len(pic), err)
	}
	if d := readLines[decisionLine](t, filepath.Join(dir, "decisions.jsonl")); len(d) != 2 || d[0].Who != "bob" || d[0].Wall == "" {
		t.Errorf("%+v", d)
	}
	s := readLines[stateLine](t, filepath.Join(dir, "states.jsonl"))
	if len(s) != 1 || s[0].Q[1] != 2 || s[0].QD != nil || s[0].Mode != "ready" {
		t.Errorf("a reading with NaN is recorded as missing: %+v", s)
	}
	story, err := os.ReadFile(filepath.Join(dir, "index.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Episode 1 of test", "## 1. gripper_translate", "## 2. gripper_translate", "refused",
		"> moved the target  \n> pose delta: 0.05 0 0  \n", // hard breaks: a reader of Markdown gets two lines, too
		"![pictures/0001", "**stop** (bob): stopped, confirmed", "Ended", "the agent ended it",
		"Calls: 2, refused: 1. Motions: 1\n", " contact after 1.40 s, stopped, confirmed\n",
	} {
		if !strings.Contains(string(story), want) {
			t.Errorf("the story lacks %q:\n%s", want, story)
		}
	}
}

func TestQuotaTakesTheOldestAndNeverTheRunning(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "record")
	// Somebody keeps things of their own there; their names are older than any episode's.
	foreign := []string{"0-not-an-episode", "0-my-episode-notes", "0001-01-01-episode-001", "0001-01-01T00-00-00.000-episode-001"}
	for _, name := range foreign {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "notes.txt"), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, Options{Folder: folder, Quota: 1 << 20})
	for n := 1; n <= 5; n++ {
		r.Begin(n)
		r.Call(call(1, 300<<10))
		r.flush()
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		if slices.Contains(foreign, e.Name()) {
			continue
		}
		_, n, _ := strings.Cut(e.Name(), "-episode-")
		left = append(left, n)
	}
	if got := strings.Join(left, " "); got != "003 004 005" {
		t.Errorf("episodes left: %s", got)
	}
	for _, name := range foreign {
		if b, err := os.ReadFile(filepath.Join(folder, name, "notes.txt")); err != nil || string(b) != "mine" {
			t.Errorf("a folder that is not an episode was removed: %s: %v", name, err)
		}
	}
	size, err := Disk{}.Size(folder)
	if err != nil || size > 1<<20 || math.Abs(float64(size-r.Status().Bytes)) > 4096 {
		t.Errorf("on disk %d, counted %d, %v", size, r.Status().Bytes, err)
	}
	for range 4 {
		r.Call(call(1, 300<<10))
	}
	r.flush()
	if s := r.Status(); s.Folder != "" || !strings.Contains(s.Warning, "record.quota") {
		t.Errorf("the running episode alone is over the quota: %+v", s)
	}
}

// full is a disk that takes so many bytes and no more.
type full struct {
	Disk
	mu   sync.Mutex
	left int
}

type fullFile struct {
	File
	f *full
}

func (f *full) take(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > f.left {
		return &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}
	f.left -= n
	return nil
}

func (f *full) Append(path string) (File, error) {
	file, err := f.Disk.Append(path)
	return fullFile{file, f}, err
}

func (f *full) Write(path string, b []byte) error {
	if err := f.take(len(b)); err != nil {
		return err
	}
	return f.Disk.Write(path, b)
}

func (f fullFile) Write(b []byte) (int, error) {
	if err := f.f.take(len(b)); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func TestFullDiskStopsTheRecordingOnceAndNothingElse(t *testing.T) {
	disk := &full{left: probeSize + 10_000}
	r := start(t, Options{Folder: filepath.Join(t.TempDir(), "record"), Files: disk})
	r.Begin(1)
	for i := range 20 {
		r.Call(call(i, 1500))
	}
	r.flush()
	if s := r.Status(); s.Folder != "" || !strings.Contains(s.Warning, "is full") {
		t.Fatalf("%+v", s)
	}
	if n := strings.Count(r.log.String(), "recording stopped"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, r.log)
	}
	disk.mu.Lock()
	disk.left = 1 << 20
	disk.mu.Unlock()
	r.Begin(2)
	r.Call(call(1, 1500))
	r.flush()
	if s := r.Status(); s.Folder == "" || s.Warning != "" {
		t.Errorf("the next episode is recorded again: %+v", s)
	}
	if _, err := New(Options{Folder: t.TempDir(), Files: &full{}, Clock: robot.WallClock{}}); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("a disk that is full at the start: %v", err)
	}
}

// The same on a real file system of 1.1 MB, where the machine lets us mount one.
func TestARealFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1100k"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	r := start(t, Options{Folder: filepath.Join(dir, "record")})
	r.Begin(1)
	for i := range 20 {
		r.Call(call(i, 100<<10))
	}
	r.flush()
	if s := r.Status(); !strings.Contains(s.Warning, "is full") {
		t.Errorf("%+v", s)
	}
	r.end()
	if _, err := New(Options{Folder: filepath.Join(dir, "other"), Clock: robot.WallClock{}}); err == nil {
		t.Error("a full disk was taken at the start")
	}
}

func TestACallerNeverWaits(t *testing.T) {
	rec, err := New(Options{Folder: t.TempDir(), Clock: robot.WallClock{}, Quota: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	for range queueLen + 5 { // nobody runs it
		rec.State(robot.State{})
	}
	if n := rec.dropped.Load(); n != 5 {
		t.Errorf("dropped %d", n)
	}
}

func TestTheDaemonsEndClosesTheEpisode(t *testing.T) {
	folder := t.TempDir()
	r := start(t, Options{Folder: folder})
	r.Begin(1)
	r.flush()
	dir := r.Status().Folder
	r.Call(call(1, 10))
	r.end()
	var h head
	b, err := os.ReadFile(filepath.Join(dir, "episode.json"))
	if err != nil || json.Unmarshal(b, &h) != nil || h.Verdict != "the daemon was stopped" {
		t.Errorf("%+v %v", h, err)
	}
	if calls := readLines[callLine](t, filepath.Join(dir, "calls.jsonl")); len(calls) != 1 {
		t.Errorf("what was handed over before the end is kept: %d calls", len(calls))
	}
}

// TestTheStoryTakesNoOrders: what an agent sends cannot make HTML, links or pictures of it.
func TestTheStoryTakesNoOrders(t *testing.T) {
	r := start(t, Options{Folder: t.TempDir()})
	r.Begin(1)
	evil := "<img src=x onerror=alert(1)> ![p](http://evil/p.png) [a][b]"
	c := call(1, 0)
	c.Args, c.Readout, c.Principal, c.Pictures = []byte("{\"a`](x) <b>\":1}"), []string{evil, "[b]: http://evil"}, "<i>", nil
	r.Call(c)
	r.Decide(Decision{Kind: "stop", Who: "<i>", Text: evil})
	r.End(evil)
	r.flush()
	names, err := filepath.Glob(filepath.Join(r.opt.Folder, "*", "index.md"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	story, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(story), "``")
	args, rest, _ := strings.Cut(after, "``")
	if args != " {\"a`](x) <b>\":1} " {
		t.Errorf("arguments are not code:\n%s", story)
	}
	rest = strings.ReplaceAll(strings.ReplaceAll(rest, `\<`, ""), `\[`, "")
	for _, bad := range []string{"<", "](", "][", "> [b]:"} {
		if strings.Contains(rest, bad) {
			t.Errorf("%q in the story:\n%s", bad, story)
		}
	}
}

// TestOfForeignTextOnlyTheStartIsKept: who sends megabytes cannot push the old episodes over the quota.
func TestOfForeignTextOnlyTheStartIsKept(t *testing.T) {
	r := start(t, Options{Folder: t.TempDir()})
	r.Begin(1)
	c := call(1, 0)
	c.Args, c.ID, c.Pictures = []byte(`{"u":"`+strings.Repeat("é", 500_000)+`"}`), strings.Repeat("i", 1<<20), nil
	r.Call(c)
	r.flush()
	if n := r.Status().Bytes; n > 40<<10 {
		t.Errorf("%d bytes were kept", n)
	}
	calls := readLines[callLine](t, filepath.Join(r.Status().Folder, "calls.jsonl"))
	if len(calls) != 1 || !strings.Contains(string(calls[0].Args), "(1000008 bytes)") || !strings.HasPrefix(string(calls[0].Args), `"{\"u\":\"éé`) {
		t.Errorf("got %.100s", calls[0].Args)
	}
}

// TestWhatIsMissingIsSaid: the disk was too slow for what was handed over.
func TestWhatIsMissingIsSaid(t *testing.T) {
	r := start(t, Options{Folder: t.TempDir()})
	r.Begin(1)
	r.flush()
	r.dropped.Add(3) // as put counts them
	r.State(robot.State{})
	r.flush()
	if w := r.Status().Warning; !strings.Contains(w, "3 entries are missing") {
		t.Errorf("warning %q", w)
	}
	r.Begin(2)
	r.flush()
	if w := r.Status().Warning; w != "" {
		t.Errorf("the next episode misses nothing: %q", w)
	}
}

func TestNamesOfPicturesAreSafe(t *testing.T) {
	if got := plain("../../Etc/passwd\x00 ü"); strings.ContainsAny(got, "/.\x00 ") {
		t.Errorf("%q", got)
	}
}
