package dds_test

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/rostest"
	"viad/ros/rtps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func logger(t *testing.T) *slog.Logger {
	if os.Getenv("VIAD_VERBOSE") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func open(t *testing.T, c dds.Config) *dds.Node {
	t.Helper()
	c.Localhost = true
	c.Log = logger(t)
	n, err := dds.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return n
}

func suite(t *testing.T, domain int, here, there cdr.Distro) {
	rostest.Run(t, rostest.Wire{
		Here: func(t *testing.T, name string) ros.Node {
			return open(t, dds.Config{Node: name, Domain: domain, Distro: here})
		},
		There: func(t *testing.T, name string) ros.Node {
			return open(t, dds.Config{Node: name, Domain: domain, Distro: there})
		},
	})
}

// With one datagram in twenty lost, each way, everything still holds.
func TestSuiteWithLoss(t *testing.T) {
	lossy := func(seed uint64) func(rtps.Datagram) bool {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		return func(rtps.Datagram) bool {
			mu.Lock()
			defer mu.Unlock()
			return rnd.Float64() >= 0.05
		}
	}
	end := func(distro cdr.Distro, seed uint64) func(t *testing.T, name string) ros.Node {
		return func(t *testing.T, name string) ros.Node {
			return open(t, dds.Config{Node: name, Domain: 49, Distro: distro, Wire: lossy(seed)})
		}
	}
	rostest.Run(t, rostest.Wire{Here: end(cdr.DistroUnknown, 1), There: end(cdr.Humble, 2), Patience: 30 * time.Second})
}

// One end is told the distribution, the other learns it.
func TestSuiteHumble(t *testing.T) { suite(t, 40, cdr.DistroUnknown, cdr.Humble) }
func TestSuiteJazzy(t *testing.T)  { suite(t, 41, cdr.Jazzy, cdr.DistroUnknown) }
