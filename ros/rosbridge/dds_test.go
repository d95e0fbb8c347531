package rosbridge_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/rosbridge"
	"viad/ros/rosbridge/server"
	"viad/ros/rostest"
)

// domain is a DDS domain that no other test on this machine uses now.
func domain(t *testing.T) int {
	t.Helper()
	for d := 110; d < 130; d++ {
		f, err := os.OpenFile(fmt.Sprintf("%s/viad-dds-domain-%d", os.TempDir(), d), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			t.Cleanup(func() {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
			return d
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("no DDS domain is free")
	return 0
}

// The whole way: this client, the server, its DDS node, and another node in the domain, which is the robot's.
func TestContractOverDDS(t *testing.T) {
	d := domain(t)
	open := func(t *testing.T, name string) *dds.Node {
		t.Helper()
		return must[*dds.Node](t)(dds.Open(dds.Config{Node: strings.TrimPrefix(name, "/"), Domain: d, Localhost: true, Distro: cdr.Jazzy, Log: logTo(t)}))
	}
	var mu sync.Mutex
	benches := map[*testing.T]*bench{}
	of := func(t *testing.T) *bench {
		mu.Lock()
		defer mu.Unlock()
		b := benches[t]
		if b == nil {
			now := server.New()
			now.DeafToLater = false
			bridge := open(t, "rosbridge_websocket")
			ctx, cancel := context.WithCancel(t.Context())
			b = &bench{t: t, ctx: ctx}
			b.opt = options(t, bridge, now)
			b.up("127.0.0.1:0")
			t.Cleanup(func() {
				b.stop()
				cancel()
				if err := bridge.Close(); err != nil {
					t.Error(err)
				}
			})
			benches[t] = b
		}
		return b
	}
	rostest.Run(t, rostest.Wire{
		There: func(t *testing.T, name string) ros.Node { return open(t, name) },
		Here: func(t *testing.T, name string) ros.Node {
			return of(t).dial(func(cfg *rosbridge.Config) {
				cfg.Node = name
				cfg.Encodings = map[string]rosbridge.Encoding{"/rostest/nan": rosbridge.CBORRaw}
			})
		},
		Break:  func(t *testing.T) { of(t).srv.Kick() },
		Cannot: []rostest.Feature{rostest.Counts, rostest.GraphNodes},
	})
}
