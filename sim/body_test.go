package sim

import (
	"testing"

	"viad/drivers/robot/robottest"
)

func TestTwinIsABody(t *testing.T) {
	for _, o := range []Options{{Robot: "fr3", World: "tabletop", Seed: 1}, {Robot: "stretch4", World: "room", Seed: 3}} {
		t.Run(o.Robot, func(t *testing.T) {
			robottest.CheckBody(t, func(t *testing.T) robottest.Subject {
				tw := start(t, o)
				m := tw.Model()
				return robottest.Subject{Body: tw.Body(), Clock: tw.Clock(), Model: &m, Sever: tw.Cut, Machine: tw.Machine}
			}, nil)
		})
	}
}
