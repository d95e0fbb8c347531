package safety

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"viad/drivers/robot/robottest"
)

func TestSeat(t *testing.T) {
	clock := robottest.NewManualClock()
	log := &lines{}
	fresh := 0
	s := NewSeat(clock, 0, func() { fresh++ }, slog.New(slog.NewTextHandler(log, nil)))
	holds := func(want string) {
		t.Helper()
		if got, _, _ := s.Holder(); got != want {
			t.Fatalf("%q has the seat, want %q", got, want)
		}
	}
	holds("")
	if s.Keep("") || s.Free("") || s.Keep("anna") {
		t.Error("a free seat was kept or freed")
	}
	if r := s.Take("anna"); r != nil {
		t.Fatal(r)
	}
	r := s.Take("ben")
	if ruleOf(r) != RuleSeat || !strings.Contains(r.Value, `"anna"`) {
		t.Fatalf("second driver: %v", r)
	}
	holds("anna")
	clock.Advance(9 * time.Minute)
	if !s.Keep("anna") || s.Keep("ben") || s.Free("ben") {
		t.Error("keep or free by the wrong name")
	}
	clock.Advance(9 * time.Minute)
	holds("anna")
	if r := s.Take("anna"); r != nil { // staging again keeps it too
		t.Fatal(r)
	}
	clock.Advance(10 * time.Minute)
	holds("")
	if s.Keep("anna") {
		t.Error("anna keeps a seat that silence has freed")
	}
	if r := s.Take("ben"); r != nil {
		t.Fatal(r)
	}
	if from := s.TakeOver("olga"); from != "ben" {
		t.Errorf("taken over from %q", from)
	}
	holds("olga")
	if ruleOf(s.Take("ben")) != RuleSeat {
		t.Error("ben still drives")
	}
	if !s.Free("olga") {
		t.Error("olga cannot leave")
	}
	holds("")
	if r := s.Take("olga"); r != nil {
		t.Fatal(r)
	}
	if fresh != 3 { // anna, ben, olga; who comes back finds what they left
		t.Errorf("%d times a fresh start", fresh)
	}
	if from := s.Release("olga"); from != "olga" {
		t.Errorf("released from %q", from)
	}
	holds("")
	for msg, n := range map[string]int{"seat taken": 3, "seat released": 1, "seat refused": 2, "seat freed by silence": 1, "seat taken over": 1, "seat freed": 1} {
		if got := log.count(msg); got != n {
			t.Errorf("%d lines %q, want %d:\n%s", got, msg, n, log.buf.String())
		}
	}
}
