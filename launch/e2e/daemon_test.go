package e2e

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"testing"
	"time"

	"viad/launch"
	"viad/sim"
)

var (
	seeds   = flag.Int("seeds", 2, "how many seeds each task is run with")
	from    = flag.Int64("from", 1, "the first seed")
	keep    = flag.String("keep", "", "folder that keeps the record of each run")
	verbose = flag.Bool("daemonlog", false, "print the daemon's log")
)

// daemon is one running viad with its twin at full speed.
type daemon struct {
	sys  *launch.System
	twin *sim.Twin
}

// start runs the daemon of a shipped launch file, with the physics as fast as it goes, and stops it at the test's end.
func start(t *testing.T, file string, seed int64) daemon {
	t.Helper()
	c, err := launch.Read("../" + file)
	if err != nil {
		t.Fatal(err)
	}
	c.StateDir = t.TempDir()
	if *keep != "" {
		c.Record.Folder = *keep + "/" + t.Name()
	}
	c.Robot.Seed, c.Robot.Pace, c.Perception.Rate = seed, "fast", 0
	c.Listen.Address = "127.0.0.1:0"
	o := launch.Options{}
	if *verbose {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	s, err := launch.New(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	stop, err := s.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	return daemon{sys: s, twin: s.Twin()}
}

// agentFor connects a client and gives the agent a bound on its time.
func agentFor(t *testing.T, d daemon, dial func(context.Context, string, string) (caller, error)) agent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	c, err := dial(ctx, d.sys.MCP(), d.sys.Token())
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Logf("close client: %v", err)
		}
		cancel()
	})
	return agent{t: t, ctx: ctx, c: c}
}
