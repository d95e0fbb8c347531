package stage

import (
	"context"
	"log/slog"

	"viad/safety"
)

// The rules by which stage itself refuses; a *safety.Refused carries one of these, a cap's name, or what the
// guard said. A face may switch on them, for instance to answer RuleNothingStaged as a plain message.
const (
	RuleNothingStaged = "nothing staged"
	RuleNothingToDo   = "nothing to do"
	RuleRepeated      = "nothing new staged"
	RuleMotionRunning = "motion running"
	RuleFinished      = "episode finished"
	RuleEnding        = "episode ending"
	RuleLookAgain     = "look again"
	RuleNoState       = "robot state missing"
	RuleNoScene       = "no scene"
	RuleUnreachable   = "target unreachable"
	RuleMixed         = "one kind per waypoint"
	RuleAlready       = "jaw already so"
	RuleTimeCap       = "time cap"
	RuleClientGone    = "request ended"
	RuleFace          = "not on this face"
	RuleNewDriver     = "another driver"
	RuleNotMoved      = "robot could not be commanded"
)

func refuse(rule, value, limit, next string) *safety.Refused {
	return &safety.Refused{Rule: rule, Value: value, Limit: limit, Next: next}
}

// refused logs a refusal and hands it back as an error; a nil refusal stays a nil error.
func (s *Stage) refused(op string, r *safety.Refused) error {
	if r == nil {
		return nil
	}
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "refused", append([]slog.Attr{slog.String("op", op)}, r.Attrs()...)...)
	return r
}
