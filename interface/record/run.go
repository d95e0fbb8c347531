package record

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// syncEvery bounds how much a power cut can take: what was decided about motion is put on the disk at
// once, the rest within this time.
const syncEvery = 2 * time.Second

// writer is the state of Run; only its goroutine touches it.
type writer struct {
	*Recorder
	ep      *episode
	stopped bool  // recording stopped in this episode; the next one tries again
	others  int64 // bytes of the episodes that are closed
}

// Run writes until ctx ends, then closes the episode. Trouble with the disk is not an error of Run: it
// stops the recording, is logged once and stands in Status, and the robot goes on.
func (r *Recorder) Run(ctx context.Context) error {
	w := &writer{Recorder: r}
	w.others = w.measure()
	idle := time.NewTicker(syncEvery)
	defer idle.Stop()
	for {
		select {
		case e := <-r.queue:
			w.handle(e)
		case now := <-idle.C:
			if w.ep != nil {
				w.try(w.ep.sync(now))
			}
		case <-ctx.Done():
			for {
				select {
				case e := <-r.queue:
					w.handle(e)
					continue
				default:
				}
				w.finish(time.Now(), "the daemon was stopped")
				return nil
			}
		}
	}
}

func (w *writer) handle(e entry) {
	switch {
	case e.flushed != nil:
		if w.ep != nil {
			w.try(w.ep.sync(e.wall))
		}
		close(e.flushed)
	case e.begin != 0:
		w.finish(e.wall, "a new episode began")
		w.start(e)
	case e.end != nil:
		w.finish(e.wall, *e.end)
	case w.ep == nil:
		// Between episodes, or stopped: nothing to write to.
	default:
		w.write(e)
	}
	w.publish()
}

func (w *writer) write(e entry) {
	var err error
	switch {
	case e.call != nil:
		err = w.ep.writeCall(e)
	case e.decision != nil:
		if err = w.ep.writeDecision(e); err == nil {
			err = w.ep.sync(e.wall)
		}
	case e.state != nil:
		err = w.ep.writeState(e)
	}
	if err == nil && e.wall.Sub(w.ep.synced) > syncEvery {
		err = w.ep.sync(e.wall)
	}
	if w.try(err) {
		w.trim()
	}
}

func (w *writer) start(e entry) {
	w.stopped = false
	ep, err := openEpisode(w.opt.Files, w.opt.Folder, e.begin, e.wall, w.opt.Info)
	if err == nil {
		w.ep = ep
		w.trim()
		return
	}
	if ep != nil {
		err = errors.Join(err, ep.abandon())
	}
	w.stop(err)
}

func (w *writer) finish(wall time.Time, verdict string) {
	if w.ep == nil {
		return
	}
	ep := w.ep
	w.ep = nil
	w.others += ep.bytes
	if err := ep.close(wall, verdict, w.dropped.Swap(0)); err != nil {
		w.stop(err)
	}
}

// try stops the recording when err is not nil, and reports whether it goes on.
func (w *writer) try(err error) bool {
	if err == nil {
		return true
	}
	ep := w.ep
	w.ep = nil
	w.others += ep.bytes
	w.stop(errors.Join(err, ep.abandon()))
	return false
}

// stop says once, in the log and in the status, that recording has ended for this episode.
func (w *writer) stop(err error) {
	why := fmt.Sprintf("recording stopped: %v; mend that, and the next episode is recorded again", err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		why = fmt.Sprintf("recording stopped: the disk that holds %s is full; free some space, and the next episode is recorded again", w.opt.Folder)
	}
	if !w.stopped {
		w.opt.Log.Warn("recording stopped", "folder", w.opt.Folder, "error", err)
	}
	w.stopped = true
	w.mu.Lock()
	w.status.Warning = why
	w.mu.Unlock()
}

func (w *writer) publish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.Folder, w.status.Bytes = "", w.others
	if w.ep != nil {
		w.status.Folder = w.ep.dir
		w.status.Bytes += w.ep.bytes
		w.status.Warning = ""
		if n := w.dropped.Load(); n > 0 {
			w.status.Warning = fmt.Sprintf("%d entries are missing in the record of this episode: the disk that holds %s is too slow", n, w.opt.Folder)
		}
	}
}

// trim keeps the quota: the oldest episodes go first, the running one never.
func (w *writer) trim() {
	if w.ep.bytes+w.others <= w.opt.Quota {
		return
	}
	for _, dir := range w.closed() {
		if w.ep.bytes+w.others <= w.opt.Quota {
			return
		}
		size, err := w.opt.Files.Size(dir)
		if err == nil {
			err = w.opt.Files.RemoveAll(dir)
		}
		if err != nil {
			w.opt.Log.Warn("an old episode cannot be removed", "folder", dir, "error", err)
			continue
		}
		w.others = max(0, w.others-size)
		w.opt.Log.Info("removed the oldest episode to keep the quota", "folder", dir, "bytes", size)
	}
	if w.ep.bytes > w.opt.Quota {
		w.try(fmt.Errorf("this episode alone is larger than record.quota (%d MiB)", w.opt.Quota>>20))
	}
}

// closed is the folders of episodes that are not running, oldest first.
func (w *writer) closed() []string {
	entries, err := w.opt.Files.ReadDir(w.opt.Folder)
	if err != nil {
		w.opt.Log.Warn("the record folder cannot be listed", "folder", w.opt.Folder, "error", err)
		return nil
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(w.opt.Folder, e.Name())
		if e.IsDir() && w.ours(dir, e.Name()) && (w.ep == nil || dir != w.ep.dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// ours reports whether a folder was made by a recorder: by its name, and by what is in it.
func (w *writer) ours(dir, name string) bool {
	stamp, number, ok := strings.Cut(name, "-episode-")
	if _, err := time.Parse(nameForm, stamp); !ok || err != nil || number == "" || strings.Trim(number, "0123456789") != "" {
		return false
	}
	in, err := w.opt.Files.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range in {
		if e.Name() == headName {
			return true
		}
	}
	return len(in) == 0 || len(in) == 1 && in[0].Name() == "pictures" // one that could not be begun
}

// measure is the size of the episodes of earlier runs.
func (w *writer) measure() int64 {
	var sum int64
	for _, dir := range w.closed() {
		n, err := w.opt.Files.Size(dir)
		if err != nil {
			w.opt.Log.Warn("an old episode cannot be measured", "folder", dir, "error", err)
		}
		sum += n
	}
	return sum
}
