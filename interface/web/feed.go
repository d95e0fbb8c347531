package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"viad/interface/operator"
)

// writeTime bounds how long a page that does not read can hold its connection.
const writeTime = 5 * time.Second

// stateMessage is a text message of the feed.
type stateMessage struct {
	Status operator.Status `json:"status"`
	You    Person          `json:"you"`
	Calls  []Call          `json:"calls,omitempty"` // only when they changed
	Error  string          `json:"error,omitempty"` // why there is no live picture
}

// pictureHead stands on the first line of a binary message; the JPEG follows after a newline.
type pictureHead struct {
	Kind  string `json:"kind"` // "live" or "shown"
	Name  string `json:"name"`
	Index int    `json:"index"`
	Count int    `json:"count"`
	Age   secs   `json:"age_s"` // since it was sent to the agent, when this message was made
}

// secs are seconds in the page's messages.
type secs float64

func since(at time.Time) secs {
	if at.IsZero() {
		return 0
	}
	return secs(time.Since(at).Seconds())
}

// live paints for all pages at once.
type live struct {
	room  Room
	every time.Duration

	mu   sync.Mutex
	at   time.Time
	pics []Picture
	err  error
}

// get is a picture not older than one update.
func (l *live) get(ctx context.Context) ([]Picture, time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.at) > l.every*3/4 {
		// A page that closes meanwhile takes nothing from the others.
		paint, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		l.pics, l.err = l.room.Live(paint)
		cancel()
		l.at = now
	}
	return l.pics, l.at, l.err
}

// feed keeps one page fresh until it closes. It sends at its own pace and only what changed, so a slow
// link gets fewer pictures, never old ones.
func (p *Page) feed(w http.ResponseWriter, r *http.Request) {
	who, ok := p.who(r)
	if !ok {
		http.Error(w, "open the page's link again", http.StatusUnauthorized)
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = c.CloseNow() }() // after a clean close there is nothing left to close
	ctx := c.CloseRead(r.Context())
	f := feeder{page: p, c: c, you: who}
	tick := time.NewTicker(p.opt.Every)
	defer tick.Stop()
	for {
		if err := f.send(ctx); err != nil {
			if ctx.Err() == nil {
				p.opt.Log.Debug("page: feed ended", "error", err)
			}
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = c.Close(websocket.StatusGoingAway, "the daemon is stopping")
			return
		}
	}
}

// feeder remembers what one page has.
type feeder struct {
	page  *Page
	c     *websocket.Conn
	you   Person
	calls uint64
	shown uint64
	live  time.Time
}

func (f *feeder) send(ctx context.Context) error {
	pics, at, err := f.page.live.get(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m := stateMessage{Status: f.page.opt.Room.Status(), You: f.you}
	if err != nil {
		m.Error = err.Error()
	}
	calls := f.page.opt.Room.Calls()
	if len(calls) > 0 && calls[0].Seq != f.calls {
		f.calls, m.Calls = calls[0].Seq, calls
	}
	text, jerr := json.Marshal(m)
	if jerr != nil {
		return jerr
	}
	if err := f.write(ctx, websocket.MessageText, text); err != nil {
		return err
	}
	if seq, shown := f.page.opt.Room.Shown(); seq != f.shown {
		if err := f.pictures(ctx, "shown", shown); err != nil {
			return err
		}
		f.shown = seq
	}
	if err == nil && at != f.live {
		f.live = at
		return f.pictures(ctx, "live", pics)
	}
	return nil
}

func (f *feeder) pictures(ctx context.Context, kind string, pics []Picture) error {
	var errs []error
	for i, p := range pics {
		head, err := json.Marshal(pictureHead{kind, p.Name, i, len(pics), since(p.At)})
		if err != nil {
			return err
		}
		errs = append(errs, f.write(ctx, websocket.MessageBinary, append(append(head, '\n'), p.JPEG...)))
	}
	return errors.Join(errs...)
}

func (f *feeder) write(ctx context.Context, t websocket.MessageType, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return f.c.Write(ctx, t, b)
}
