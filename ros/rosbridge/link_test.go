package rosbridge_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg/all"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/rosbridge"
	"viad/ros/rosbridge/local"
	"viad/ros/rosbridge/server"
)

// The server is killed in the middle of a goal and started again: the goal and the calls are Gone at once, and everything
// that was advertised, subscribed and served is there again.
func TestServerKilledAndRestarted(t *testing.T) {
	b := newBench(t, server.Caveats{})
	m := b.moves()
	release := make(chan struct{})
	defer close(release)
	called := b.serves("/slow", release)
	n := b.dial()
	got := b.hears(n, "/to_us")
	robot := b.hears(b.robot, "/from_us")
	ours := must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](n, "/from_us", ros.Default()))
	g := must[ros.Goal](t)(b.sends(n).Send(b.ctx, goalOf("x"), nil))
	take(b, m.started, "the goal")
	done := make(chan error, 1)
	c := b.calls(n, "/slow")
	go func() { done <- trigger(b.ctx, c) }()
	take(b, called, "the call")
	events := make(chan ros.Link, 64)
	defer n.Links(func(l ros.Link) { events <- l })()
	if l := take(b, events, "the present state of the link"); !l.Up {
		t.Errorf("the link is %+v", l)
	}

	killed := time.Now()
	b.stop()
	if _, err := g.Result(b.ctx, resultOf()); !errors.As(err, new(*ros.Gone)) {
		t.Errorf("the goal: %v", err)
	}
	if err := take(b, done, "the end of the call"); !errors.As(err, new(*ros.Gone)) {
		t.Errorf("the call: %v", err)
	}
	if d := time.Since(killed); d > 3*time.Second {
		t.Errorf("it took %v to notice", d)
	}
	for l := take(b, events, "the link to go down"); l.Up; l = take(b, events, "the link to go down") {
	}

	b.up(b.addr)
	for l := take(b, events, "the link to come up"); !l.Up; l = take(b, events, "the link to come up") {
	}
	b.says(b.robot, "/to_us", "again", got)
	if err := ours.Ready(b.ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := ours.Send(b.ctx, &std_msgs.String{Data: "and back"}); err != nil {
		t.Fatal(err)
	}
	if s := take(b, robot, "what we publish"); s != "and back" {
		t.Errorf("got %q", s)
	}
}

// freezer is a connection that a test can freeze: nothing comes any more, and what is written vanishes, as when a robot
// drives out of the reach of its network.
type freezer struct {
	net.Conn
	frozen *atomic.Bool
	gone   chan struct{}
}

func (f *freezer) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if f.frozen.Load() {
		<-f.gone
		return 0, net.ErrClosed
	}
	return n, err
}

func (f *freezer) Write(p []byte) (int, error) {
	if f.frozen.Load() {
		return len(p), nil
	}
	return f.Conn.Write(p)
}

func (f *freezer) Close() error {
	select {
	case <-f.gone:
	default:
		close(f.gone)
	}
	return f.Conn.Close()
}

// pipes is a listener in memory, so that time can be virtual.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// A connection that is dead without a word is noticed within PingEvery + PingTimeout, to the millisecond of virtual time.
func TestHalfOpenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := local.NewGraph()
		bridge := g.Node("/bridge")
		srv := must[*server.Server](t)(server.NewServer(server.Options{Node: bridge, Types: all.New, Distro: cdr.Jazzy}))
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		h := &http.Server{Handler: srv, ReadHeaderTimeout: time.Hour}
		go func() { served <- h.Serve(l) }()
		var frozen atomic.Bool
		n, err := rosbridge.Dial(ctx, rosbridge.Config{
			URL: "ws://robot:9090", PingEvery: 2 * time.Second, PingTimeout: 3 * time.Second, Distro: cdr.Jazzy,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				here, there := net.Pipe()
				select {
				case l.conns <- there:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				if frozen.Load() {
					return nil, errors.New("no route to host")
				}
				return &freezer{Conn: here, frozen: &frozen, gone: make(chan struct{})}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		events := make(chan ros.Link, 64)
		stop := n.Links(func(l ros.Link) { events <- l })
		if l := <-events; !l.Up {
			t.Errorf("the link is %+v", l)
		}
		time.Sleep(11 * time.Second) // virtual: pings come and go
		if len(events) != 0 {
			t.Errorf("a link on which nothing happens: %+v", <-events)
		}
		frozen.Store(true)
		from := time.Now()
		down := <-events
		if took := time.Since(from); down.Up || took > 5*time.Second {
			t.Errorf("noticed after %v (%+v), the bound is 5 s", took, down)
		} else {
			t.Logf("noticed after %v: %s", took, down.Why)
		}
		stop()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		srv.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		<-served
		if err := bridge.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The socket for stop and cancel is lost alone: the link says which, the goal goes on, and it can be cancelled again as
// soon as that socket is back.
func TestStopSocketLost(t *testing.T) {
	b := newBench(t, server.Caveats{})
	m := b.moves()
	var mu sync.Mutex
	var conns []net.Conn
	n := b.dial(func(c *rosbridge.Config) {
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, conn)
			return conn, err
		}
	})
	events := make(chan ros.Link, 64)
	defer n.Links(func(l ros.Link) { events <- l })()
	take(b, events, "the present state")
	g := must[ros.Goal](t)(b.sends(n).Send(b.ctx, goalOf("x"), nil))
	take(b, m.started, "the goal")
	mu.Lock()
	second := conns[1]
	mu.Unlock()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if l := take(b, events, "the link to go down"); l.Up || !strings.Contains(l.Why, "stop and cancel") {
		t.Errorf("the link is %+v", l)
	}
	if err := g.Cancel(b.ctx); err != nil {
		t.Error(err)
	}
	if s, err := g.Result(b.ctx, resultOf()); err != nil || s != ros.GoalCanceled {
		t.Errorf("status %d, %v", s, err)
	}
}

func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	roots := x509.NewCertPool()
	roots.AddCert(must[*x509.Certificate](t)(x509.ParseCertificate(der)))

	b := newBench(t, server.Caveats{})
	b.stop()
	b.opt.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	b.up(b.addr)
	b.serves("/x", nil)
	n := b.dial(func(c *rosbridge.Config) {
		c.URL = "wss://" + b.addr
		c.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	})
	if err := trigger(b.ctx, b.calls(n, "/x")); err != nil {
		t.Error(err)
	}
	if _, err := rosbridge.Dial(b.ctx, rosbridge.Config{URL: "wss://" + b.addr}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
}

func TestDialSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		cfg  rosbridge.Config
		want string
	}{
		{rosbridge.Config{URL: "http://robot:9090"}, "not ws://"},
		{rosbridge.Config{URL: "robot"}, "not ws://"},
		{rosbridge.Config{URL: "ws://robot", TLS: &tls.Config{MinVersion: tls.VersionTLS12}}, "wss://"},
		{rosbridge.Config{URL: "ws://127.0.0.1:1"}, "ros2 launch rosbridge_server"},
	} {
		if _, err := rosbridge.Dial(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.cfg.URL, err, c.want)
		}
	}
}

// A server that takes everything and answers nothing is named, with what to do.
func TestMuteServer(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		for err == nil {
			_, _, err = c.Read(r.Context())
		}
	}))
	defer h.Close()
	n, err := rosbridge.Dial(t.Context(), rosbridge.Config{URL: "ws" + strings.TrimPrefix(h.URL, "http"), Distro: cdr.Jazzy})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := n.Graph(ctx); err == nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "rosapi_node") {
		t.Errorf("the graph of a mute server: %v", err)
	}
}

// What is too large does not go, and what comes too large is left out; the connection stays.
func TestSizeLimits(t *testing.T) {
	b := newBench(t, server.Caveats{})
	n := b.dial(func(c *rosbridge.Config) { c.MaxIn, c.MaxOut = 20000, 10000 })
	got := b.hears(n, "/to_us")
	large := strings.Repeat("x", 30000)
	p := must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](n, "/from_us", ros.Default()))
	if err := p.Send(b.ctx, &std_msgs.String{Data: large}); err == nil || !strings.Contains(err.Error(), "10000") {
		t.Errorf("a message over the limit: %v", err)
	}
	r := must[ros.Publisher[*std_msgs.String]](t)(ros.Advertise[std_msgs.String](b.robot, "/to_us", ros.Default()))
	if err := r.Ready(b.ctx, 1); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{large, "small"} {
		if err := r.Send(b.ctx, &std_msgs.String{Data: s}); err != nil {
			t.Fatal(err)
		}
	}
	if g := take(b, got, "the small message"); g != "small" {
		t.Errorf("a message of %d bytes came over a limit of 20000", len(g))
	}
	g, err := n.Graph(b.ctx)
	if err != nil || !strings.Contains(strings.Join(g.Problems, " "), "1 frames") {
		t.Errorf("what was left out is not told: %q, %v", g.Problems, err)
	}
}

// Fragments are put together again.
func TestFragmentsOnTheWire(t *testing.T) {
	b := newBench(t, server.Caveats{})
	n := b.dial(func(c *rosbridge.Config) { c.FragmentSize = 1000 })
	got := b.hears(n, "/t")
	b.says(b.robot, "/t", strings.Repeat("grüße ", 2000), got)
}

// Every encoding carries the same message.
func TestEncodings(t *testing.T) {
	want := &sensor_msgs.PointCloud2{
		Height: 1, Width: 2, PointStep: 4, RowStep: 8, Data: []byte{0, 1, 2, 3, 4, 5, 6, 255}, IsDense: true,
		Fields: []sensor_msgs.PointField{{Name: "x", Offset: 3, Datatype: 7, Count: 1}},
	}
	want.Header.FrameId = "lidar"
	for _, e := range []rosbridge.Encoding{rosbridge.JSON, rosbridge.CBOR, rosbridge.CBORRaw} {
		t.Run(e.String(), func(t *testing.T) {
			b := newBench(t, server.Caveats{})
			n := b.dial(func(c *rosbridge.Config) { c.Encodings = map[string]rosbridge.Encoding{"/cloud": e} })
			got := make(chan *sensor_msgs.PointCloud2, 1)
			must[ros.Subscription](t)(ros.Subscribe(n, "/cloud", ros.Default(), func(m *sensor_msgs.PointCloud2, _ ros.Info) { got <- m }))
			p := must[ros.Publisher[*sensor_msgs.PointCloud2]](t)(ros.Advertise[sensor_msgs.PointCloud2](b.robot, "/cloud", ros.Default()))
			if err := p.Ready(b.ctx, 1); err != nil {
				t.Fatal(err)
			}
			if err := p.Send(b.ctx, want); err != nil {
				t.Fatal(err)
			}
			g := take(b, got, "the cloud")
			if string(g.Data) != string(want.Data) || g.Width != 2 || g.Header.FrameId != "lidar" || len(g.Fields) != 1 || g.Fields[0] != want.Fields[0] {
				t.Errorf("got %+v", g)
			}
		})
	}
}
