package rtps

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// domain gives a domain that no other test process uses now, of 20..39.
func domain(t testing.TB) int {
	t.Helper()
	for d := 20; d < 40; d++ {
		f, err := os.OpenFile(fmt.Sprintf("%s/viad-rtps-domain-%d", os.TempDir(), d), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			t.Cleanup(func() { f.Close() })
			return d
		}
		f.Close()
	}
	t.Fatal("all domains of 20..39 are taken")
	return 0
}

func openAt(t testing.TB, c Config) *Participant {
	t.Helper()
	c.Localhost = true
	p, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// payload is a sample of n bytes that tells its number and is full of it.
func payload(n, i int) []byte {
	b := make([]byte, n)
	copy(b, []byte{0, 1, 0, 0})
	for k := 4; k < n; k++ {
		b[k] = byte(i + k*7)
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(i))
	return b
}

func same(b []byte, n int) error {
	i := int(binary.LittleEndian.Uint32(b[4:]))
	if len(b) < n || len(b) > n+3 {
		return fmt.Errorf("sample %d has %d bytes, not %d", i, len(b), n)
	}
	for k := 8; k < n; k++ {
		if b[k] != byte(i+k*7) {
			return fmt.Errorf("sample %d is wrong at byte %d", i, k)
		}
	}
	return nil
}

// sink collects the numbers of samples.
type sink struct {
	mu   sync.Mutex
	got  []int
	errs []error
	size int
	more chan struct{}
}

func newSink(size int) *sink { return &sink{size: size, more: make(chan struct{}, 1)} }

func (s *sink) take(m *Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size > 0 {
		if err := same(m.Payload, s.size); err != nil {
			s.errs = append(s.errs, err)
		}
	}
	s.got = append(s.got, int(binary.LittleEndian.Uint32(m.Payload[4:])))
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *sink) wait(ctx context.Context, t testing.TB, n int) []int {
	t.Helper()
	for {
		s.mu.Lock()
		got, errs := append([]int(nil), s.got...), s.errs
		s.mu.Unlock()
		if len(errs) > 0 {
			t.Fatal(errs[0])
		}
		if len(got) >= n {
			return got
		}
		select {
		case <-s.more:
		case <-ctx.Done():
			t.Fatalf("%d samples of %d came", len(got), n)
		}
	}
}

var reliable = QoS{Reliable: true, KeepAll: true}

func TestPair(t *testing.T) {
	for _, size := range []int{12, 1000, 70000, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			d, ctx := domain(t), soon(t)
			a, b := openAt(t, Config{Domain: d, Name: "a"}), openAt(t, Config{Domain: d, Name: "b"})
			s := newSink(size)
			if _, err := b.NewReader(ReaderConfig{Topic: "rt/x", Type: "T", QoS: reliable}, s.take); err != nil {
				t.Fatal(err)
			}
			w, err := a.NewWriter(WriterConfig{Topic: "rt/x", Type: "T", QoS: reliable})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if err := w.WaitSynced(ctx, 1); err != nil {
				t.Fatal(err)
			}
			t.Log("synced after", time.Since(start))
			for i := range 50 {
				if _, err := w.Write(ctx, payload(size, i), nil); err != nil {
					t.Fatal(err)
				}
			}
			start = time.Now()
			if err := w.WaitAcked(ctx); err != nil {
				t.Fatal(err)
			}
			t.Log("acked after", time.Since(start))
			for i, v := range s.wait(ctx, t, 50) {
				if v != i {
					t.Fatalf("sample %d came in place of %d", v, i)
				}
			}
			start = time.Now()
			a.Close()
			t.Log("closed after", time.Since(start))
		})
	}
}
