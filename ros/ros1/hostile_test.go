package ros1

import (
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/apislave"
	"github.com/bluenviron/goroslib/v2/pkg/protocommon"

	"viad/ros"
)

// Peers that send rubbish, or nothing, or do not read: the node goes on, and closes in time.
func TestHostilePeers(t *testing.T) {
	c := startCore(t)
	n := c.node(t, "viad")
	dial := func(addr, say string) net.Conn {
		t.Helper()
		s, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte(say)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	o := advertise(t, n, "/words", ros.QoS{Depth: 3})
	head := "\x0e\x00\x00\x00topic=/words\x00\x00"
	var held []net.Conn
	for _, say := range []string{
		"", "\xff\xff\xff\xff", "\x00\x00\x00\x00", "\x08\x00\x00\x00\xff\xff\xff\x7f", "\x08\x00\x00\x00\x04\x00\x00\x00none",
		"GET / HTTP/1.1\r\n\r\n", head, strings.Repeat("\x01", 1000),
	} {
		held = append(held, dial(n.tcp.Addr().String(), say))
	}
	u, err := url.Parse(n.slave.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, say := range []string{
		"", "POST /RPC2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n<?xml", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\nnothing",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 85\r\n\r\n<?xml version='1.0'?><methodCall><methodName>nothing</methodName><params></methodCall>",
	} {
		held = append(held, dial(u.Host, say))
	}

	// One that asks for the topic and never reads; another node still gets every message.
	field := func(s string) string { return string([]byte{byte(len(s)), 0, 0, 0}) + s }
	fields := field("callerid=/deaf") + field("topic=/words") + field("type=std_msgs/String") + field("md5sum=*")
	held = append(held, dial(n.tcp.Addr().String(), string([]byte{byte(len(fields)), 0, 0, 0})+fields))
	got, _ := hear(t, c.node(t, "other"), "/words", ros.QoS{Depth: 3})
	if err := o.Ready(ready(t), 2); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 1<<20)
	for range 40 {
		say(t, o, big)
		take(t, got, "a message beside a deaf subscriber")
	}

	began := time.Now()
	_ = n.Close()
	if d := time.Since(began); d > 6*time.Second {
		t.Errorf("closing took %v", d)
	}
	for _, s := range held {
		_ = s.Close()
	}
}

// A process that has run out of file descriptors for a while takes connections again afterwards.
func TestOutOfDescriptors(t *testing.T) {
	c := startCore(t)
	n := c.node(t, "viad")
	o := advertise(t, n, "/words", ros.QoS{Depth: 3})
	other := c.node(t, "other")
	addr := n.tcp.Addr().(*net.TCPAddr) //nolint:forcetypeassert // it is
	var sockets []int
	for range 3 {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		sockets = append(sockets, fd)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	none := was
	none.Cur = 3 // all that are open stay
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	for _, fd := range sockets {
		if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}); err != nil {
			t.Error(err)
		}
	}
	<-time.After(300 * time.Millisecond) // so that it is tried in vain
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	for _, fd := range sockets {
		_ = syscall.Close(fd)
	}
	got, _ := hear(t, other, "/words", ros.QoS{Depth: 3})
	if err := o.Ready(ready(t), 1); err != nil {
		t.Fatal(err)
	}
	say(t, o, "here again")
	take(t, got, "a message after the descriptors had run out")
}

// Anybody may tell a node of publishers; it does not try ten thousand.
func TestCrowdOfPublishers(t *testing.T) {
	c := startCore(t)
	n := c.node(t, "viad")
	hear(t, n, "/words", ros.QoS{Depth: 3})
	var uris []string
	for i := range 10000 {
		uris = append(uris, "http://127.0.0.1:1/"+strconv.Itoa(i))
	}
	before := runtime.NumGoroutine()
	n.answer(&apislave.RequestPublisherUpdate{Topic: "/words", PublisherURLs: uris})
	if grown := runtime.NumGoroutine() - before; grown > 1000 {
		t.Errorf("%d goroutines more", grown)
	}
}

// Any checksum is no leave to read one type as another.
func TestChecks(t *testing.T) {
	mine := signature{name: "std_msgs/String", md5: "992ce8a1687cec8c8bd883ec73ca41d1"}
	for _, c := range []struct {
		md5, name string
		fits      bool
	}{
		{mine.md5, mine.name, true},
		{mine.md5, "", true},
		{"*", "*", true},
		{"*", "", true},
		{"*", mine.name, true},
		{"*", "sensor_msgs/JointState", false},
		{"0", mine.name, false},
		{"", "", false},
		{"0", "*", false},
	} {
		why := checks("the topic /x", mine, protocommon.HeaderRaw{"md5sum": c.md5, "type": c.name})
		if (why == "") != c.fits {
			t.Errorf("checksum %q of type %q: %q", c.md5, c.name, why)
		}
	}
}
