package launch

import (
	"context"
	"path/filepath"
	"testing"

	"viad/drivers/robot"
	"viad/interface/record"
	"viad/interface/tool"
)

// TestAWatcherFillsNeitherTheRecordNorThePage: whoever looks all day pushes no earlier episode over the quota, and the
// page goes on showing what the driver was sent.
func TestAWatcherFillsNeitherTheRecordNorThePage(t *testing.T) {
	folder := t.TempDir()
	rec, err := record.New(record.Options{Folder: folder, Quota: 1 << 30, Clock: robot.WallClock{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rec.Run(ctx) }()
	rec.Begin(1)
	w := &watch{rec: rec, clock: robot.WallClock{}, holder: func() string { return "ann" }}
	look := func(who, role, jpeg string) {
		w.Call(tool.Record{Principal: who, Role: role, Tool: "screenshot", Pictures: []tool.Picture{{View: "ui", JPEG: []byte(jpeg)}}})
	}
	look("ann", "driver", "hers")
	for range 50 { // well within a second
		look("wat", "watcher", "his")
		look("bob", "driver", "another's")
		w.Call(tool.Record{Principal: "wat", Role: "watcher", Tool: "camera_get_pose"})
	}
	look("ann", "driver", "hers again")
	if err := rec.Flush(t.Context().Done()); err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob(filepath.Join(folder, "*", "pictures", "*.jpg"))
	if err != nil || len(pictures) < 4 || len(pictures) > 6 {
		t.Errorf("%d pictures recorded, want the driver's two and one of each of the others: %v", len(pictures), err)
	}
	if n, shown := w.Shown(); n != 2 || len(shown) != 1 || string(shown[0].JPEG) != "hers again" {
		t.Errorf("the page shows %d, %+v", n, shown)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
