package launch

import (
	"testing"
	"time"

	"viad/drivers/robot"
	"viad/perception"
)

// What the robot shows of itself to its own sensors must not stand in its way: no point near a link that can
// move is taken for the world. It needs the twin's looks, the URDF's capsules and perception's margins to
// agree, which belong to three rooms.
func TestNothingOfTheRobotIsTakenForTheWorld(t *testing.T) {
	for _, file := range []string{"twin-franka.yaml", "twin-stretch4.yaml"} {
		t.Run(file, func(t *testing.T) {
			d := start(t, file, nil)
			sc, err := d.fuser.Refresh(t.Context(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			st, taken := sc.State, map[string]int{}
			caps := d.kin.Capsules(st.Base, st.Q, st.Jaw.Aperture)
			own := 0
			for i := range sc.Cloud.Len() {
				if sc.Cloud.Class[i] != perception.World {
					own++
					continue
				}
				p := sc.Cloud.At(i)
				for _, c := range caps {
					if c.Class != robot.ClassBase && c.Link != "link0" && c.Dist(p) < 0.03 {
						taken[c.Link]++
					}
				}
			}
			if own < 20 {
				t.Errorf("only %d points are the robot's own: it does not see itself at all", own)
			}
			if len(taken) > 0 {
				t.Errorf("points taken for the world within 3 cm of links: %v", taken)
			}
		})
	}
}
