package record

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
)

// mover is a robot whose motion lasts until the test lets it end.
type mover struct {
	end chan struct{}
	err error
}

func (m mover) State() robot.State {
	return robot.State{Seq: 3, Q: []float64{0.5}, Mode: robot.ModeMoving, Received: time.Now()}
}

func (m mover) Go(context.Context, robot.Plan) (robot.Outcome, error) {
	<-m.end
	return robot.Outcome{Result: robot.ResultContact, Stop: robot.StopConfirmed, Why: "touched at 12 N", Took: time.Second}, m.err
}

func (m mover) Stop(context.Context) error { return errors.New("standstill was not measured") }

// handTicks is a clock whose ticks the test gives.
type handTicks struct {
	robot.WallClock
	c chan time.Time
}

func (h handTicks) Ticker(time.Duration) robot.Ticker { return h }
func (h handTicks) C() <-chan time.Time               { return h.c }
func (h handTicks) Stop()                             {}

func TestRobotRecordsGoStatesOutcomeAndStop(t *testing.T) {
	r := start(t, Options{Folder: t.TempDir()})
	r.Begin(1)
	ticks, m := handTicks{c: make(chan time.Time)}, mover{end: make(chan struct{})}
	rob := Robot{Robot: m, Rec: r.Recorder, Clock: ticks, Every: time.Millisecond}
	done := make(chan error)
	go func() {
		_, err := rob.Go(t.Context(), robot.Plan{
			FromSeq: 3, Start: geom.At(.4, 0, .3), End: geom.At(.5, 0, .2),
			Waypoint: robot.Waypoint{Kind: robot.KindPoseJaw, Jaw: robot.JawTarget{Open: true}},
		})
		done <- err
	}()
	for range 3 {
		ticks.c <- time.Now()
	}
	close(m.end)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := rob.Stop(t.Context()); err == nil {
		t.Error("the error of Stop was swallowed")
	}
	r.flush()
	dir := r.Status().Folder
	d := readLines[decisionLine](t, dir+"/decisions.jsonl")
	if len(d) != 3 || d[0].Kind != "go" || d[1].Kind != "outcome" || d[2].Kind != "stop" {
		t.Fatalf("%+v", d)
	}
	if d[0].Motion.Ordered.P != [3]float64{.5, 0, .2} || !*d[0].Motion.JawOpen || d[0].Ages.State < 0 {
		t.Errorf("%+v", d[0].Motion)
	}
	if d[1].Motion.Result != "contact" || !strings.Contains(d[1].Text, "touched at 12 N") || d[2].Text != "standstill was not measured" {
		t.Errorf("%+v", d[1:])
	}
	if s := readLines[stateLine](t, dir+"/states.jsonl"); len(s) < 2 || s[0].Q[0] != .5 {
		t.Errorf("%+v", s)
	}
}
