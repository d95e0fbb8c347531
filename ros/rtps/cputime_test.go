package rtps

import (
	"syscall"
	"time"
)

// processTime is the CPU time of this process: real, also where time is virtual.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
