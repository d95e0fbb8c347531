// Package safety says no. A Guard is a robot.Robot around a robot.Robot; nothing else is handed out.
package safety

import (
	"fmt"
	"log/slog"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"
)

// Refused is a rule that was not met. Its text names the rule, the value, the limit and the next step;
// its reader is an agent choosing its next waypoint or a person beside the robot.
type Refused struct {
	Rule  string // short name: "workspace box", "joint limit", "clearance", "not armed", ...
	Value string // what was asked or measured, with unit
	Limit string // what is allowed, with unit
	Next  string // what to do instead, one clause

	Numbers []Number // what decided it, for the log; SI units
}

// Warning is what may happen and is allowed: a contact of the fingers or of what they hold.
type Warning struct {
	Text string
	At   r3.Vec // where it is seen; odometry frame
}

// Number is one measured or allowed amount by its name.
type Number struct {
	Name  string
	Value float64
}

// Attrs are the refusal as one structured line has it.
func (r *Refused) Attrs() []slog.Attr {
	out := make([]slog.Attr, 0, 3+len(r.Numbers))
	out = append(out, slog.String("rule", r.Rule), slog.String("value", r.Value), slog.String("limit", r.Limit))
	for _, n := range r.Numbers {
		out = append(out, slog.Float64(n.Name, n.Value))
	}
	return out
}

// found is a refusal.
func found(rule, value, limit, next string, numbers ...Number) *Refused {
	return &Refused{Rule: rule, Value: value, Limit: limit, Next: next, Numbers: numbers}
}

// Error is "<rule>: got <value>, limit <limit>; <next>", without the parts that are empty.
func (r *Refused) Error() string {
	s := r.Rule
	if r.Value != "" {
		s += fmt.Sprintf(": got %s", r.Value)
	}
	if r.Limit != "" {
		s += fmt.Sprintf(", limit %s", r.Limit)
	}
	if r.Next != "" {
		s += "; " + strings.ToLower(r.Next[:1]) + r.Next[1:] // a clause here, a sentence where it stands alone
	}
	return s
}
