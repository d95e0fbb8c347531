package dds_test

import (
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/rostest"
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

// One end is told the distribution, the other learns it.
func TestSuiteHumble(t *testing.T) { suite(t, 40, cdr.DistroUnknown, cdr.Humble) }
func TestSuiteJazzy(t *testing.T)  { suite(t, 41, cdr.Jazzy, cdr.DistroUnknown) }
