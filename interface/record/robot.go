package record

import (
	"context"
	"fmt"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// Motion is a plan or an outcome in the record.
type Motion struct {
	FromSeq  uint64      `json:"from_seq,omitempty"`
	Kind     int         `json:"waypoint_kind"`
	Start    *PoseLine   `json:"start,omitempty"`
	Ordered  *PoseLine   `json:"ordered,omitempty"`
	Realized *PoseLine   `json:"realized,omitempty"`
	EndQ     []float64   `json:"end_q,omitempty"`
	EndBase  *[3]float64 `json:"end_base_xy_yaw,omitempty"`
	JawOpen  *bool       `json:"jaw_open,omitempty"`
	PlannedS float64     `json:"planned_s"`
	TookS    float64     `json:"took_s,omitempty"`
	Deadline string      `json:"deadline,omitempty"`
	Result   string      `json:"result,omitempty"`
	Stop     string      `json:"stop,omitempty"`
}

// PoseLine is a pose: position in metres and rotation quaternion w, x, y, z.
type PoseLine struct {
	P [3]float64 `json:"p"`
	Q [4]float64 `json:"q_wxyz"`
}

func poseLine(p geom.Pose) *PoseLine {
	return &PoseLine{[3]float64{p.P.X, p.P.Y, p.P.Z}, [4]float64{p.R.Real, p.R.Imag, p.R.Jmag, p.R.Kmag}}
}

// Robot is a robot.Robot around another that records every go, outcome and stop, and the states between.
type Robot struct {
	robot.Robot
	Rec   *Recorder
	Clock robot.Clock
	Every time.Duration // between recorded states while moving; 0 records none
}

// Go records the plan, the states on the way and the outcome.
func (r Robot) Go(ctx context.Context, p robot.Plan) (robot.Outcome, error) {
	received := r.State().Received
	r.Rec.Decide(Decision{
		Kind: "go", Text: fmt.Sprintf("a motion of %.2f s planned from reading %d", p.Traj.Duration().Seconds(), p.FromSeq),
		Motion: plan(p), Ages: &AgesMillis{millis(r.Clock.Now().Sub(received))},
	})
	stop := r.sample()
	out, err := r.Robot.Go(ctx, p)
	stop()
	if err != nil {
		r.Rec.Decide(Decision{Kind: "outcome", Text: "not moved: " + err.Error()})
		return out, err
	}
	text := fmt.Sprintf("%s after %.2f s, %s", out.Result, out.Took.Seconds(), out.Stop)
	if out.Why != "" {
		text += ": " + out.Why
	}
	r.Rec.Decide(Decision{Kind: "outcome", Text: text, Motion: outcome(p, out)})
	return out, nil
}

// Stop records that a stop was asked for and whether standstill was measured.
func (r Robot) Stop(ctx context.Context) error {
	err := r.Robot.Stop(ctx)
	text := robot.StopConfirmed.String() + ", asked for by " + robot.Asker(ctx)
	if err != nil {
		text = err.Error()
	}
	r.Rec.Decide(Decision{Kind: "stop", Text: text})
	return err
}

// sample records states until the returned function is called, which waits for the last.
func (r Robot) sample() func() {
	if r.Every <= 0 {
		return func() {}
	}
	tick := r.Clock.Ticker(r.Every)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer tick.Stop()
		for {
			select {
			case <-tick.C():
				r.Rec.State(r.State())
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

func plan(p robot.Plan) *Motion {
	m := &Motion{
		FromSeq: p.FromSeq, Kind: int(p.Waypoint.Kind), Start: poseLine(p.Start), Ordered: poseLine(p.End),
		EndQ: finite(p.EndQ), EndBase: &[3]float64{p.EndBase.X, p.EndBase.Y, p.EndBase.Yaw}, PlannedS: p.Traj.Duration().Seconds(),
	}
	if k := p.Waypoint.Kind; k == robot.KindJaw || k == robot.KindPoseJaw {
		open := p.Waypoint.Jaw.Open
		m.JawOpen = &open
	}
	if !p.Deadline.IsZero() {
		m.Deadline = p.Deadline.UTC().Format(timeForm)
	}
	return m
}

func outcome(p robot.Plan, o robot.Outcome) *Motion {
	return &Motion{
		FromSeq: p.FromSeq, Kind: int(p.Waypoint.Kind), Ordered: poseLine(o.Ordered), Realized: poseLine(o.Realized),
		PlannedS: o.Planned.Seconds(), TookS: o.Took.Seconds(), Result: o.Result.String(), Stop: o.Stop.String(),
	}
}
