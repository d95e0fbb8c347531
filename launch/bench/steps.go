package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"viad/sim"
	"viad/sim/mj"
	"viad/sim/model"
)

// stepsResult is steps per CPU second of one robot, round by round.
type stepsResult struct {
	robot, world         string
	twin, loop           series // thousands of steps per CPU second
	ratio                series
	realTime             float64 // how many times real time the twin runs, by the median
	contacts, contactsMJ int     // at the end of the last round: both carry the same load
}

// measureSteps runs the twin with its servo, and MuJoCo's own loop in C on the same model, in turns.
func measureSteps(ctx context.Context, robot, world string, o options) (res stepsResult, err error) {
	res.robot, res.world = robot, world
	t, err := sim.NewTwin(sim.Options{Robot: robot, World: world, Seed: 1, Pace: sim.PaceFast})
	if err != nil {
		return res, err
	}
	defer t.Close()
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- t.Run(run) }()
	l, err := newLoop(robot, world)
	if err != nil {
		return res, err
	}
	defer l.close()
	n := int(o.physics / l.dt)
	for i := range o.rounds + 1 {
		// Both start every round from the start posture in the same world.
		if err := t.Reset(ctx, 1); err != nil {
			return res, err
		}
		runtime.GC()
		a, err := twinRound(t, l.dt, n)
		if err != nil {
			return res, err
		}
		b, err := l.round(n)
		if err != nil {
			return res, err
		}
		if i == 0 {
			continue // caches
		}
		res.twin, res.loop, res.ratio = append(res.twin, a/1e3), append(res.loop, b/1e3), append(res.ratio, a/b)
	}
	res.realTime = res.twin.median() * 1e3 * l.dt.Seconds()
	res.contacts, res.contactsMJ = len(t.Truth().Contacts), l.d.NContact()
	cancel()
	return res, <-ended
}

// twinRound lets n steps of physics time pass, as somebody who looks ten times a second, and returns steps per
// second of CPU time of this whole process, which does nothing else meanwhile.
func twinRound(t *sim.Twin, dt time.Duration, n int) (float64, error) {
	const look = 100 * time.Millisecond
	from := t.Clock().Now()
	begin, err := cpuTime()
	if err != nil {
		return 0, err
	}
	for left := time.Duration(n) * dt; left > 0; left -= look {
		<-t.Clock().After(min(look, left))
	}
	end, err := cpuTime()
	if err != nil {
		return 0, err
	}
	steps := t.Clock().Now().Sub(from) / dt
	if int(steps) < n {
		return 0, fmt.Errorf("the twin made %d of %d steps", steps, n)
	}
	return float64(steps) / (end - begin).Seconds(), nil
}

// cpuTime is what all threads of this process have used so far.
func cpuTime() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return 0, fmt.Errorf("CPU time: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// loop is MuJoCo alone: mj_step in C, the robot held by constant controls.
type loop struct {
	m     *mj.Model
	start *mj.Data // everything at rest
	d     *mj.Data
	dt    time.Duration
}

func newLoop(robot, world string) (*loop, error) {
	meta, err := model.Build(model.Spec{Robot: robot, World: world, Seed: 1})
	if err != nil {
		return nil, err
	}
	l := &loop{}
	if l.m, err = mj.Load(meta.XML); err != nil {
		return nil, err
	}
	l.dt = time.Duration(l.m.Timestep() * 1e9)
	if l.start, err = l.m.NewData(); err != nil {
		return nil, err
	}
	if l.d, err = l.m.NewData(); err != nil {
		return nil, err
	}
	return l, l.settle(meta)
}

func (l *loop) close() {
	for _, d := range []*mj.Data{l.d, l.start} {
		if d != nil {
			d.Close()
		}
	}
	l.m.Close()
}

// settle puts the robot into its start posture, lets loose things come to rest, and leaves the controls that
// hold the robot there.
func (l *loop) settle(meta *model.Model) error {
	d := l.start
	q := d.Qpos()
	joint := func(name string) mj.JointInfo { return l.m.JointInfo(l.m.ID(mj.Joint, name)) }
	for _, j := range meta.Joints {
		for _, p := range j.Parts {
			q[joint(p).Qpos] = j.Home / float64(len(j.Parts))
		}
	}
	for _, n := range meta.Jaw.Joints {
		q[joint(n).Qpos] = meta.Jaw.Home / 2
	}
	d.Ctrl()[l.m.ID(mj.Actuator, meta.Jaw.Actuator)] = meta.Jaw.Home / 2
	if err := d.Forward(); err != nil {
		return err
	}
	for range 150 {
		if err := d.Step1(); err != nil {
			return err
		}
		for _, j := range meta.Joints {
			u := l.m.ID(mj.Actuator, j.Actuator)
			if j.Drive == model.Position {
				d.Ctrl()[u] = j.Home
			}
			for _, p := range j.Parts {
				i := joint(p)
				if j.Weightless {
					d.Applied()[i.Dof] = d.Bias()[i.Dof]
				}
				if j.Drive == model.Torque {
					d.Ctrl()[u] = d.Bias()[i.Dof]
				}
			}
		}
		if err := d.Step2(); err != nil {
			return err
		}
	}
	return nil
}

// round is n steps from rest, in steps per second of the thread's CPU time.
func (l *loop) round(n int) (float64, error) {
	if err := l.start.CopyTo(l.d); err != nil {
		return 0, err
	}
	return float64(n) / l.d.ProbeLoop(n), nil
}

func stepsTable(rs []stepsResult) table {
	t := table{title: "Steps of the twin", ours: "twin", theirs: "mj_step in C"}
	for _, r := range rs {
		t.rows = append(t.rows, row{
			what: fmt.Sprintf("%s, %s: steps per CPU second", r.robot, r.world),
			ours: perSecond(r.twin), theirs: perSecond(r.loop), ratio: r.ratio.median(), goal: 0.9,
		})
		t.notes = append(t.notes, fmt.Sprintf("%s: %.0f times real time on one core; ratio of single rounds from %s to %s; %d contacts in the twin, %d in the C loop.",
			r.robot, r.realTime, ratioText(r.ratio.percentile(0)), ratioText(r.ratio.percentile(100)), r.contacts, r.contactsMJ))
	}
	t.notes = append(t.notes, "The twin's CPU time is that of the whole process: steps, servo, sensing, states, clock, Go's runtime. MuJoCo's is that of its thread.")
	return t
}

func perSecond(s series) string { return fmt.Sprintf("%.1f k", s.median()) }
