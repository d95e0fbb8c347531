package camera

import (
	"context"
	"fmt"
	"strings"
	"time"

	"viad/drivers/robot"
	"viad/drivers/sensor"
	"viad/ros"
)

// kind is what a picture shows.
type kind int

const (
	colour kind = iota
	depth
)

// picture is one message's pixels, its own stamp, and when it came here.
type picture struct {
	w, h  int
	stamp int64
	from  string // the frame that it says it was taken in
	came  time.Time
	rgb   []byte
	depth []float32
	sum   uint32 // of the message's data
}

// still says since when a stream's pixels have been the same.
type still struct {
	sum   uint32
	since time.Time
}

func (k *still) see(sum uint32, now time.Time) {
	if sum != k.sum || k.since.IsZero() {
		k.sum, k.since = sum, now
	}
}

// other says that a stream's pictures come of two cameras; empty when they do not.
func (o *origin) other(p *picture, now time.Time) string {
	if !o.known {
		o.known, o.from = true, p.from
	}
	if p.from != o.from {
		o.mixed, o.why = now, fmt.Sprintf("pictures come of the frame %q and of %q: two cameras publish under this name; end one of them, and start the daemon again if the first was the wrong one", o.from, p.from)
		return o.why
	}
	return ""
}

// origin is whose pictures a stream shows, by the frame of the first.
type origin struct {
	known bool
	from  string
	mixed time.Time // when one of another frame came last; zero: never
	why   string
}

// patience is how many pictures wait for their partner: depth that is computed comes some pictures after its colour.
const patience = 6

// take is one picture that came.
func (s *Camera) take(p *picture, err error, i ros.Info, k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	topic := s.c.Color
	if k == depth {
		topic = s.c.Depth
	}
	if in := s.info.Intrinsics; err == nil && s.known && (p.w != in.W || p.h != in.H) {
		err = fmt.Errorf("%d x %d pixels, and its camera_info speaks of %d x %d; depth must be aligned to colour", p.w, p.h, in.W, in.H)
	}
	if err != nil {
		s.why = fmt.Sprintf("%s: %v", topic, err)
		s.wake()
		return
	}
	now := s.c.Clock.Now()
	if why := s.origins[k].other(p, now); why != "" {
		s.why = topic + ": " + why
		s.wake()
		return
	}
	p.came = now
	if age := time.Since(i.Received); age > 0 && !i.Received.IsZero() {
		p.came = now.Add(-age)
	}
	s.same[k].see(p.sum, now)
	s.waiting[k] = append(s.waiting[k], p)
	if n := len(s.waiting[k]); n > patience {
		s.waiting[k] = append([]*picture(nil), s.waiting[k][n-patience:]...)
	}
	s.join(p, k)
}

// join makes a frame of p and its partner, if that has come.
func (s *Camera) join(p *picture, k kind) {
	if !s.known {
		return
	}
	if s.c.Depth == "" {
		s.waiting[colour] = nil
		s.give(p, nil)
		return
	}
	others := s.waiting[1-k]
	best := -1
	for i, o := range others {
		if apart(p, o) <= pairTime && (best < 0 || apart(p, o) <= apart(p, others[best])) {
			best = i
		}
	}
	if best < 0 {
		return
	}
	o := others[best]
	s.waiting[k], s.waiting[1-k] = nil, append([]*picture(nil), others[best+1:]...)
	if k == depth {
		p, o = o, p
	}
	s.give(p, o)
}

// apart is how far two pictures' stamps are from each other.
func apart(a, b *picture) time.Duration { return time.Duration(max(a.stamp-b.stamp, b.stamp-a.stamp)) }

// give makes a frame. Its stamp is when the first of its halves came: neither was exposed later.
func (s *Camera) give(c, d *picture) {
	s.seq++
	f := &sensor.Frame{Info: &s.info, Seq: s.seq, Received: c.came, Stamp: c.came, RGB: c.rgb}
	if d != nil {
		f.Depth = d.depth
		if d.came.After(f.Received) {
			f.Received = d.came
		} else {
			f.Stamp = d.came
		}
	}
	s.frame, s.why = f, ""
	s.wake()
}

func (s *Camera) wake() {
	close(s.fresh)
	s.fresh = make(chan struct{})
}

// trouble says why no frame may be given out; "" when one may.
func (s *Camera) trouble(now time.Time) string {
	silent := s.frame != nil && now.Sub(s.frame.Received) >= s.c.Stall // which is another trouble, and Frame says it
	switch still := s.frozen(now); {
	case s.changed != "":
		return s.changed
	case s.why != "":
		return s.why
	case s.mixed(now) != "":
		return s.mixed(now)
	case !silent && s.c.Freeze > 0 && still > s.c.Freeze:
		return fmt.Sprintf("pictures come on %s and not one pixel has changed for %v, at most %v is taken for live: start the camera's node again",
			s.c.Color, still.Round(time.Millisecond), s.c.Freeze)
	}
	return ""
}

// mixed says which stream has shown two cameras within Stall: which of them is meant is not known.
func (s *Camera) mixed(now time.Time) string {
	for k, topic := range []string{s.c.Color, s.c.Depth} {
		if o := &s.origins[k]; !o.mixed.IsZero() && now.Sub(o.mixed) < s.c.Stall {
			return topic + ": " + o.why
		}
	}
	return ""
}

// frozen is how long the stillest stream has shown the same.
func (s *Camera) frozen(now time.Time) (longest time.Duration) {
	for _, k := range s.same {
		if !k.since.IsZero() {
			longest = max(longest, now.Sub(k.since))
		}
	}
	return longest
}

// Frame waits for a picture that arrived at or after t; a zero t takes the newest. A stream that is silent for Stall, that
// is frozen for Freeze, or that sends what cannot be read, is an error with the topic and what to look at.
func (s *Camera) Frame(ctx context.Context, t time.Time) (*sensor.Frame, error) {
	began := s.c.Clock.Now()
	for {
		now := s.c.Clock.Now()
		s.mu.Lock()
		f, why, fresh, closed := s.frame, s.trouble(now), s.fresh, s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case why != "":
			return nil, fmt.Errorf("camera %s: %s", s.c.Name, why)
		case f != nil && !f.Stamp.Before(t) && now.Sub(f.Received) < s.c.Stall:
			return f, nil
		}
		end, limit := began.Add(s.c.Stall), s.c.Stall
		switch first := s.opened.Add(s.c.Start); {
		case f != nil && f.Received.After(began):
			end = f.Received.Add(s.c.Stall)
		case f == nil && first.After(end):
			end, limit = first, s.c.Start
		}
		left := end.Sub(now)
		if left <= 0 {
			return nil, fmt.Errorf("camera %s: no picture came on %s for %v: %s", s.c.Name, s.c.Color, limit, s.silence())
		}
		select {
		case <-fresh:
		case <-s.c.Clock.After(left):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// silence says why no frame comes, as far as it can be told from here.
func (s *Camera) silence() string {
	s.mu.Lock()
	c, d := s.waiting[colour], s.waiting[depth]
	s.mu.Unlock()
	switch {
	case len(c) > 0 && len(d) > 0:
		return fmt.Sprintf("colour and depth come, %v apart by their stamps, at most %v makes one picture; look at the camera's synchronisation",
			apart(c[len(c)-1], d[len(d)-1]), pairTime)
	case len(c) > 0 && s.c.Depth != "":
		return fmt.Sprintf("colour comes, its depth on %s does not: %s", s.c.Depth, s.publishers(s.c.Depth, 2))
	}
	return s.publishers(s.c.Color, 1)
}

// graphTime bounds the question who publishes; on a rosbridge it goes over the wire.
const graphTime = 500 * time.Millisecond

// publishers says what is known of who publishes the topic of subscription i.
func (s *Camera) publishers(topic string, i int) string {
	ctx, cancel := context.WithTimeout(context.Background(), graphTime)
	defer cancel()
	g, err := s.c.Node.Graph(ctx)
	var who []string
	for _, t := range g.Topics {
		if err != nil || t.Name != topic {
			continue
		}
		for _, p := range t.Publishers {
			who = append(who, fmt.Sprintf("%s (%s, %s)", p.Node, reliability(p.QoS), t.Type))
		}
	}
	n := -1
	if i < len(s.subs) {
		n = s.subs[i].Publishers()
	}
	switch {
	case len(who) > 0 && n == 0:
		return "published by " + strings.Join(who, ", ") + " and not matched; is it of the type that the launch file says?"
	case len(who) > 0:
		return "its publisher " + strings.Join(who, ", ") + " says nothing; look at the camera's node, its USB cable and its power"
	case n == 0:
		return "nobody publishes it here; is the camera's node running, in this domain?"
	case n < 0:
		return "this wire does not tell who publishes it; is the camera's node running?"
	}
	return "its publisher says nothing; look at the camera's node, its USB cable and its power"
}

func reliability(q ros.QoS) string {
	if q.Reliable {
		return "reliable"
	}
	return "best effort"
}

// Facts say how the stream is; none keeps the robot from moving, since every scene says how old it is.
func (s *Camera) Facts() []robot.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := robot.Fact{Name: "camera " + s.c.Name}
	now := s.c.Clock.Now()
	switch why := s.trouble(now); {
	case s.frame != nil && now.Sub(s.frame.Received) >= s.c.Stall:
		f.Value = fmt.Sprintf("no picture on %s for %v", s.c.Color, now.Sub(s.frame.Received).Round(time.Second))
	case why != "":
		f.Value = why
	case s.frame == nil:
		f.Value = "no picture yet"
	default:
		f.Value = fmt.Sprintf("%d x %d, newest %v old", s.info.Intrinsics.W, s.info.Intrinsics.H, now.Sub(s.frame.Received).Round(time.Millisecond))
		if frozen := s.frozen(now); frozen > 10*time.Second {
			f.Value += fmt.Sprintf(", not one pixel changed for %v", frozen.Round(time.Second))
		}
	}
	f.Value += s.lens
	return []robot.Fact{f}
}
