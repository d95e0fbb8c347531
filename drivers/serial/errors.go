package serial

import (
	"errors"
	"fmt"
)

// ErrTimeout says that nothing came in time; the port is well.
var ErrTimeout = errors.New("serial: nothing came in time")

// ErrClosed says that the port was closed by us.
var ErrClosed = errors.New("serial: the port is closed")

// InUse says that another process has the port.
type InUse struct {
	Path  string
	Owner string // "stretch_driver (process 4711)", empty when it cannot be seen
}

func (e *InUse) Error() string {
	who := e.Owner
	if who == "" {
		who = "another process that cannot be seen from here"
	}
	return fmt.Sprintf("%s belongs to %s: stop it first; two programs on one bus move the robot wrongly", e.Path, who)
}

// Unplugged says that the device went away. The port must be closed and, once the node is back, opened anew with
// everything that is set on the device.
type Unplugged struct {
	Path string
	Err  error // what the system said, nil when the node only vanished
}

func (e *Unplugged) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s went away (%v): check its cable and power", e.Path, e.Err)
	}
	return fmt.Sprintf("%s went away: check its cable and power", e.Path)
}

func (e *Unplugged) Unwrap() error { return e.Err }
