package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"viad/interface/operator"
)

// lockedBuffer is a log that tests read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// eachTransport runs a test at the real listener, in clear and behind TLS.
func eachTransport(t *testing.T, change func(*Config), f func(*testing.T, *daemon, *http.Client, *lockedBuffer)) {
	t.Helper()
	for _, c := range []struct {
		name    string
		tls, h2 bool
	}{{"HTTP/1.1", false, false}, {"HTTP/1.1 over TLS", true, false}, {"HTTP/2 over TLS", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			log := &lockedBuffer{}
			d := startWith(t, "twin-franka.yaml", func(f *Config) {
				f.Listen.TLS.Generate = c.tls
				change(f)
			}, func(*System) {}, slog.New(slog.NewTextHandler(log, nil)))
			hc := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(hc.CloseIdleConnections)
			if c.tls {
				hc = trusting(t, d, c.h2)
			}
			f(t, d, hc, log)
		})
	}
}

// ask sends one request as it is; the answer is its status, its headers and its body.
func ask(t *testing.T, hc *http.Client, method, url, host, body string, head ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	}
	if host != "" {
		r.Host = host
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range head {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := hc.Transport.RoundTrip(r) // follows no redirect
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	b, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

const aPing = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// newSession opens an MCP session of the older protocol.
func newSession(t *testing.T, hc *http.Client, url, token string) string {
	t.Helper()
	status, h, body := ask(t, hc, "POST", url, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		"Authorization: Bearer "+token)
	if status != http.StatusOK || h.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize: %d %s", status, body)
	}
	return h.Get("Mcp-Session-Id")
}

// What the door lets in and what it does not, where clients really come in.
func TestTheDoorAtTheListener(t *testing.T) {
	change, tokens := people(t, "driver ann", "watcher will")
	eachTransport(t, func(c *Config) {
		change(c)
		c.Listen.Hosts, c.Listen.Origins, c.Listen.MaxBody = []string{"robot.lab.example"}, []string{"https://console.lab.example"}, 64<<10
	}, func(t *testing.T, d *daemon, hc *http.Client, log *lockedBuffer) {
		url := d.MCP()
		base := strings.TrimSuffix(url, "/mcp")
		scheme, _, _ := strings.Cut(base, "://")
		ann := "Authorization: Bearer " + tokens["driver ann"]
		session := newSession(t, hc, url, tokens["driver ann"])
		s := "Mcp-Session-Id: " + session
		large := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 64<<10) + `"}}`
		refused := uint64(0)
		for _, c := range []struct {
			name, method, path, host, body string
			head                           []string
			status                         int
		}{
			{"a ping", "POST", "/mcp", "", aPing, []string{ann, s}, 200},
			{"by its listed name", "POST", "/mcp", "robot.lab.example", aPing, []string{ann, s}, 200},
			{"by its listed name and port", "POST", "/mcp", "ROBOT.lab.example:1", aPing, []string{ann, s}, 200},
			{"by localhost", "POST", "/mcp", "localhost:8787", aPing, []string{ann, s}, 200},
			{"by a foreign name", "POST", "/mcp", "evil.example", aPing, []string{ann, s}, 403},
			{"by a foreign address", "POST", "/mcp", "192.168.1.1", aPing, []string{ann, s}, 403},
			{"by a name that ends like ours", "POST", "/mcp", "evil-robot.lab.example", aPing, []string{ann, s}, 403},
			{"from its own page", "POST", "/mcp", "", aPing, []string{ann, s, "Origin: " + base}, 200},
			{"from a listed page", "POST", "/mcp", "", aPing, []string{ann, s, "Origin: https://console.lab.example"}, 200},
			{"from another page", "POST", "/mcp", "", aPing, []string{ann, s, "Origin: https://evil.example"}, 403},
			{"from a listed page in clear", "POST", "/mcp", "", aPing, []string{ann, s, "Origin: http://console.lab.example"}, 403},
			{"from nowhere", "POST", "/mcp", "", aPing, []string{ann, s, "Origin: null"}, 403},
			{"from a page without a token", "POST", "/mcp", "", aPing, []string{"Origin: https://evil.example"}, 403},
			{"no token", "POST", "/mcp", "", aPing, []string{s}, 401},
			{"a wrong token", "POST", "/mcp", "", aPing, []string{s, ann + "x"}, 401},
			{"half a token", "POST", "/mcp", "", aPing, []string{s, ann[:len(ann)-1]}, 401},
			{"the hash as a token", "POST", "/mcp", "", aPing, []string{s, "Authorization: Bearer " + d.cfg.Tokens.List[0].Hash}, 401},
			{"the bare hash as a token", "POST", "/mcp", "", aPing, []string{s, "Authorization: Bearer " + strings.TrimPrefix(d.cfg.Tokens.List[0].Hash, hashPrefix)}, 401},
			{"a password", "POST", "/mcp", "", aPing, []string{s, "Authorization: Basic " + tokens["driver ann"]}, 401},
			{"a token in the address", "POST", "/mcp?token=" + tokens["driver ann"], "", aPing, []string{s}, 401},
			{"somebody else's session", "POST", "/mcp", "", aPing, []string{s, "Authorization: Bearer " + tokens["watcher will"]}, 404},
			{"an unknown session", "POST", "/mcp", "", aPing, []string{ann, "Mcp-Session-Id: mcp-session-00000000-0000-0000-0000-000000000000"}, 404},
			{"no session", "POST", "/mcp", "", aPing, []string{ann}, 400},
			{"too much", "POST", "/mcp", "", large, []string{ann, s}, 413},
			{"too much without a token", "POST", "/mcp", "", large, nil, 401},
			{"nothing of JSON", "POST", "/mcp", "", "{", []string{ann, s}, 400},
			{"a batch", "POST", "/mcp", "", "[" + aPing + "]", []string{ann, s}, 400},
			{"a stream", "GET", "/mcp", "", "", []string{ann, s}, 405},
			{"a stream without a token", "GET", "/mcp", "", "", nil, 401},
			{"discovery", "GET", "/.well-known/oauth-protected-resource/mcp", "", "", nil, 404},
			{"discovery", "GET", "/.well-known/oauth-authorization-server", "", "", nil, 404},
			{"a file", "GET", "/../../etc/passwd", "", "", nil, 307},
			{"the launch file", "GET", "/token", "", "", nil, 404},
		} {
			status, h, body := ask(t, hc, c.method, base+c.path, c.host, c.body, c.head...)
			if status != c.status {
				t.Errorf("%s: %d, want %d: %s", c.name, status, c.status, body)
			}
			if status == 401 || status == 403 {
				refused++
			}
			if (status == 401 || status == 403 || status == 413 || c.name == "discovery") && (h.Get("Content-Type") != "application/json" || !strings.Contains(body, `"error"`)) {
				t.Errorf("%s: answered with %s %q", c.name, h.Get("Content-Type"), body)
			}
			if status == 401 && !strings.HasPrefix(h.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s: WWW-Authenticate %q", c.name, h.Get("WWW-Authenticate"))
			}
		}
		if scheme == "https" {
			if status, _, _ := ask(t, hc, "POST", url, "", aPing, ann, s, "Origin: http"+strings.TrimPrefix(base, scheme)); status != 403 {
				t.Errorf("from a page in clear of the same name: %d", status)
			}
			refused++
		}
		chunked, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.MultiReader(strings.NewReader(large)))
		if err != nil {
			t.Fatal(err)
		}
		chunked.Header.Set("Authorization", "Bearer "+tokens["driver ann"])
		if r, err := hc.Do(chunked); err != nil || r.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("too much, of a length not told: %v %v", r, err)
		} else {
			_ = r.Body.Close()
		}

		if status, _, body := ask(t, hc, "DELETE", url, "", "", "Authorization: Bearer "+tokens["watcher will"], s); status != 404 {
			t.Errorf("somebody else ends the session: %d %s", status, body)
		}
		if status, _, body := ask(t, hc, "DELETE", url, "", "", ann, s); status != 200 {
			t.Errorf("its owner ends the session: %d %s", status, body)
		}
		if status, _, body := ask(t, hc, "POST", url, "", aPing, ann, s); status != 404 {
			t.Errorf("a session that was ended: %d %s", status, body)
		}

		if got := d.door.Failed(); got != refused {
			t.Errorf("%d requests were refused, %d were counted", refused, got)
		}
		if s := d.ask(operator.OpStatus).Status; s.Refused != refused {
			t.Errorf("the status says %d, want %d", s.Refused, refused)
		}
		for _, token := range tokens {
			if strings.Contains(log.String(), token) {
				t.Error("a token stands in the log")
			}
		}
	})
}

// Whoever tries tokens all day gets one line a second, wherever they try them, and every try is counted.
func TestAStormAtTheDoor(t *testing.T) {
	eachTransport(t, func(*Config) {}, func(t *testing.T, d *daemon, hc *http.Client, log *lockedBuffer) {
		base := strings.TrimSuffix(d.MCP(), "/mcp")
		const each = 60
		began := time.Now()
		var wg sync.WaitGroup
		for _, try := range []func(n int) int{
			func(n int) int {
				status, _, _ := ask(t, hc, "POST", base+"/mcp", "", aPing, fmt.Sprintf("Authorization: Bearer viad_%d", n))
				return status
			},
			func(n int) int {
				status, _, _ := ask(t, hc, "POST", base+"/api/stop", "", "", fmt.Sprintf("Authorization: Bearer viad_%d", n))
				return status
			},
			func(n int) int {
				status, _, _ := ask(t, hc, "GET", fmt.Sprintf("%s/?token=viad_%d", base, n), "", "")
				return status
			},
			func(n int) int {
				status, _, _ := ask(t, hc, "POST", base+"/login", "", fmt.Sprintf("token=viad_%d", n), "Content-Type: application/x-www-form-urlencoded")
				return status
			},
			func(int) int {
				status, _, _ := ask(t, hc, "GET", base+"/", "evil.example", "")
				return status
			},
		} {
			wg.Go(func() {
				for n := range each {
					if status := try(n); status < 300 {
						t.Errorf("let in: %d", status)
					}
				}
			})
		}
		wg.Wait()
		took := time.Since(began)
		if got := d.door.Failed(); got != 5*each {
			t.Errorf("%d tries, %d counted", 5*each, got)
		}
		lines := strings.Count(log.String(), "request refused")
		if most := int(took.Seconds()) + 2; lines < 1 || lines > most {
			t.Errorf("%d lines in %v, at most %d are allowed", lines, took, most)
		}
		if strings.Contains(log.String(), "viad_1") {
			t.Error("tried tokens stand in the log")
		}
	})
}

// In the protocol without sessions every client counts its requests from the same number. A cancellation that
// somebody posts must not end somebody else's call, whatever it calls itself.
func TestNobodyCancelsAnothersMotion(t *testing.T) {
	change, tokens := people(t, "driver ann", "watcher will")
	d := start(t, "twin-franka.yaml", func(c *Config) {
		change(c)
		realTime(c)
	})
	const version = "2026-07-28"
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	hc := &http.Client{Transport: &http.Transport{}}
	defer hc.CloseIdleConnections()
	call := func(who string, id int, tool, args string) (int, string) {
		status, _, body := ask(t, hc, "POST", d.MCP(), "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, id, tool, args, meta),
			"Authorization: Bearer "+tokens[who], "Mcp-Protocol-Version: "+version, "Mcp-Method: tools/call", "Mcp-Name: "+tool)
		return status, body
	}
	for id := range 3 {
		if status, body := call("driver ann", id, "gripper_translate", `{"d_x":0.08,"d_y":-0.1}`); status != 200 || strings.Contains(body, `"isError":true`) {
			t.Fatalf("%d %s", status, body)
		}
	}
	told := make(chan string, 1)
	go func() {
		_, body := call("driver ann", 7, "execute_waypoint", "{}")
		told <- body
	}()
	d.untilMoving()
	will := "Authorization: Bearer " + tokens["watcher will"]
	session := newSession(t, hc, d.MCP(), tokens["watcher will"])
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,` + meta + `}}`
	bare := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	for name, c := range map[string]struct {
		body string
		head []string
	}{
		"as the protocol says":        {cancel, []string{"Mcp-Protocol-Version: " + version, "Mcp-Method: notifications/cancelled"}},
		"without its name":            {cancel, []string{"Mcp-Protocol-Version: " + version}},
		"under another name":          {cancel, []string{"Mcp-Protocol-Version: " + version, "Mcp-Method: ping"}},
		"with the version in it only": {cancel, nil},
		"of an older version":         {cancel, []string{"Mcp-Protocol-Version: 2025-11-25"}},
		"of another session":          {bare, []string{"Mcp-Protocol-Version: 2025-11-25", "Mcp-Session-Id: " + session}},
		"of no session":               {bare, []string{"Mcp-Protocol-Version: 2025-11-25"}},
		"of a version to come":        {cancel, []string{"Mcp-Protocol-Version: 2027-01-01"}},
		"spelt otherwise": {
			strings.Replace(cancel, "notifications/cancelled", `notifications\/cancell\u0065d`, 1),
			[]string{"Mcp-Protocol-Version: " + version, "Mcp-Method: ping"},
		},
		"said twice": {
			strings.Replace(cancel, `"method"`, `"method":"ping","method"`, 1), []string{"Mcp-Protocol-Version: " + version, "Mcp-Method: ping"},
		},
		"in capitals": {
			strings.Replace(cancel, `"method"`, `"Method"`, 1), []string{"Mcp-Protocol-Version: " + version, "Mcp-Method: ping"},
		},
	} {
		status, _, body := ask(t, hc, "POST", d.MCP(), "", c.body, append(c.head, will)...)
		if status >= 500 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if body := <-told; !strings.Contains(body, ": reached; stopped, confirmed") {
		t.Errorf("ann is told: %s", body)
	}
}

// More connections than the door serves take nothing from the operator's socket, and keep no client out.
func TestAFloodOfConnections(t *testing.T) {
	d := start(t, "twin-franka.yaml", nil)
	old := connect(t, d.MCP(), d.Token()) // idle when the flood comes
	old.must("gripper_translate", map[string]any{"d_z": -0.05})
	var conns []net.Conn
	for range 700 {
		c, err := net.Dial("tcp", d.Addr())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	defer func() {
		for _, c := range conns {
			_ = c.Close() // some were closed by the door
		}
	}()
	// The oldest of those that say nothing are closed without a word.
	if err := conns[0].SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conns[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first of seven hundred connections stays: %v", err)
	}
	if a := d.ask(operator.OpStop); a.Note != "stopped, confirmed" {
		t.Errorf("%+v", a)
	}
	began := time.Now()
	r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}).Get("http://" + d.Addr() + "/page.css")
	if err != nil {
		t.Fatalf("the door is shut: %v", err)
	}
	_ = r.Body.Close()
	fresh := connect(t, d.MCP(), d.Token())
	fresh.must("screenshot", nil)
	old.must("screenshot", nil)
	if took := time.Since(began); took > 5*time.Second { // silent ones would be closed after ten seconds
		t.Errorf("clients waited %v", took)
	}
}
