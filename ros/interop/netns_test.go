package interop

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/rtps"
)

// peersNamespace is set in the process that TestNamespaces starts: the namespace of the peers.
const peersNamespace = "VIAD_INTEROP_PEERS"

// TestNamespaces puts us and the peers on two machines, as far as the network is concerned: two network namespaces and a
// cable between them, with multicast discovery and all settings as the vendors ship them.
func TestNamespaces(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root; this test runs as another user")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces need the command ip (package iproute2), which is not here")
	}
	for _, v := range Vendors { // built outside: the compilers need nothing from there
		if _, err := Build(t.Context(), v); err != nil {
			if os.Getenv("VIAD_CI") == "" {
				t.Skip(err)
			}
			t.Fatal(err)
		}
	}
	a, b := fmt.Sprintf("viad-a-%d", os.Getpid()), fmt.Sprintf("viad-b-%d", os.Getpid())
	ip := func(args string) error {
		out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, out)
		}
		return nil
	}
	if err := ip("netns add " + a); err != nil {
		t.Skipf("this machine lets nobody make network namespaces: %v", err)
	}
	remove := func(ns string) func() {
		return func() { _ = exec.Command("ip", "netns", "delete", ns).Run() } // leftovers harm nobody
	}
	t.Cleanup(remove(a))
	must(t, ip("netns add "+b))
	t.Cleanup(remove(b))
	if err := ip("-n " + a + " link add viad0 type veth peer name viad0 netns " + b); err != nil {
		t.Skipf("this machine has no virtual cables (veth): %v", err)
	}
	for i, ns := range []string{a, b} {
		must(t, ip("-n "+ns+" link set lo up"))
		must(t, ip(fmt.Sprintf("-n %s address add 10.213.7.%d/24 dev viad0", ns, i+1)))
		must(t, ip("-n "+ns+" link set viad0 up"))
	}
	for _, ns := range []string{a, b} {
		plugged(t, ns)
	}
	args := []string{"netns", "exec", a, os.Args[0], "-test.run", "^TestInNamespace$", "-test.v", fmt.Sprintf("-long=%v", *long)}
	cmd := exec.CommandContext(t.Context(), "ip", args...)
	cmd.Env = append(os.Environ(), peersNamespace+"="+b)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// plugged waits until the cable is seen there: Fast DDS looks at its interfaces once, when it starts, and passes over one that
// is not running.
func plugged(t *testing.T, ns string) {
	t.Helper()
	ctx := budget(t, 10*time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := exec.CommandContext(ctx, "ip", "-n", ns, "-o", "link", "show", "viad0").CombinedOutput()
		if err == nil && strings.Contains(string(out), "state UP") {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the cable is not seen in %s: %s", ns, out)
		}
	}
}

// TestInNamespace is the part of TestNamespaces that runs in our namespace.
func TestInNamespace(t *testing.T) {
	ns := os.Getenv(peersNamespace)
	if ns == "" {
		t.Skip("TestNamespaces runs it")
	}
	for _, v := range Vendors {
		for _, f := range []Flow{
			{Kind: JointState(), Topic: "joint_states", QoS: deep(), Count: 100, Rate: 100},
			{Kind: Image(), Topic: "image", QoS: deep(), Size: ImageSize, Count: 30, Rate: 30},
			{Kind: Image(), Topic: "image", QoS: ros.SensorData(), Size: ImageSize, Count: 30, Rate: 30, Settle: 300 * time.Millisecond},
		} {
			t.Run(fmt.Sprintf("%s/%s/reliable=%v", v, f.Kind.Name, f.QoS.Reliable), func(t *testing.T) {
				side := participant(t, 0, func(c *rtps.Config) { c.Localhost = false })
				t.Run("from", func(t *testing.T) { fromPeer(t, side, Setup{Vendor: v, Stock: true, Netns: ns}, f) })
				t.Run("to", func(t *testing.T) { toPeer(t, side, Setup{Vendor: v, Stock: true, Netns: ns}, f) })
			})
		}
		// On one machine Fast DDS talks with its like through shared memory; we have none and get UDP all the same.
		t.Run(string(v)+"/one machine", func(t *testing.T) {
			f := Flow{Kind: Image(), Topic: "image", QoS: deep(), Size: ImageSize, Count: 15, Rate: 30}
			side := participant(t, 1, func(c *rtps.Config) { c.Localhost = false })
			t.Run("from", func(t *testing.T) { fromPeer(t, side, Setup{Vendor: v, Stock: true, Domain: 1}, f) })
			t.Run("to", func(t *testing.T) { toPeer(t, side, Setup{Vendor: v, Stock: true, Domain: 1}, f) })
		})
	}
}
