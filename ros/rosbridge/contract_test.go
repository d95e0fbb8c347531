package rosbridge_test

import (
	"testing"

	"viad/ros"
	"viad/ros/rosbridge"
	"viad/ros/rosbridge/local"
	"viad/ros/rosbridge/server"
	"viad/ros/rostest"
)

// The contract of ros.Node, over a socket to a server without caveats, and to one as they are now.
func TestContract(t *testing.T) {
	now := server.New()
	now.DeafToLater = false // has its own test: the first messages after a publisher appears are lost on such a server
	for _, c := range []struct {
		name    string
		caveats server.Caveats
	}{{"none", server.Caveats{}}, {"rosbridge_suite of 2026", now}} {
		t.Run(c.name, func(t *testing.T) { contract(t, c.caveats) })
	}
}

func contract(t *testing.T, c server.Caveats) {
	benches := map[*testing.T]*bench{}
	of := func(t *testing.T) *bench {
		if benches[t] == nil {
			benches[t] = newBench(t, c)
		}
		return benches[t]
	}
	rostest.Run(t, rostest.Wire{
		There: func(t *testing.T, name string) ros.Node { return of(t).graph.Node(name) },
		Here: func(t *testing.T, name string) ros.Node {
			return of(t).dial(func(cfg *rosbridge.Config) {
				cfg.Node = name
				// JSON carries no NaN.
				cfg.Encodings = map[string]rosbridge.Encoding{"/rostest/nan": rosbridge.CBORRaw}
			})
		},
		Break: func(t *testing.T) { of(t).srv.Kick() },
		Cannot: []rostest.Feature{
			rostest.Counts,     // the protocol does not say
			rostest.GraphNodes, // our node is the server's
		},
	})
}

// The stand-in that the other tests build on keeps the contract itself.
func TestLocal(t *testing.T) {
	graphs := map[*testing.T]*local.Graph{}
	node := func(t *testing.T, name string) ros.Node {
		if graphs[t] == nil {
			graphs[t] = local.NewGraph()
		}
		return graphs[t].Node(name)
	}
	rostest.Run(t, rostest.Wire{Here: node, There: node, Cannot: []rostest.Feature{rostest.LinkEvents}})
}
