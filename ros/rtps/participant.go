package rtps

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// never is a time of Participant.now that does not come.
const never = math.MaxInt64

// Participant takes part in one domain. It may be used by many goroutines.
type Participant struct {
	cfg     Config
	limits  Limits
	prefix  GUIDPrefix
	net     carrier
	born    time.Time
	pool    pool
	alarm   alarm
	static  *statics
	done    chan struct{}
	wg      sync.WaitGroup
	once    sync.Once
	leaving atomic.Bool // no announcement is sent any more
	log     *slog.Logger
	count   counters

	receivers  sync.Pool    // of *receiver, one for each goroutine that reads from a socket
	reassembly atomic.Int64 // bytes of unfinished samples, of all peers

	pub, sub, live *Writer   // of discovery
	ticking        []*Reader // of the timer goroutine
	ticked         message

	mu         sync.RWMutex // before any Writer's or Reader's
	closed     bool
	peers      map[GUIDPrefix]*peer
	writers    map[EntityID]*Writer
	readers    map[EntityID]*Reader
	sources    map[GUID][]*Reader // our readers that are matched with a writer of another
	mismatches map[[2]GUID]Mismatch
	watchers   []*watcher
	departed   [64]departure // who said goodbye of late
	departures int
	nextID     uint32
	spdpSeq    int64
	warnAt     int64
	refuseAt   int64
	weight     int // of all endpoints of others
	announceAt int64
	announced  int
	assertAt   int64
}

// departure keeps an announcement that was overtaken by its sender's goodbye from raising the dead.
type departure struct {
	prefix GUIDPrefix
	at     int64
}

type counters struct {
	in, out, inBytes, outBytes, malformed, refused, overBudget atomic.Uint64
}

// Stats are counts since the participant was opened.
type Stats struct {
	DatagramsIn, DatagramsOut uint64
	BytesIn, BytesOut         uint64
	Malformed                 uint64 // datagrams or submessages that could not be read
	Refused                   uint64 // announcements of participants and endpoints beyond the limits
	OverBudget                uint64 // pieces of samples dropped for lack of room
	Reassembly                int64  // bytes of unfinished samples, now
}

// Open joins a domain. The participant announces itself and answers others until it is closed.
func Open(c Config) (*Participant, error) {
	if c.Domain < 0 || c.Domain > 232 {
		return nil, fmt.Errorf("rtps: domain %d is outside 0..232", c.Domain)
	}
	n, err := openNetwork(&c)
	if err != nil {
		return nil, fmt.Errorf("rtps: %w", err)
	}
	p, err := open(c, n)
	if err != nil {
		n.close()
		return nil, fmt.Errorf("rtps: %w", err)
	}
	return p, nil
}

// open makes a participant over any carrier.
func open(c Config, n carrier) (*Participant, error) {
	p := &Participant{
		cfg: c, net: n, born: time.Now().Add(-time.Second), done: make(chan struct{}), log: c.Log,
		peers: map[GUIDPrefix]*peer{}, writers: map[EntityID]*Writer{}, readers: map[EntityID]*Reader{},
		sources: map[GUID][]*Reader{}, mismatches: map[[2]GUID]Mismatch{},
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.receivers.New = func() any { return &receiver{p: p} }
	p.defaults()
	if p.prefix = c.prefix; p.prefix != (GUIDPrefix{}) {
		// Given.
	} else if _, err := rand.Read(p.prefix[2:]); err != nil { // the first two are our vendor, which has no name
		return nil, err
	}
	st, err := parseStatics(&p.cfg)
	if err != nil {
		return nil, err
	}
	p.static = st
	p.pool.limit = 64 << 20
	p.alarm.poke = make(chan struct{}, 1)
	p.alarm.at.Store(never)
	p.builtin()
	p.wg.Go(func() { p.alarm.run(p.now, p.tick, p.done) })
	if st.names() {
		p.wg.Go(func() { st.resolve(p.log, p.done) })
	}
	n.listen(p.receive)
	return p, nil
}

func (p *Participant) defaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	p.limits = p.cfg.Limits
	def(&p.limits.Peers, 512)
	def(&p.limits.Endpoints, 4096)
	def(&p.limits.Sample, 64<<20)
	def(&p.limits.Reassembly, 128<<20)
	def(&p.limits.Unacknowledged, 128<<20)
	if p.cfg.Announce <= 0 {
		p.cfg.Announce = 3 * time.Second
	}
	if p.cfg.Lease <= 0 {
		p.cfg.Lease = 20 * time.Second
	}
	if p.cfg.Fragment > 0 {
		p.cfg.Fragment = min(max(p.cfg.Fragment, 64), maxDatagram-overhead) &^ 3
	}
}

// builtin makes the endpoints of discovery.
func (p *Participant) builtin() {
	q := QoS{Reliable: true, TransientLocal: true, KeepAll: true}
	writer := func(id EntityID, q QoS) *Writer {
		w := newWriter(p, id, &WriterConfig{QoS: q})
		p.writers[id] = w
		p.wg.Go(w.pump)
		return w
	}
	reader := func(id EntityID, f func(*Sample)) {
		r := newReader(p, id, &ReaderConfig{QoS: q}, f)
		p.readers[id] = r
		p.wg.Go(r.deliver)
	}
	p.pub = writer(entityPubWriter, q)
	p.sub = writer(entitySubWriter, q)
	p.live = writer(entityLiveWriter, QoS{Reliable: true, TransientLocal: true, Depth: 1})
	reader(entityPubReader, func(s *Sample) { p.onSEDP(s, true) })
	reader(entitySubReader, func(s *Sample) { p.onSEDP(s, false) })
	reader(entityLiveReader, func(*Sample) {}) // that it came is the sign of life
}

// now is nanoseconds since shortly before the participant was opened: never 0, and monotonic.
func (p *Participant) now() int64 { return int64(time.Since(p.born)) }

// GUID names the participant in the domain.
func (p *Participant) GUID() GUID { return p.prefix.GUID(entityParticipant) }

// NewWriter makes a writer and announces it.
func (p *Participant) NewWriter(c WriterConfig) (*Writer, error) {
	if err := checkTopic(c.Topic, c.Type); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	w := newWriter(p, p.newID(kindWriter), &c)
	p.writers[w.id] = w
	p.wg.Go(w.pump)
	w.announcedAs = p.announceEndpoint(p.pub, w.GUID(), w.topic, w.typ, &w.qos, w.userData)
	for _, q := range p.peers {
		for _, e := range q.endpoints {
			p.matchWriter(w, q, e)
		}
	}
	return w, nil
}

// NewReader makes a reader and announces it. f is called with each sample, in one goroutine of the reader's.
func (p *Participant) NewReader(c ReaderConfig, f func(*Sample)) (*Reader, error) {
	if err := checkTopic(c.Topic, c.Type); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, errors.New("rtps: a reader needs a function")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	r := newReader(p, p.newID(kindReader), &c, f)
	p.readers[r.id] = r
	p.wg.Go(r.deliver)
	r.announcedAs = p.announceEndpoint(p.sub, r.GUID(), r.topic, r.typ, &r.qos, r.userData)
	for _, q := range p.peers {
		for _, e := range q.endpoints {
			p.matchReader(r, q, e)
		}
	}
	return r, nil
}

func checkTopic(topic, typ string) error {
	if topic == "" || typ == "" || len(topic) >= longestText || len(typ) >= longestText {
		return fmt.Errorf("rtps: topic %.40q and type %.40q need 1..%d bytes each", topic, typ, longestText-1)
	}
	return nil
}

func (p *Participant) newID(kind byte) EntityID {
	p.nextID++
	return EntityID{byte(p.nextID >> 16), byte(p.nextID >> 8), byte(p.nextID), kind}
}

func (p *Participant) dropWriter(w *Writer) {
	p.mu.Lock()
	known := p.writers[w.id] == w
	if known {
		delete(p.writers, w.id)
		p.unmatchOurs(w.GUID(), w.Matched())
	}
	closed := p.closed
	p.mu.Unlock()
	if known && !closed {
		p.withdraw(p.pub, w.announcedAs, w.GUID())
	}
	w.shut()
}

func (p *Participant) dropReader(r *Reader) {
	p.mu.Lock()
	known := p.readers[r.id] == r
	if known {
		delete(p.readers, r.id)
		matched := r.Matched()
		p.unmatchOurs(r.GUID(), matched)
		for _, e := range matched {
			p.unlink(e.GUID, r)
		}
	}
	closed := p.closed
	p.mu.Unlock()
	if known && !closed {
		p.withdraw(p.sub, r.announcedAs, r.GUID())
	}
	r.shut()
}

// Close says goodbye, frees the sockets and ends all goroutines. It waits for functions of readers and watchers to
// return, and so must not be called from one.
func (p *Participant) Close() error {
	p.once.Do(func() {
		p.leaving.Store(true)
		p.goodbye()
		p.mu.Lock()
		p.closed = true
		writers, readers, watchers := values(p.writers), values(p.readers), p.watchers
		p.watchers = nil
		p.mu.Unlock()
		close(p.done)
		for _, w := range writers {
			w.shut()
		}
		for _, r := range readers {
			r.shut()
		}
		for _, w := range watchers {
			w.shut()
		}
		p.net.close()
	})
	p.wg.Wait()
	return nil
}

func values[K comparable, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// send gives a datagram to the network.
func (p *Participant) send(b []byte, to netip.AddrPort) {
	if !to.IsValid() {
		return
	}
	p.count.out.Add(1)
	p.count.outBytes.Add(uint64(len(b)))
	if p.cfg.Wire != nil && !p.cfg.Wire(Datagram{Out: true, Addr: to, Data: b}) {
		return
	}
	p.net.send(b, to)
}

// tick is one round of the timer goroutine.
func (p *Participant) tick(now int64) (next int64) {
	next = min(p.tickAnnounce(now), p.tickGreet(now), p.tickLeases(now), p.tickAssert(now))
	p.mu.RLock()
	for _, w := range p.writers {
		next = min(next, w.tick(now))
	}
	p.ticking = p.ticking[:0]
	for _, r := range p.readers {
		p.ticking = append(p.ticking, r)
	}
	p.mu.RUnlock()
	for _, r := range p.ticking {
		next = min(next, r.tick(now, &p.ticked))
	}
	return next
}

// Stats are counts of the participant's traffic.
func (p *Participant) Stats() Stats {
	c := &p.count
	return Stats{
		DatagramsIn: c.in.Load(), DatagramsOut: c.out.Load(), BytesIn: c.inBytes.Load(), BytesOut: c.outBytes.Load(),
		Malformed: c.malformed.Load(), Refused: c.refused.Load(), OverBudget: c.overBudget.Load(),
		Reassembly: p.reassembly.Load(),
	}
}
