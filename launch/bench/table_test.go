package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	tb := table{title: "T", ours: "viad", theirs: "browser", notes: []string{"A note."}, rows: []row{
		{what: "p50", ours: "12.0 ms", theirs: "566 ms", ratio: 566.0 / 12, goal: 20},
		{what: "p99 of äll", ours: "195 ms", theirs: "613 ms", ratio: 3.14, goal: 15},
		{what: "shown", ours: "1", theirs: "2", ratio: 2},
	}}
	want := `## T

| what       |    viad | browser | ratio |   goal |        |
| ---------- | ------: | ------: | ----: | -----: | -----: |
| p50        | 12.0 ms |  566 ms |  47.2 | ≥ 20.0 |    met |
| p99 of äll |  195 ms |  613 ms |  3.14 | ≥ 15.0 | MISSED |
| shown      |       1 |       2 |  2.00 |        |        |

A note.
`
	var b strings.Builder
	if err := tb.write(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		ratio, goal float64
		want        string
	}{{0.9, 0.9, "met"}, {0.8999, 0.9, "MISSED"}, {math.NaN(), 0.9, "MISSED"}, {0.1, 0, ""}} {
		if got := (row{ratio: c.ratio, goal: c.goal}).verdict(); got != c.want {
			t.Errorf("ratio %g against %g: %q, want %q", c.ratio, c.goal, got, c.want)
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		ratioText(0.876): "0.88", ratioText(47.166): "47.2", ratioText(123.4): "123", ratioText(math.Inf(1)): "none",
		msText(11.06): "11.1 ms", msText(566.4): "566 ms", msText(math.NaN()): "none",
		thousands(12): "12", thousands(123): "123", thousands(1234): "1,234", thousands(600000): "600,000", thousands(12345678): "12,345,678",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The kept file says when and on what, and nothing that would name the machine.
func TestReport(t *testing.T) {
	r := report{at: time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC), machine: "2 cores, no GPU", tables: []table{{title: "T"}, {title: "U"}}}
	var b strings.Builder
	if err := r.write(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"# Speed", "2031-02-03", "2 cores, no GPU", "\n## T\n", "\n## U\n"} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("the report lacks %q:\n%s", s, b.String())
		}
	}
	if m := machine(); !strings.Contains(m, " cores, ") || strings.ContainsAny(m, "\n") {
		t.Errorf("machine: %q", m)
	}
}

func TestSecondsOfAResult(t *testing.T) {
	text := "executed waypoint 1: done; stop confirmed; took 0.98 s (planned 0.84 s)\nplanned time: 1.20 s\n"
	for label, want := range map[string]float64{"; took ": 0.98, "(planned ": 0.84, "planned time:": 1.2} {
		if got, err := seconds(text, label); err != nil || got != want {
			t.Errorf("%q: %g, %v; want %g", label, got, err, want)
		}
	}
	if _, err := seconds("nothing of the kind", "; took "); err == nil {
		t.Error("no time was found, and no error given")
	}
}
