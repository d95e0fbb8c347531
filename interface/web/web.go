// Package web is the people's page: the picture that the agent sees, the live scene, the robot's state, the
// last calls and a large stop button. It shows and stops; it stages nothing.
//
// A person comes in with a link that carries a token (/?token=...). The token is exchanged once for a
// session cookie that scripts cannot read and other sites cannot send, so it stays in no history and no
// log. The guard around this handler has already checked Host and Origin.
package web

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
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

// Room is what the page looks into.
type Room interface {
	Status() operator.Status
	// Live paints what is seen now. It is asked only while somebody watches.
	Live(ctx context.Context) ([]Picture, error)
	// Shown is what the seat was last sent, with a number that grows when it changes.
	Shown() (seq uint64, pictures []Picture)
	// Calls are the last calls, newest first.
	Calls() []Call
	// Stop stops the robot and says in words what was measured.
	Stop(ctx context.Context) (string, error)
}

// Options of a Page.
type Options struct {
	Room   Room
	Lookup func(token string) (name string, ok bool) // who a token belongs to
	Every  time.Duration                             // between updates of one page
	Secure bool                                      // the door speaks TLS
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

// Handler serves /, the bundle's files, /login, /api/feed and /api/stop.
func (p *Page) Handler() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", p.index)
	m.HandleFunc("POST /login", p.login)
	m.HandleFunc("GET /api/feed", p.feed)
	m.HandleFunc("POST /api/stop", p.stop)
	m.Handle("GET /page.js", p.file("text/javascript; charset=utf-8"))
	m.Handle("GET /page.css", p.file("text/css; charset=utf-8"))
	return headers(m)
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
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = w.Write(b) // a browser that has gone needs no answer
}

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
	name, ok := p.opt.Lookup(token)
	if !ok {
		p.opt.Log.Warn("page: unknown token", "remote", r.RemoteAddr)
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	id, err := p.sessions.open(name, time.Now())
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
func (p *Page) who(r *http.Request) (string, bool) {
	c, err := r.Cookie(cookieName(r))
	if err != nil {
		return "", false
	}
	return p.sessions.find(c.Value, time.Now())
}

// stop stops the robot for anybody who may look. A cookie counts only from the page itself; a bearer token
// counts from anywhere, for a script that has to stop a robot.
func (p *Page) stop(w http.ResponseWriter, r *http.Request) {
	name, ok := p.who(r)
	if ok && !sameOrigin(r) {
		answer(w, http.StatusForbidden, "", errors.New("a stop with a cookie must come from the page itself"))
		return
	}
	if !ok {
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if name, ok = p.opt.Lookup(token); !bearer || !ok {
			answer(w, http.StatusUnauthorized, "", errors.New("no session and no known token: open the page's link again, or use viactl stop"))
			return
		}
	}
	p.opt.Log.Info("stop from the page", "who", name, "remote", r.RemoteAddr)
	// The stop goes on when the browser hangs up.
	note, err := p.opt.Room.Stop(context.WithoutCancel(r.Context()))
	if err != nil {
		answer(w, http.StatusBadGateway, note, err)
		return
	}
	answer(w, http.StatusOK, note, nil)
}

func sameOrigin(r *http.Request) bool {
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// stopAnswer is what the button shows.
type stopAnswer struct {
	OK    bool   `json:"ok"`
	Note  string `json:"note,omitempty"`
	Error string `json:"error,omitempty"`
}

func answer(w http.ResponseWriter, status int, note string, err error) {
	a := stopAnswer{OK: err == nil, Note: note}
	if err != nil {
		a.Error = err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a) // a browser that has gone needs no answer
}
