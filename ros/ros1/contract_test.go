package ros1

import (
	"testing"

	"viad/ros"
	"viad/ros/rostest"
)

func TestContract(t *testing.T) {
	c := startCore(t)
	node := func(t *testing.T, name string) ros.Node { return c.node(t, name) }
	rostest.Run(t, rostest.Wire{Here: node, There: node, Break: func(t *testing.T) {
		c.kill()
		t.Cleanup(func() { c.start(t) })
	}})
}
