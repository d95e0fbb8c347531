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
	rest                 series  // CPU time of the process's other threads, as a share of the twin's
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
	ended, tid := make(chan error, 1), make(chan int, 1)
	go func() {
		runtime.LockOSThread() // so that its CPU time can be read; the thread ends with it
		tid <- unix.Gettid()
		ended <- t.Run(run)
	}()
	thread := cpuClock(<-tid)
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
		a, rest, err := twinRound(t, thread, l.dt, n)
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
		res.rest = append(res.rest, rest)
	}
	res.realTime = res.twin.median() * 1e3 * l.dt.Seconds()
	res.contacts, res.contactsMJ = len(t.Truth().Contacts), l.d.NContact()
	cancel()
	return res, <-ended
}

// twinRound lets n steps of physics time pass and returns steps per second of CPU time of the twin's thread, and
// what the rest of the process used meanwhile, as a share of that.
func twinRound(t *sim.Twin, thread cpuClock, dt time.Duration, n int) (rate, rest float64, err error) {
	from := t.Clock().Now()
	var at [4]time.Duration
	read := func(i int, c cpuClock) {
		if err == nil {
			at[i], err = c.read()
		}
	}
	read(0, wholeProcess)
	read(1, thread)
	<-t.Clock().After(time.Duration(n) * dt)
	read(2, thread)
	read(3, wholeProcess)
	if err != nil {
		return 0, 0, err
	}
	steps := t.Clock().Now().Sub(from) / dt
	if int(steps) < n {
		return 0, 0, fmt.Errorf("the twin made %d of %d steps", steps, n)
	}
	twin, all := (at[2] - at[1]).Seconds(), (at[3] - at[0]).Seconds()
	return float64(steps) / twin, all/twin - 1, nil
}

// cpuClock is a thread of this process by its id; Linux has a clock for its CPU time.
type cpuClock int

// wholeProcess is all threads of this process.
const wholeProcess cpuClock = -1

func (c cpuClock) read() (time.Duration, error) {
	id := int32(unix.CLOCK_PROCESS_CPUTIME_ID)
	if c != wholeProcess {
		id = int32(^int(c)<<3 | 4 | 2) // linux/posix-timers.h: of a thread, the scheduler's time
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
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
		t.notes = append(t.notes, fmt.Sprintf("%s: %.0f times real time on one core; ratio of single rounds from %s to %s; %d contacts in the twin, %d in the C loop. CPU time is that of the thread that steps; the process's other threads took %.0f %% more beside the twin's.",
			r.robot, r.realTime, ratioText(r.ratio.percentile(0)), ratioText(r.ratio.percentile(100)), r.contacts, r.contactsMJ, 100*r.rest.median()))
	}
	return t
}

func perSecond(s series) string { return fmt.Sprintf("%.1f k", s.median()) }
