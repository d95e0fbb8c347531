package view

import "testing"

// A panic beside the caller must reach the caller: the daemon answers a call that failed, and drives on.
func TestBothHandsPanicsOver(t *testing.T) {
	quiet, loud := func() {}, func() { panic("broken") }
	for name, f := range map[string][2]func(){"first": {loud, quiet}, "second": {quiet, loud}, "each": {loud, loud}} {
		func() {
			defer func() {
				if p := recover(); p != "broken" {
					t.Errorf("%s panicked: the caller recovered %v", name, p)
				}
			}()
			both(f[0], f[1])
			t.Errorf("%s panicked and nobody was told", name)
		}()
	}
	var a, b bool
	both(func() { a = true }, func() { b = true })
	if !a || !b {
		t.Error("one of the two did not run")
	}
}
