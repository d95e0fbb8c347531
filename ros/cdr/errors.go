package cdr

import "fmt"

// Error is why a payload could not be written or read.
type Error struct {
	Offset int    // bytes from the start of the payload, header included
	Field  string // "sensor_msgs/JointState.name"; "" where only the offset is known
	Why    string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("CDR at byte %d: %s", e.Offset, e.Why)
	}
	return fmt.Sprintf("CDR at byte %d, %s: %s", e.Offset, e.Field, e.Why)
}

func layoutDiffers(typ string) string {
	return fmt.Sprintf("the layout of %s differs by distribution: set the distribution (humble, iron, jazzy) or let it be learnt", typ)
}
