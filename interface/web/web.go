// Package web is the people's page: the picture that the agent sees, the live scene, the robot's state, the
// last calls, a large stop button and, for operators, the switches that no tool has. It stages nothing.
//
// A person comes in with a link that carries a token (/?token=...). The token is exchanged once for a
// session cookie that scripts cannot read and other sites cannot send, so it stays in no history and no
// log. The guard around this handler has already checked Host and Origin.
package web

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"viad/interface/operator"
)

// The page's bundle, made by `make page` from src.
//
//go:embed dist
var dist embed.FS

// Picture is one encoded view, never changed after it is handed over.
type Picture struct {
	Name string // "ui", "head", "wrist", "nav_map"
	JPEG []byte
	At   time.Time // when it was sent to the agent, wall time; zero: now
}

// Call is a tool call as the page lists it.
type Call struct {
	Seq       uint64  `json:"seq"`
	At        string  `json:"at"` // wall time, UTC, RFC 3339
	Principal string  `json:"principal"`
	Tool      string  `json:"tool"`
	Args      string  `json:"args"`
	Text      string  `json:"text"`
	Refused   bool    `json:"refused"`
	TookMS    float64 `json:"took_ms"`
}

// Person is somebody who is in.
type Person struct {
	Name     string `json:"name"`
	Role     string `json:"role"`     // in words
	Operator bool   `json:"operator"` // may arm, clear and take over
}

// Room is what the page looks into, and what it may ask of the robot.
type Room interface {
	operator.Desk
	// Live paints what is seen now. It is asked only while somebody watches.
	Live(ctx context.Context) ([]Picture, error)
	// Shown is what the seat was last sent, with a number that grows when it changes.
	Shown() (seq uint64, pictures []Picture)
	// Calls are the last calls, newest first.
	Calls() []Call
}

// Options of a Page.
type Options struct {
	Room   Room
	Lookup func(token string) (who Person, ok bool) // who a token belongs to
	Failed func(*http.Request)                      // told of requests with a token that nobody has; nil: nobody is
	Every  time.Duration                            // between updates of one page
	Secure bool                                     // the door speaks TLS
	Log    *slog.Logger
}

// Page serves the page.
type Page struct {
	opt      Options
	sessions *sessions
	live     live
	files    fs.FS
}

// New is a page for o.
func New(o Options) (*Page, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Failed == nil {
		o.Failed = func(*http.Request) {}
	}
	if o.Every <= 0 {
		o.Every = time.Second / 3
	}
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil, errors.New("the page's bundle is missing: run `make page`")
	}
	return &Page{opt: o, sessions: newSessions(), files: files, live: live{room: o.Room, every: o.Every}}, nil
}

// Handler serves /, the bundle's files, /login, /api/feed and the switches below /api.
func (p *Page) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", p.index)
	m.HandleFunc("POST /login", p.login)
	m.HandleFunc("GET /api/feed", p.feed)
	m.HandleFunc("POST /api/stop", p.stop)
	room := p.opt.Room
	m.Handle("POST /api/estop", p.person(room.EStop))
	m.Handle("POST /api/disarm", p.operator(room.Disarm))
	m.Handle("POST /api/clear", p.operator(room.Clear))
	m.Handle("POST /api/arm", p.operator(room.Arm))
	m.Handle("POST /api/free", p.operator(room.Free))
	m.Handle("POST /api/takeover", p.operator(func(ctx context.Context, who string) (string, error) { return room.TakeOver(ctx, who, who) }))
	m.Handle("GET /page.js", p.file("text/javascript; charset=utf-8"))
	m.Handle("GET /page.css", p.file("text/css; charset=utf-8"))
	m.Handle("/", nowhere(m))
	return headers(m)
}

// nowhere answers what m has no place for: another way of asking, or nothing of the kind.
func nowhere(m *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := m.Handler(other); pattern != "/" {
				w.Header().Set("Allow", method)
				answer(w, http.StatusMethodNotAllowed, "", fmt.Errorf("%s is not taken at %q, only %s", r.Method, r.URL.Path, method))
				return
			}
		}
		answer(w, http.StatusNotFound, "", fmt.Errorf("there is nothing at %q: agents go to /mcp, people to /", r.URL.Path))
	})
}

// headers shuts the page in: no foreign script, frame or picture, and nothing kept by caches.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "+
			"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would send the origin null
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (p *Page) file(kind string) http.Handler {
	files := http.FileServerFS(p.files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		files.ServeHTTP(w, r)
	})
}

// index is the page for one who is in, and the login for one who is not.
func (p *Page) index(w http.ResponseWriter, r *http.Request) {
	if token := r.URL.Query().Get("token"); token != "" {
		p.enter(w, r, token)
		return
	}
	name := "index.html"
	if _, ok := p.who(r); !ok {
		name = "login.html"
	}
	b, err := fs.ReadFile(p.files, name)
	if err != nil {
		http.Error(w, "the page's bundle is incomplete: run `make page`", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if name == "login.html" {
		if r.URL.Query().Has(unknownMark) {
			b = bytes.Replace(b, []byte("<p>"), []byte("<p role=\"alert\">"+unknownWords+" "), 1)
		}
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = w.Write(b) // a browser that has gone needs no answer
}

// What is said after a token that nobody has. It leads to an address without that token.
const (
	unknownMark  = "unknown"
	unknownWords = "Nobody here has the token that was given."
)

// login takes the token from a form.
func (p *Page) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form could not be read", http.StatusBadRequest)
		return
	}
	p.enter(w, r, strings.TrimSpace(r.PostForm.Get("token")))
}

// enter exchanges a token for a session and leads to the page without the token in its address.
func (p *Page) enter(w http.ResponseWriter, r *http.Request, token string) {
	who, ok := p.opt.Lookup(token)
	if !ok {
		p.opt.Failed(r)
		http.Redirect(w, r, "/?"+unknownMark, http.StatusSeeOther)
		return
	}
	id, err := p.sessions.open(who, time.Now())
	if err != nil {
		http.Error(w, "no session could be made", http.StatusInternalServerError)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: p.opt.Secure,
		MaxAge: int(sessionTime.Seconds()),
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// cookieName carries the port, because browsers send a host's cookies to all its ports.
func cookieName(r *http.Request) string {
	u := url.URL{Host: r.Host}
	if p := u.Port(); p != "" {
		return "viad_" + p
	}
	return "viad"
}

// who is the person behind a request's cookie.
func (p *Page) who(r *http.Request) (Person, bool) {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return Person{}, false
	}
	return p.sessions.find(c.Value, time.Now())
}

// act is something that a person does to the robot.
type act func(ctx context.Context, who string) (string, error)

// stop stops the robot for anybody who may look. A cookie counts only from the page itself; a bearer token
// counts from anywhere, for a script that has to stop a robot.
func (p *Page) stop(w http.ResponseWriter, r *http.Request) {
	who, ok := p.who(r)
	if ok && !sameOrigin(r) {
		answer(w, http.StatusForbidden, "", errors.New("a stop with a cookie must come from the page itself"))
		return
	}
	if !ok {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if who, ok = p.opt.Lookup(strings.TrimSpace(token)); !ok || !strings.EqualFold(scheme, "Bearer") {
			p.opt.Failed(r)
			answer(w, http.StatusUnauthorized, "", errors.New("no session and no known token: open the page's link again, or use viactl stop"))
			return
		}
	}
	p.perform(w, r, who, p.opt.Room.Stop)
}

// person lets in whoever has come in by the page, and asks from it.
func (p *Page) person(do act) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, ok := p.fromPage(w, r); ok {
			p.perform(w, r, who, do)
		}
	})
}

// operator lets in operators only. A bearer token does not count here: agents hold tokens, and an agent must not
// arm its own robot.
func (p *Page) operator(do act) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := p.fromPage(w, r)
		if !ok {
			return
		}
		if !who.Operator {
			p.opt.Log.Warn("page: not an operator", "who", who.Name, "role", who.Role, "path", r.URL.Path, "remote", r.RemoteAddr)
			answer(w, http.StatusForbidden, "", fmt.Errorf("%s is a %s, and this is for operators: come in with an operator's token, or use viactl", who.Name, who.Role))
			return
		}
		p.perform(w, r, who, do)
	})
}

// pageHeader is set by the page's script. A form of another site can not set it, and a script of another site only
// after asking, which is refused.
const pageHeader = "X-Viad-Page"

// fromPage is the person behind a request that the page itself has sent; otherwise it answers.
func (p *Page) fromPage(w http.ResponseWriter, r *http.Request) (Person, bool) {
	who, ok := p.who(r)
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case !ok:
		answer(w, http.StatusUnauthorized, "", errors.New("no session: open the page's link again, or use viactl"))
	case !sameOrigin(r), r.Header.Get(pageHeader) == "", site != "" && site != "same-origin":
		p.opt.Log.Warn("page: a request from elsewhere", "who", who.Name, "path", r.URL.Path, "origin", r.Header.Get("Origin"), "site", site, "remote", r.RemoteAddr)
		answer(w, http.StatusForbidden, "", errors.New("this must come from the page itself"))
	default:
		return who, true
	}
	return Person{}, false
}

// perform does it and answers; it goes on when the browser hangs up.
func (p *Page) perform(w http.ResponseWriter, r *http.Request, who Person, do act) {
	p.opt.Log.Info("asked on the page", "path", r.URL.Path, "who", who.Name, "remote", r.RemoteAddr)
	note, err := do(context.WithoutCancel(r.Context()), who.Name)
	if err != nil {
		answer(w, http.StatusConflict, note, err)
		return
	}
	answer(w, http.StatusOK, note, nil)
}

// sameOrigin reports whether the page that sends this came from this server. One that came in clear is not one that
// came over TLS.
func sameOrigin(r *http.Request) bool {
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "https" || u.Scheme == "http" && r.TLS == nil)
}

// actAnswer is what the page shows.
type actAnswer struct {
	OK    bool   `json:"ok"`
	Note  string `json:"note,omitempty"`
	Error string `json:"error,omitempty"`
}

func answer(w http.ResponseWriter, status int, note string, err error) {
	a := actAnswer{OK: err == nil, Note: note}
	if err != nil {
		a.Error = err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a) // a browser that has gone needs no answer
}
