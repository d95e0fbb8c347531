package robot

import "context"

// Fact is one thing that a driver found out about its machine when it connected, or watches since.
type Fact struct {
	Name  string // "generation", "homed", "clock offset"
	Value string
	// Bad says why the robot may not move while it is so, and what a person does next. Empty when it is well.
	Bad string
	// Warn says what is not as it should be although the robot may move, or what of it may not, and the next step.
	Warn string
}

// Examined is a Body that says what it found out about its machine. While a fact is bad its State is not ready, with
// the fact's words as the fault.
type Examined interface {
	Facts() []Fact
}

// Task is something that a machine can do and that only an operator may ask for: homing, stowing, recovery after a
// reflex, releasing a runstop.
type Task struct {
	Name string // one lower-case word: "home"
	What string // what will move and what to look at first, one sentence
}

// Tended is a Body that has such tasks.
type Tended interface {
	Tasks() []Task
	// Do carries a task out and waits for its end. Halt ends it as it ends a motion.
	Do(ctx context.Context, task string) error
}
