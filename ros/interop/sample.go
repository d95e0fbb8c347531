package interop

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"viad/ros/msg"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
)

// ImageSize is the bytes of the picture that is measured with: 640 x 546 pixels of three bytes, next to one million.
const ImageSize = 640 * 546 * 3

// Kind is a type of message that both sides know how to make and to check: each sample carries its number, the time of
// its making, and content that follows from the number. The peers do the same in C and C++.
type Kind struct {
	Name string // as the peers' option type
	Type string // on the wire
	New  func() msg.Message
	// Fill makes sample seq; size is the bytes of its variable part.
	Fill func(m msg.Message, seq int64, at time.Time, size int)
	// Check says which sample it is, when it was made and whether its content is right.
	Check func(m msg.Message, size int) (seq int64, at time.Time, whole bool)
}

// Kinds are the four types.
func Kinds() []Kind {
	return []Kind{String(), Image(), JointState(), PointCloud2()}
}

// mix spreads consecutive numbers over all bits, so that neighbouring samples differ in every word.
const mix = 0x9E3779B97F4A7C15

func fillBytes(old []byte, seq int64, size int) []byte {
	data := slices.Grow(old[:0], size)[:size]
	base, i := uint64(seq)*mix, 0
	for ; i+8 <= size; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], base+uint64(i/8))
	}
	for ; i < size; i++ {
		data[i] = byte(seq)
	}
	return data
}

func checkBytes(data []byte, seq int64, size int) bool {
	if len(data) != size {
		return false
	}
	base, wrong := uint64(seq)*mix, uint64(0)
	for ; len(data) >= 8; data = data[8:] {
		wrong |= binary.LittleEndian.Uint64(data) ^ base
		base++
	}
	for _, b := range data {
		wrong |= uint64(b ^ byte(seq))
	}
	return wrong == 0
}

func header(seq int64, at time.Time) std_msgs.Header {
	return std_msgs.Header{Stamp: builtin_interfaces.Time{Sec: int32(at.Unix()), Nanosec: uint32(at.Nanosecond())}, FrameId: strconv.FormatInt(seq, 10)}
}

func readHeader(h *std_msgs.Header) (seq int64, at time.Time, ok bool) {
	seq, err := strconv.ParseInt(h.FrameId, 10, 64)
	return seq, time.Unix(int64(h.Stamp.Sec), int64(h.Stamp.Nanosec)), err == nil
}

// String is std_msgs/String: "number:nanoseconds:letters".
func String() Kind {
	return Kind{
		Name: "String", Type: "std_msgs::msg::dds_::String_", New: func() msg.Message { return new(std_msgs.String) },
		Fill: func(m msg.Message, seq int64, at time.Time, size int) {
			m.(*std_msgs.String).Data = fmt.Sprintf("%d:%d:%s", seq, at.UnixNano(), strings.Repeat(letter(seq), size))
		},
		Check: func(m msg.Message, size int) (int64, time.Time, bool) {
			var seq, ns int64
			parts := strings.SplitN(m.(*std_msgs.String).Data, ":", 3)
			if len(parts) != 3 {
				return 0, time.Time{}, false
			}
			seq, e1 := strconv.ParseInt(parts[0], 10, 64)
			ns, e2 := strconv.ParseInt(parts[1], 10, 64)
			return seq, time.Unix(0, ns), e1 == nil && e2 == nil && seq >= 0 && parts[2] == strings.Repeat(letter(seq), size)
		},
	}
}

func letter(seq int64) string { return string(rune('a' + seq%26)) }

// Image is sensor_msgs/Image.
func Image() Kind {
	return Kind{
		Name: "Image", Type: "sensor_msgs::msg::dds_::Image_", New: func() msg.Message { return new(sensor_msgs.Image) },
		Fill: func(m msg.Message, seq int64, at time.Time, size int) {
			im := m.(*sensor_msgs.Image)
			*im = sensor_msgs.Image{
				Header: header(seq, at), Width: 640, Height: uint32(size / 1920), Step: 1920, Encoding: "rgb8",
				Data: fillBytes(im.Data, seq, size),
			}
		},
		Check: func(m msg.Message, size int) (int64, time.Time, bool) {
			im := m.(*sensor_msgs.Image)
			seq, at, ok := readHeader(&im.Header)
			return seq, at, ok && im.Width == 640 && im.Height == uint32(size/1920) && im.Step == 1920 && im.Encoding == "rgb8" && checkBytes(im.Data, seq, size)
		},
	}
}

const joints = 7

// JointState is sensor_msgs/JointState of seven joints.
func JointState() Kind {
	make1 := func(seq int64, at time.Time) sensor_msgs.JointState {
		j := sensor_msgs.JointState{Header: header(seq, at)}
		for i := range joints {
			j.Name = append(j.Name, "fr3_joint"+strconv.Itoa(i+1))
			j.Position = append(j.Position, float64(seq)+0.125*float64(i))
			j.Velocity = append(j.Velocity, -float64(seq)-0.25*float64(i))
			j.Effort = append(j.Effort, 0.5*float64(i))
		}
		return j
	}
	return Kind{
		Name: "JointState", Type: "sensor_msgs::msg::dds_::JointState_", New: func() msg.Message { return new(sensor_msgs.JointState) },
		Fill: func(m msg.Message, seq int64, at time.Time, _ int) { *m.(*sensor_msgs.JointState) = make1(seq, at) },
		Check: func(m msg.Message, _ int) (int64, time.Time, bool) {
			j := m.(*sensor_msgs.JointState)
			seq, at, ok := readHeader(&j.Header)
			want := make1(seq, at)
			return seq, at, ok && slices.Equal(j.Name, want.Name) && slices.Equal(j.Position, want.Position) && slices.Equal(j.Velocity, want.Velocity) && slices.Equal(j.Effort, want.Effort)
		},
	}
}

// PointCloud2 is sensor_msgs/PointCloud2 with four fields.
func PointCloud2() Kind {
	fields := func() []sensor_msgs.PointField {
		out := make([]sensor_msgs.PointField, 0, 4)
		for i, n := range []string{"x", "y", "z", "intensity"} {
			out = append(out, sensor_msgs.PointField{Name: n, Offset: uint32(4 * i), Datatype: 7, Count: 1})
		}
		return out
	}
	return Kind{
		Name: "PointCloud2", Type: "sensor_msgs::msg::dds_::PointCloud2_", New: func() msg.Message { return new(sensor_msgs.PointCloud2) },
		Fill: func(m msg.Message, seq int64, at time.Time, size int) {
			c := m.(*sensor_msgs.PointCloud2)
			*c = sensor_msgs.PointCloud2{
				Header: header(seq, at), Height: 1, Width: uint32(size / 16), Fields: fields(), PointStep: 16, RowStep: uint32(size),
				Data: fillBytes(c.Data, seq, size), IsDense: true,
			}
		},
		Check: func(m msg.Message, size int) (int64, time.Time, bool) {
			c := m.(*sensor_msgs.PointCloud2)
			seq, at, ok := readHeader(&c.Header)
			return seq, at, ok && c.Height == 1 && c.Width == uint32(size/16) && slices.Equal(c.Fields, fields()) && c.PointStep == 16 &&
				c.RowStep == uint32(size) && c.IsDense && checkBytes(c.Data, seq, size)
		},
	}
}

// Tally counts what arrives, safe for concurrent use.
type Tally struct {
	mu                            sync.Mutex
	seen                          map[int64]bool
	latency                       []time.Duration
	last                          int64
	corrupt, disorder, duplicates int
	want                          int
	full                          chan struct{}
}

// NewTally is full when want different samples are there.
func NewTally(want int) *Tally {
	return &Tally{seen: map[int64]bool{}, last: -1, want: want, full: make(chan struct{})}
}

// Full is closed when all have come.
func (t *Tally) Full() <-chan struct{} { return t.full }

// Add counts one sample that came now.
func (t *Tally) Add(k Kind, m msg.Message, size int) {
	now := time.Now()
	seq, at, whole := k.Check(m, size)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !whole:
		t.corrupt++
		return
	case t.seen[seq]:
		t.duplicates++
		return
	case seq < t.last:
		t.disorder++
	}
	t.seen[seq] = true
	t.last = max(t.last, seq)
	t.latency = append(t.latency, now.Sub(at))
	if len(t.seen) == t.want {
		close(t.full)
	}
}

// Report is what was counted, in the shape of a peer's report.
func (t *Tally) Report() Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := Event{Ev: "report", N: len(t.seen), First: -1, Last: int(t.last), Corrupt: t.corrupt, Disorder: t.disorder, Twice: t.duplicates}
	for s := range t.seen {
		if e.First < 0 || int(s) < e.First {
			e.First = int(s)
		}
	}
	sorted := slices.Sorted(slices.Values(t.latency))
	at := func(q float64) float64 {
		if len(sorted) == 0 {
			return 0
		}
		return float64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]) / float64(time.Millisecond)
	}
	e.P50, e.P99, e.Max = at(.5), at(.99), at(1)
	return e
}

// Missing are the samples from 0 to n that did not come, at most 20 of them.
func (t *Tally) Missing(n int) []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []int64
	for s := range int64(n) {
		if !t.seen[s] && len(out) < 20 {
			out = append(out, s)
		}
	}
	return out
}
