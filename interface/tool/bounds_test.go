package tool_test

import (
	"bytes"
	"image"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"viad/interface/stage"
	"viad/interface/tool"
	"viad/interface/view"
)

// crowded counts how many pictures are painted at once.
type crowded struct {
	tool.Painter
	now, most atomic.Int64
}

func (c *crowded) UI(sn *stage.Snapshot, ov view.Overlay) *image.RGBA {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for m := c.most.Load(); n > m && !c.most.CompareAndSwap(m, n); m = c.most.Load() {
	}
	runtime.Gosched()
	return c.Painter.UI(sn, ov)
}

// TestPicturesAtOnceAreBounded: a picture in the making takes much memory, and clients may ask for hundreds.
func TestPicturesAtOnceAreBounded(t *testing.T) {
	c := &crowded{}
	r := newRig(t, stage.Face3D, setup{tool: func(o *tool.Options) {
		c.Painter = o.Painter
		o.Painter = c
	}})
	a := r.agent(t, "watch")
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() { a.do("screenshot", `{}`) })
	}
	wg.Wait()
	if most, limit := c.most.Load(), int64(max(2, runtime.NumCPU())); most < 1 || most > limit {
		t.Errorf("%d pictures at once, want 1 to %d", most, limit)
	}
}

// TestACallIsOneLineInTheLog: what moves, and what is refused. Looks and edits are in the record, and their lines are
// for debugging, as are the library's own two for each.
func TestACallIsOneLineInTheLog(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, stage.Face3D, setup{tool: func(o *tool.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) }})
	a := r.agent(t, "drive")
	log.Reset()
	a.good("gripper_translate", `{"d_x":0.01}`)
	a.good("screenshot", `{}`)
	if log.Len() > 0 {
		t.Errorf("an edit and a look:\n%s", log.String())
	}
	a.good("execute_waypoint", `{}`)
	a.refused("gripper_translate", `{"d_x":7}`)
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines for two calls:\n%s", n, log.String())
	}
}
