package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// executeResult is seconds per execute of a 10 cm move.
type executeResult struct {
	planned, took, wall series
	behind              series // of planned time, on the wall
	overhead            series // wall less planned
}

// measureExecute moves the gripper 10 cm to and fro on the twin in real time, the daemon as shipped.
func measureExecute(ctx context.Context, o options) (res executeResult, err error) {
	d, err := start(ctx, "twin-franka.yaml", nil, nil)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	by := 0.1
	for range o.moves {
		r, err := d.call(ctx, "gripper_translate", shift{Y: by})
		if err != nil {
			return res, err
		}
		planned, err := seconds(r.text, "planned time:")
		if err != nil {
			return res, err
		}
		t := time.Now()
		if r, err = d.call(ctx, "execute_waypoint", none{}); err != nil {
			return res, err
		}
		wall := time.Since(t).Seconds()
		took, err := seconds(r.text, "; took ")
		if err != nil {
			return res, err
		}
		res.planned, res.took, res.wall = append(res.planned, planned), append(res.took, took), append(res.wall, wall)
		res.behind, res.overhead = append(res.behind, wall/planned), append(res.overhead, wall-planned)
		by = -by
	}
	return res, nil
}

func executeTable(r executeResult) table {
	s := func(x series, p float64) string { return fmt.Sprintf("%.2f s", x.percentile(p)) }
	settle, rest := make(series, 0, len(r.wall)), make(series, 0, len(r.wall))
	for i := range r.wall {
		settle, rest = append(settle, 1e3*(r.took[i]-r.planned[i])), append(rest, 1e3*(r.wall[i]-r.took[i]))
	}
	return table{
		title: "An execute of a 10 cm move", ours: "whole call", theirs: "planned motion",
		rows: []row{
			{what: "Franka, real time, p50", ours: s(r.wall, 50), theirs: s(r.planned, 50), ratio: r.behind.percentile(50)},
			{what: "Franka, real time, slowest", ours: s(r.wall, 100), theirs: s(r.planned, 100), ratio: r.behind.percentile(100)},
		},
		notes: []string{fmt.Sprintf("Beyond the planned time a call takes %.0f ms at p50: the motion %.0f ms more than planned (settling, standstill measured), and %.0f ms besides (plan and check before, a new scene and its picture after, HTTP).",
			1e3*r.overhead.percentile(50), settle.percentile(50), rest.percentile(50))},
	}
}
