package safety

import (
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"viad/drivers/robot"
)

// TestRefusalsCarryTheirNumbers: a refused motion is one structured line, with the numbers that decided it.
func TestRefusalsCarryTheirNumbers(t *testing.T) {
	away := func(f func(*robot.State)) func(*bench, *robot.Plan) {
		return func(b *bench, _ *robot.Plan) {
			b.robot.set(func() {
				b.robot.state = func(now time.Time) robot.State {
					s := restAt(now, 0, 0, 0.5)
					f(&s)
					return s
				}
			})
		}
	}
	for name, c := range map[string]struct {
		rule    string
		numbers []string
		limits  func(*Limits)
		to      stop
		spoil   func(*bench, *robot.Plan)
	}{
		"old state":    {RuleState, []string{"age", "limit"}, nil, at3(0.1, 0, 0.5), away(func(s *robot.State) { s.Received = s.Received.Add(-time.Second) })},
		"out of range": {RuleState, []string{"position", "past"}, nil, at3(0.1, 0, 0.5), away(func(s *robot.State) { s.Q[1] = 57 })},
		"it moves":     {RuleBusy, []string{"speed", "limit"}, nil, at3(0.1, 0, 0.5), away(func(s *robot.State) { s.QD[1] = 0.1 })},
		"moved":        {RuleMoved, []string{"moved", "turned", "moved_limit", "turned_limit"}, nil, at3(0.1, 0, 0.5), away(func(s *robot.State) { s.Q[0] = 0.01 })},
		"joint":        {RuleJoint, []string{"position", "min", "max", "margin"}, func(l *Limits) { l.SlideMargin = 0.02 }, at3(0, 0.99, 0.5), nil},
		"box":          {RuleBox, []string{"at", "min", "max"}, func(l *Limits) { l.ToolBox = &Box{X: Span{-0.2, 0.2}, Y: Span{-1, 1}, Z: Span{0, 1}} }, at3(0.3, 0, 0.5), nil},
		"speed":        {RuleSpeed, []string{"speed", "limit"}, func(l *Limits) { l.ToolSpeed = 0.1 }, at3(0.3, 0, 0.5), nil},
		"clearance":    {RuleClearance, []string{"distance", "margin", "way", "x", "y", "z"}, nil, at3(0, 0, -0.07), nil},
		"cap":          {RuleCap, []string{"left"}, nil, at3(0.1, 0, 0.5), func(b *bench, p *robot.Plan) { p.Deadline = b.clock.Now() }},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(o *Options) {
				if c.limits != nil {
					c.limits(&o.Limits)
				}
			})
			b.guard.log = slog.New(slog.NewJSONHandler(b.log, nil))
			p := path(b.kin, b.robot.State(), c.to)
			if c.spoil != nil {
				c.spoil(b, &p)
			}
			_, err := b.guard.Go(t.Context(), p)
			lines := strings.Split(strings.TrimSpace(b.log.buf.String()), "\n")
			if refusal(err) != c.rule || len(lines) != 1 {
				t.Fatalf("%s: %v, lines:\n%s", name, err, b.log.buf.String())
			}
			line := map[string]json.RawMessage{}
			if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
				t.Fatal(err)
			}
			for _, n := range c.numbers {
				var x float64
				if err := json.Unmarshal(line[n], &x); err != nil || math.IsNaN(x) {
					t.Errorf("%s: no number %q in %s", name, n, lines[0])
				}
			}
		})
	}
}
