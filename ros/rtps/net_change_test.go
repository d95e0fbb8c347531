package rtps

import (
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ownNetwork puts the test into a network of its own, with an interface v0. The thread stays there and ends with the test.
func ownNetwork(t *testing.T) (ip func(args string)) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a network of its own needs root; this test runs as another user")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("a network of its own needs the command ip (package iproute2), which is not here")
	}
	runtime.LockOSThread()
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		t.Skipf("this machine lets nobody make network namespaces: %v", err)
	}
	ip = func(args string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	if out, err := exec.Command("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1").CombinedOutput(); err != nil {
		t.Skipf("this machine has no virtual cables (veth): %v: %s", err, out)
	}
	ip("link set lo up")
	ip("link set v1 up")
	ip("address add 10.213.9.1/24 dev v0")
	ip("link set v0 up")
	return ip
}

// TestInterfaceChanges gives the interface other addresses, as a lease that ends or a Wi-Fi that is left does, and takes it
// away for a while. We are heard all the time, and from an address that we have.
func TestInterfaceChanges(t *testing.T) {
	ip := ownNetwork(t)
	n, err := openNetwork(&Config{Domain: domain(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	heard := make(chan netip.Addr, 100)
	n.listen(func(_ []byte, from netip.AddrPort) int { heard <- from.Addr(); return 0 })
	hears := func(when, want string) {
		t.Helper()
		ctx := soon(t)
		for {
			n.multicast([]byte("RTPS"))
			select {
			case from := <-heard:
				if from.String() == want {
					return
				}
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("%s nothing is heard from %s", when, want)
			}
		}
	}
	hears("at first", "10.213.9.1")
	ip("address del 10.213.9.1/24 dev v0")
	ip("address add 10.213.9.5/24 dev v0")
	if !n.rescan() {
		t.Error("the other address was not noticed")
	}
	hears("after the address changed", "10.213.9.5")
	ip("link set v0 down")
	n.rescan()
	hears("while the interface is down", "127.0.0.1")
	ip("link set v0 up")
	if !n.rescan() {
		t.Error("the interface was not noticed")
	}
	hears("when the interface is back", "10.213.9.5")
	ip("address add 10.213.10.7/24 dev v0")
	ip("address del 10.213.9.5/24 dev v0")
	n.rescan()
	hears("after another network", "10.213.10.7")
	ip("link del v0")
	ip("link add v0 type veth peer name v1")
	ip("link set v1 up")
	ip("address add 10.213.9.1/24 dev v0")
	ip("link set v0 up")
	n.rescan()
	hears("by another interface of the name", "10.213.9.1")
}

// TestOutOfDescriptors opens with fewer and fewer file descriptors: it works, or it says what is missing.
func TestOutOfDescriptors(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
	}()
	d := domain(t)
	refused := 0
	for limit := uint64(64); limit > 3; limit-- {
		few := was
		few.Cur = limit
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		n, err := openNetwork(&Config{Domain: d, Interfaces: []string{"lo"}})
		if err != nil {
			if refused++; !strings.Contains(err.Error(), "too many open files") {
				t.Errorf("%d descriptors: %v", limit, err)
			}
			continue
		}
		if len(n.speak) != 1 {
			t.Errorf("%d descriptors: open, and it speaks to nobody", limit)
		}
		few.Cur = 3 // all that are open stay
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		if meta, _ := n.locators(); n.rescan() || len(n.speak) != 1 || len(meta) == 0 {
			t.Errorf("%d descriptors: a look at the interfaces that failed took them for gone", limit)
		}
		n.close()
	}
	if refused < 4 {
		t.Errorf("%d refused", refused)
	}
}
