package sim

import "testing"

// A busy machine makes any ratio: here both loops only have to go. The ratio that counts is make bench's.
func TestSpeedAgainstMuJoCosOwnLoop(t *testing.T) {
	rounds := 15
	if testing.Short() {
		rounds = 1
	}
	for _, o := range []Options{{Robot: "fr3", World: "tabletop"}, {Robot: "stretch4", World: "room"}} {
		twin, loop, err := Speed(o, rounds)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.0f steps/s, MuJoCo alone %.0f: ratio %.2f", o.Robot, twin, loop, twin/loop)
		if !(twin > 0 && loop > 0) {
			t.Errorf("%s: the twin makes %.0f steps/s, MuJoCo alone %.0f", o.Robot, twin, loop)
		}
	}
}
