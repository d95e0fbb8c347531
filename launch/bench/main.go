// Command bench prints ratios that say how quick viad is, each taken side by side with its counterpart in one
// run, and keeps the last run in docs/bench.md. It is run by `make bench`, from the top of the tree, and it is
// no test: machines are noisy, and what is slow fails nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"time"
)

// options say how much is measured.
type options struct {
	edits, shots, blocks int           // staged edits and browser pictures per scene, in so many blocks
	rounds               int           // of physics
	physics              time.Duration // per round, physics time
	moves                int
	pictures             int // over DDS, per round and subscriber
	pictureRounds        int
	keep, out, only, cpu string
	robots, scenes       string
}

func main() {
	var o options
	flag.IntVar(&o.edits, "edits", 200, "staged edits per scene")
	flag.IntVar(&o.shots, "shots", 40, "browser pictures per scene")
	flag.IntVar(&o.blocks, "blocks", 8, "blocks in which the two alternate")
	flag.IntVar(&o.rounds, "rounds", 15, "rounds of physics, twin and C in turns")
	flag.DurationVar(&o.physics, "physics", 2*time.Second, "physics time of a round")
	flag.IntVar(&o.moves, "moves", 10, "executes of a 10 cm move")
	flag.IntVar(&o.pictures, "pictures", 300, "pictures over DDS per round")
	flag.IntVar(&o.pictureRounds, "picture-rounds", 6, "rounds of pictures over DDS; the order changes in each")
	flag.StringVar(&o.keep, "keep", "", "folder that gets the pictures of both ways")
	flag.StringVar(&o.out, "out", "docs/bench.md", "file that keeps the tables of a whole run")
	flag.StringVar(&o.only, "only", "edit,steps,execute,ros", "which parts")
	flag.StringVar(&o.robots, "robots", "fr3,stretch4", "whose physics")
	flag.StringVar(&o.scenes, "scenes", "", "only scenes with these words in their name")
	flag.StringVar(&o.cpu, "cpuprofile", "", "file for a CPU profile of this process, the daemon in it")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:forbidigo // the program's own exit code
	}
}

func run(o options) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if o.blocks < 1 || o.edits < o.blocks || o.shots < o.blocks || o.rounds < 1 || o.moves < 1 || o.pictures < 1 || o.pictureRounds < 1 {
		return errors.New("every count must be at least 1, and edits and shots at least as many as blocks")
	}
	if o.cpu != "" {
		f, err := os.Create(o.cpu)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer func() {
			pprof.StopCPUProfile()
			err = errors.Join(err, f.Close())
		}()
	}
	rep := report{at: time.Now(), machine: machine()}
	for _, part := range []struct {
		name string
		do   func(context.Context, options, *report) error
	}{{"edit", edit}, {"steps", steps}, {"execute", execute}, {"ros", pictures}} {
		if !strings.Contains(o.only, part.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s …\n", part.name)
		n := len(rep.tables)
		if err := part.do(ctx, o, &rep); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		for i := range rep.tables[n:] {
			if err := rep.tables[n+i].write(os.Stdout); err != nil {
				return err
			}
			if _, err := io.WriteString(os.Stdout, "\n"); err != nil {
				return err
			}
		}
	}
	if o.out == "" || len(rep.tables) < 4 || o.scenes != "" {
		return nil
	}
	return rep.save(o.out)
}

func edit(ctx context.Context, o options, rep *report) error {
	var rs []editResult
	for _, c := range editCases() {
		if !strings.Contains(c.name, o.scenes) {
			continue
		}
		r, err := measureEdit(ctx, c, o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rs = append(rs, r)
	}
	if len(rs) == 0 {
		return fmt.Errorf("no scene has %q in its name", o.scenes)
	}
	t := editTable(rs)
	t.notes = append(t.notes, editNotes(rs)...)
	rep.tables = append(rep.tables, t)
	return nil
}

func steps(ctx context.Context, o options, rep *report) error {
	var rs []stepsResult
	for _, c := range [][2]string{{"fr3", "tabletop"}, {"stretch4", "room"}} {
		if !strings.Contains(o.robots, c[0]) {
			continue
		}
		r, err := measureSteps(ctx, c[0], c[1], o)
		if err != nil {
			return err
		}
		rs = append(rs, r)
	}
	rep.tables = append(rep.tables, stepsTable(rs))
	return nil
}

func execute(ctx context.Context, o options, rep *report) error {
	r, err := measureExecute(ctx, o)
	if err == nil {
		rep.tables = append(rep.tables, executeTable(r))
	}
	return err
}

func pictures(ctx context.Context, o options, rep *report) error {
	rs := make([]rosResult, 0, 2)
	for _, rate := range []float64{30, 100} {
		r, err := measureROS(ctx, rate, o)
		if err != nil {
			return fmt.Errorf("at %g pictures a second: %w", rate, err)
		}
		rs = append(rs, r)
	}
	rep.tables = append(rep.tables, rosTable(rs))
	return nil
}
