package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// row is one comparison: two measurements of one run and their ratio.
type row struct {
	what   string
	ours   string
	theirs string
	ratio  float64 // larger is better where there is a goal
	goal   float64 // least ratio; 0: none is set
}

// verdict says whether the goal was met.
func (r row) verdict() string {
	switch {
	case r.goal == 0:
		return ""
	case r.ratio >= r.goal:
		return "met"
	default:
		return "MISSED"
	}
}

// table is rows under a heading.
type table struct {
	title        string
	ours, theirs string // headings of the two measurements
	rows         []row
	notes        []string // paragraphs below it
}

// write prints the table as Markdown that is also legible as plain text.
func (t *table) write(w io.Writer) error {
	cells := make([][]string, 0, 1+len(t.rows))
	cells = append(cells, []string{"what", t.ours, t.theirs, "ratio", "goal", ""})
	for _, r := range t.rows {
		goal := ""
		if r.goal != 0 {
			goal = "≥ " + ratioText(r.goal)
		}
		cells = append(cells, []string{r.what, r.ours, r.theirs, ratioText(r.ratio), goal, r.verdict()})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", t.title)
	writeCells(&b, cells)
	for _, n := range t.notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeCells aligns the columns; numbers stand on the right from the second column on.
func writeCells(b *strings.Builder, cells [][]string) {
	width := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, c := range line {
			width[i] = max(width[i], utf8.RuneCountInString(c), 3)
		}
	}
	for n, line := range cells {
		for i, c := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i == 0 {
				fmt.Fprintf(b, "| %s%s ", c, pad)
			} else {
				fmt.Fprintf(b, "| %s%s ", pad, c)
			}
		}
		b.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i, w := range width {
			if i == 0 {
				fmt.Fprintf(b, "| %s ", strings.Repeat("-", w))
			} else {
				fmt.Fprintf(b, "| %s: ", strings.Repeat("-", w-1))
			}
		}
		b.WriteString("|\n")
	}
}

// ratioText has three digits where that says something, and never more than two decimals.
func ratioText(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "none"
	case math.Abs(x) >= 100:
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// msText is milliseconds with as many digits as they deserve.
func msText(ms float64) string {
	switch {
	case math.IsNaN(ms):
		return "none"
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f ms", ms)
	}
}
