package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"viad/ros/dds"
	"viad/ros/interop"
)

// rosResult is pictures from one Fast DDS publisher in C++ to our subscriber and to a Fast DDS subscriber in C++.
type rosResult struct {
	rate         float64
	count        int // pictures in all
	ours, theirs rosSeries
}

// rosSeries is one measurement per round.
type rosSeries struct{ cpu, p50, p99 series } // ms per picture

// measureROS runs both subscribers side by side on the same publisher, which serves them in turns as the first.
func measureROS(ctx context.Context, rate float64, o options) (res rosResult, err error) {
	res.rate = rate
	for i := range o.pictureRounds {
		ours, theirs, err := rosRound(ctx, rate, o.pictures, i%2 == 0)
		if err != nil {
			return res, err
		}
		n := float64(o.pictures)
		if theirs.N != ours.N {
			return res, fmt.Errorf("of %d pictures %d came to us and %d to Fast DDS", o.pictures, ours.N, theirs.N)
		}
		res.count += o.pictures
		res.ours.add(ours, n)
		res.theirs.add(theirs, n)
	}
	return res, nil
}

func (s *rosSeries) add(e interop.Event, n float64) {
	s.cpu, s.p50, s.p99 = append(s.cpu, 1e3*e.CPU/n), append(s.p50, e.P50), append(s.p99, e.P99)
}

func rosRound(ctx context.Context, rate float64, count int, first bool) (ours, theirs interop.Event, err error) {
	domain, release, err := interop.Domain()
	if err != nil {
		return ours, theirs, err
	}
	defer release()
	n, err := dds.Open(dds.Config{Node: "bench", Domain: domain, Localhost: true})
	if err != nil {
		return ours, theirs, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	limit, cancel := context.WithTimeout(ctx, time.Minute+time.Duration(float64(count)/rate*float64(time.Second)))
	defer cancel()
	return interop.Contest{Side: interop.NodeSide{Node: n, Borrow: true}, Domain: domain, Rate: rate, Count: count, First: first}.Run(limit)
}

// rosTable compares. Their figure over ours: larger is better for us.
func rosTable(rs []rosResult) table {
	t := table{title: "A picture of 1 MB over DDS", ours: "viad", theirs: "Fast DDS"}
	ms := func(s series) string { return fmt.Sprintf("%.2f ms", s.median()) }
	for _, r := range rs {
		at := fmt.Sprintf("%.0f pictures a second: ", r.rate)
		a, b := r.ours, r.theirs
		t.rows = append(
			t.rows,
			row{at + "CPU time per picture", ms(a.cpu), ms(b.cpu), b.cpu.median() / a.cpu.median(), 1},
			row{at + "latency, p50", ms(a.p50), ms(b.p50), b.p50.median() / a.p50.median(), 1 / 1.2},
			row{at + "latency, p99", ms(a.p99), ms(b.p99), b.p99.median() / a.p99.median(), 0},
		)
	}
	t.notes = append(t.notes, fmt.Sprintf("One publisher in C++ on Fast DDS sends pictures of 1,048,320 bytes, reliable, over UDP on this machine to two subscribers at once: viad's, a `ros.Node` that leaves the pixels where they came, and a program in C++ on Fast DDS 2.9.1. In every other round it serves the other one first. Latency is from before the publisher's write to the decoded message; CPU time is that of the whole process, kernel included. The figures are medians of %d rounds of %d pictures; the goals are no more CPU time than Fast DDS, and a latency of at most 1.2 times.", len(rs[0].ours.cpu), rs[0].count/len(rs[0].ours.cpu)))
	return t
}
