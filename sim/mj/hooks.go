package mj

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import "unsafe"

// The calls below exist for the tests and the benchmark of this binding (a _test.go file cannot use cgo).

// ProbeRaise raises MuJoCo's error with a text from inside a guarded call.
func (d *Data) ProbeRaise(msg string) error {
	cs := C.CString(msg)
	defer C.free(unsafe.Pointer(cs))
	return d.result(C.vmj_test_raise(d.v, cs))
}

// ProbeOverflow overflows MuJoCo's own stack.
func (d *Data) ProbeOverflow() error { return d.result(C.vmj_test_overflow(d.v)) }

// ProbeLoop runs MuJoCo's own loop of n steps in C, unguarded, and returns its thread CPU seconds:
// the reference that the twin's speed is measured against.
func (d *Data) ProbeLoop(n int) float64 { return float64(C.vmj_test_loop(d.v, C.int(n))) }
