package launch

import (
	"context"
	"log/slog"

	"viad/drivers/robot"
	"viad/interface/record"
	"viad/interface/stage"
	"viad/interface/tool"
	"viad/perception"
	"viad/safety"
)

// gate refuses motion that the operator's file wants recorded and that is not. It is a robot.Robot around
// the recorded guard.
type gate struct {
	robot.Robot
	shut func() *safety.Refused
	log  *slog.Logger
}

// Go refuses while the gate is shut.
func (g gate) Go(ctx context.Context, p robot.Plan) (robot.Outcome, error) {
	if r := g.shut(); r != nil {
		g.log.LogAttrs(ctx, slog.LevelWarn, "motion refused", r.Attrs()...)
		return robot.Outcome{}, r
	}
	return g.Robot.Go(ctx, p)
}

// gateCheck is the guard's judgement, which a shut gate makes worse.
type gateCheck struct {
	stage.Checker
	shut func() *safety.Refused
}

// Ready says whether motion is allowed at all now.
func (g gateCheck) Ready() *safety.Refused {
	if r := g.shut(); r != nil {
		return r
	}
	return g.Checker.Ready()
}

// Check judges a plan.
func (g gateCheck) Check(p robot.Plan, sc *perception.Scene) ([]safety.Warning, perception.Hit, *safety.Refused) {
	return g.Checker.Check(p, sc)
}

// gated says why nothing unrecorded may move, when the file asks for that.
func (s *System) gated() *safety.Refused {
	if s.cfg.Record.WhenFull != "refuse_motion" {
		return nil
	}
	st := s.rec.Status()
	if st.Warning == "" {
		return nil
	}
	return &safety.Refused{Rule: "recording", Value: st.Warning, Limit: "record.when_full: refuse_motion", Next: "an operator must make room; then end_episode starts a recorded one"}
}

// episode ends the running episode and begins the next.
type episode struct {
	s    *System
	seed int64
	n    int
}

// End is tool.Episode: a twin's world is put back to a start, placed by the next seed, and the record is closed. When
// the world cannot be put back the episode goes on, and so does its record.
func (e *episode) End(ctx context.Context) (tool.Verdict, error) {
	s := e.s
	var v tool.Verdict
	if s.rig.reset != nil {
		if err := s.rig.reset(ctx, e.seed+1); err != nil {
			s.rec.Decide(record.Decision{Kind: "episode", Text: "it could not be ended, and goes on: " + err.Error()})
			return v, err
		}
		e.seed++
		v.Reset = true
	}
	saved := s.rec.Status()
	v.Saved, v.Note = saved.Folder, saved.Warning
	s.rec.End("ended by end_episode")
	e.n++
	s.rec.Begin(e.n)
	s.rec.Decide(record.Decision{Kind: "episode", Text: e.text()})
	return v, nil
}

func (e *episode) text() string {
	if e.s.rig.reset == nil {
		return "a new episode; the robot stays where it is"
	}
	return "a new episode in a world that was put back to a start"
}
