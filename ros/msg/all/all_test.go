package all_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/msg/all"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/controller_manager_msgs"
	"viad/ros/msg/franka_msgs"
	"viad/ros/msg/geometry_msgs"
	"viad/ros/msg/rmw_dds_common"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
)

var distros = []cdr.Distro{cdr.Humble, cdr.Iron, cdr.Jazzy}

func make1(t testing.TB, name string) msg.Message {
	t.Helper()
	m, ok := all.New(name)
	if !ok {
		t.Fatalf("no message %s", name)
	}
	return m
}

func encode(t testing.TB, m msg.Message, d cdr.Distro) []byte {
	t.Helper()
	w := cdr.NewWriter(nil, d)
	m.MarshalCDR(w)
	if w.Err() != nil {
		t.Fatalf("%s: %v", m.TypeName(), w.Err())
	}
	return w.Bytes()
}

func TestNamesAreSortedAndMadeByTheirNames(t *testing.T) {
	names := all.Names()
	if !slices.IsSorted(names) || len(names) < 250 {
		t.Errorf("%d names, sorted: %v", len(names), slices.IsSorted(names))
	}
	for _, n := range names {
		m := make1(t, n)
		if m.TypeName() != n || len(m.TypeHash()) != len("RIHS01_")+64 {
			t.Errorf("%s says that it is %s %s", n, m.TypeName(), m.TypeHash())
		}
		if h, is := m.(msg.Half); strings.Contains(n, "_Request") && (!is || h.ServiceHash() == m.TypeHash()) {
			t.Errorf("%s is no half of a service, or its hash is that of the half", n)
		}
	}
	for _, n := range []string{"", "std_msgs/String", "std_msgs/msg/Nothing", "nothing/msg/String", "std_msgs"} {
		if m, ok := all.New(n); ok || m != nil {
			t.Errorf("New(%q) made %v", n, m)
		}
	}
}

// Every message, filled at random, comes back as it was: into an empty one, and into one that was used before.
func TestRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range all.Names() {
		for _, d := range distros {
			used := make1(t, n)
			for range 5 {
				m := make1(t, n)
				fill(rnd, structOf(m))
				payload := encode(t, m, d)
				fresh, r := make1(t, n), cdr.NewReader(payload, d)
				if fresh.UnmarshalCDR(r); r.Err() != nil || r.Remaining() != 0 {
					t.Fatalf("%s %v: %v, %d bytes remain", n, d, r.Err(), r.Remaining())
				}
				r.Reset(payload, d)
				used.UnmarshalCDR(r)
				if again := encode(t, fresh, d); !bytes.Equal(again, payload) {
					t.Fatalf("%s %v\n was %x\n  is %x", n, d, payload, again)
				}
				if again := encode(t, used, d); !bytes.Equal(again, payload) {
					t.Fatalf("%s %v: a message that was used before reads differently\n was %x\n  is %x", n, d, payload, again)
				}
			}
		}
	}
}

// A payload cut anywhere is refused, but for the ends that older releases have.
func TestCutPayloadsAreRefused(t *testing.T) {
	older := []string{"SwitchController_Response", "Move_Feedback", "Grasp_Feedback", "_FeedbackMessage", "GetParam_Response", "SetParam_Response"}
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range all.Names() {
		m := make1(t, n)
		fill(rnd, structOf(m))
		payload := encode(t, m, cdr.Jazzy)
		accepted := 0
		for cut := range len(payload) {
			fresh, r := make1(t, n), cdr.NewReader(payload[:cut], cdr.Jazzy)
			if fresh.UnmarshalCDR(r); r.Err() == nil {
				accepted++
			}
		}
		empty := structOf(m).NumField() == 0 // may come without its byte
		if accepted > 0 && !empty && !slices.ContainsFunc(older, func(o string) bool { return strings.HasSuffix(n, o) }) {
			// A message that ends in an empty structure may lack its byte, too.
			last := structOf(m).Field(structOf(m).NumField() - 1)
			if accepted > 1 || last.Kind() != reflect.Struct || last.NumField() != 0 {
				t.Errorf("%s: %d of %d cuts are accepted", n, accepted, len(payload))
			}
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Payloads that real nodes sent, or laid out by hand from the definitions of their distribution.
func TestGolden(t *testing.T) {
	ok := &std_srvs.Trigger_Response{Success: true, Message: "stopped"}
	for _, c := range []struct {
		m    msg.Message
		d    cdr.Distro
		want string
	}{
		{ok, cdr.DistroUnknown, "00010000 01000000 08000000 73746f7070656400"},
		{&std_srvs.Trigger_Request{}, cdr.DistroUnknown, "00010000 00"},
		{&std_msgs.String{Data: "hi"}, cdr.DistroUnknown, "00010000 03000000 686900"},
		{&geometry_msgs.Vector3{X: 1, Z: -2}, cdr.DistroUnknown, "00010000 000000000000f03f 0000000000000000 00000000000000c0"},
		{&sensor_msgs.RegionOfInterest{XOffset: 1, Width: 2, DoRectify: true}, cdr.DistroUnknown, "00010000 01000000 00000000 00000000 02000000 01"},
		{&rmw_dds_common.Gid{Data: [24]uint8{1, 15: 2}}, cdr.Humble, "00010000 01000000000000000000000000000002 0000000000000000"},
		{&rmw_dds_common.Gid{Data: [24]uint8{1, 15: 2}}, cdr.Iron, "00010000 01000000000000000000000000000002"},
		{
			&controller_manager_msgs.SwitchController_Request{ActivateControllers: []string{"a"}, Strictness: 2, ActivateAsap: true}, cdr.Humble,
			"00010000 01000000 02000000 61000000 00000000 00000000 00000000 02000000 00 01 0000 00000000 00000000",
		},
		{
			&controller_manager_msgs.SwitchController_Request{ActivateControllers: []string{"a"}, Strictness: 2, ActivateAsap: true}, cdr.Jazzy,
			"00010000 01000000 02000000 61000000 00000000 02000000 01 000000 00000000 00000000",
		},
	} {
		if got := encode(t, c.m, c.d); !bytes.Equal(got, unhex(t, c.want)) {
			t.Errorf("%s for %v\n got %x\nwant %s", c.m.TypeName(), c.d, got, c.want)
		}
		back := make1(t, c.m.TypeName())
		r := cdr.NewReader(unhex(t, c.want), c.d)
		if back.UnmarshalCDR(r); r.Err() != nil || !bytes.Equal(encode(t, back, c.d), unhex(t, c.want)) {
			t.Errorf("%s for %v reads %+v (%v)", c.m.TypeName(), c.d, back, r.Err())
		}
	}
}

// What has several layouts is not guessed, and a field that a distribution does not have is not dropped.
func TestDistributions(t *testing.T) {
	differ := 0
	for _, n := range all.Names() {
		m := make1(t, n)
		w, r := cdr.NewWriter(nil, cdr.DistroUnknown), cdr.NewReader(encode(t, m, cdr.Jazzy), cdr.DistroUnknown)
		m.MarshalCDR(w)
		if m.UnmarshalCDR(r); (w.Err() == nil) != (r.Err() == nil) && structOf(m).NumField() != 1 {
			// A message with a sequence of such is written while that is empty, and so it is read.
			t.Errorf("%s: written %v, read %v", n, w.Err(), r.Err())
		}
		if w.Err() != nil {
			differ++
			if !strings.Contains(w.Err().Error(), "set the distribution") {
				t.Errorf("%s: %v", n, w.Err())
			}
		}
	}
	if differ < 4 {
		t.Errorf("%d messages differ by distribution; Gid, SwitchController, ControllerState, Range and JointTrajectoryControllerState do", differ)
	}
	w := cdr.NewWriter(nil, cdr.Iron)
	(&controller_manager_msgs.SwitchController_Request{StartControllers: []string{"a"}}).MarshalCDR(w)
	if w.Err() == nil || !strings.Contains(w.Err().Error(), "start_controllers") {
		t.Errorf("a field that Iron does not have is dropped: %v", w.Err())
	}
}

// The answer of an older release ends before the message; what a message had before does not stay.
func TestOlderReleasesEndEarlier(t *testing.T) {
	for _, payload := range []string{"00010000 00", "00010000 00000000", "00010000"} {
		move, r := &franka_msgs.Move_Feedback{CurrentWidth: 1}, cdr.NewReader(unhex(t, payload), cdr.Humble)
		if move.UnmarshalCDR(r); r.Err() != nil || move.CurrentWidth != 0 {
			t.Errorf("%s: %+v %v", payload, move, r.Err())
		}
	}
	m := &controller_manager_msgs.SwitchController_Response{Message: "old"}
	r := cdr.NewReader(unhex(t, "00010000 01 000000"), cdr.Humble)
	if m.UnmarshalCDR(r); r.Err() != nil || !m.Ok || m.Message != "" {
		t.Errorf("%+v %v", m, r.Err())
	}
}

// Whatever is announced, what is allocated is bounded by what came. The factor is that of the widest Go structure over
// the fewest bytes it has on the wire, several levels deep.
func TestHostileLengthsCostBoundedMemory(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("counts allocated bytes")
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range all.Names() {
		for _, fillByte := range []int{0xff, 0x00, 0x01, -1} {
			payload := make([]byte, 4096)
			for i := range payload {
				payload[i] = byte(fillByte)
				if fillByte < 0 {
					payload[i] = byte(rnd.IntN(3) * rnd.IntN(2) * (1 - i%4&1))
				}
			}
			copy(payload, []byte{0, 1, 0, 0})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m, _ := all.New(n)
			m.UnmarshalCDR(cdr.NewReader(payload, cdr.Humble))
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 64*uint64(len(payload)) {
				t.Errorf("%s: %d bytes of 0x%02x cost %d bytes of memory", n, len(payload), fillByte&0xff, used)
			}
		}
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	arm := []string{"fr3_joint1", "fr3_joint2", "fr3_joint3", "fr3_joint4", "fr3_joint5", "fr3_joint6", "fr3_joint7"}
	seven := []float64{1, 2, 3, 4, 5, 6, 7}
	header := std_msgs.Header{FrameId: "base"}
	for _, m := range []msg.Message{
		&geometry_msgs.Twist{Linear: geometry_msgs.Vector3{X: 1}},
		&std_msgs.Float64MultiArray{Data: seven},
		&sensor_msgs.JointState{Header: header, Name: arm, Position: seven, Velocity: seven, Effort: seven},
		&sensor_msgs.Image{Header: header, Encoding: "rgb8", Data: make([]byte, 4096)},
		&control_msgs.FollowJointTrajectory_Feedback{JointNames: arm},
	} {
		w, r, into, buf := new(cdr.Writer), new(cdr.Reader), make1(t, m.TypeName()), make([]byte, 0, 8192)
		if n := testing.AllocsPerRun(50, func() {
			w.Reset(buf, cdr.Jazzy)
			m.MarshalCDR(w)
			r.Reset(w.Bytes(), cdr.Jazzy)
			into.UnmarshalCDR(r)
		}); n != 0 || r.Err() != nil || w.Err() != nil {
			t.Errorf("%s: %v allocations (%v, %v)", m.TypeName(), n, w.Err(), r.Err())
		}
	}
}

// FuzzUnmarshal reads anything into any message: no panic, and what was read can be written and read again.
func FuzzUnmarshal(f *testing.F) {
	names := all.Names()
	rnd := rand.New(rand.NewPCG(7, 8))
	for i, n := range names {
		m := make1(f, n)
		fill(rnd, structOf(m))
		f.Add(uint16(i), byte(1+i%3), encode(f, m, distros[i%3]))
	}
	f.Fuzz(func(t *testing.T, which uint16, distro byte, payload []byte) {
		d := cdr.Distro(distro % 4)
		m := make1(t, names[int(which)%len(names)])
		r := cdr.NewReader(payload, d)
		m.UnmarshalCDR(r)
		if r.Err() != nil {
			return
		}
		first := encode(t, m, d)
		again := make1(t, m.TypeName())
		r.Reset(first, d)
		if again.UnmarshalCDR(r); r.Err() != nil {
			t.Fatalf("%s: what was written is not read: %v", m.TypeName(), r.Err())
		}
		if second := encode(t, again, d); !bytes.Equal(first, second) {
			t.Fatalf("%s: %x, then %x", m.TypeName(), first, second)
		}
	})
}

func BenchmarkImage1MB(b *testing.B) {
	m := &sensor_msgs.Image{Encoding: "rgb8", Height: 512, Width: 682, Step: 2046, Data: make([]byte, 1_047_552)}
	payload := encode(b, m, cdr.Jazzy)
	for _, borrow := range []bool{false, true} {
		b.Run(map[bool]string{false: "copied once", true: "borrowed"}[borrow], func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			into, r := new(sensor_msgs.Image), new(cdr.Reader)
			r.Borrow(borrow)
			for b.Loop() {
				r.Reset(payload, cdr.Jazzy)
				into.UnmarshalCDR(r)
			}
		})
	}
	b.Run("written", func(b *testing.B) {
		b.SetBytes(int64(len(payload)))
		b.ReportAllocs()
		w, buf := new(cdr.Writer), make([]byte, 0, len(payload))
		for b.Loop() {
			w.Reset(buf, cdr.Jazzy)
			m.MarshalCDR(w)
		}
	})
}

func BenchmarkJointState(b *testing.B) {
	m := &sensor_msgs.JointState{Name: []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7"}, Position: make([]float64, 7), Velocity: make([]float64, 7), Effort: make([]float64, 7)}
	payload := encode(b, m, cdr.Jazzy)
	b.ReportAllocs()
	into, r := new(sensor_msgs.JointState), new(cdr.Reader)
	for b.Loop() {
		r.Reset(payload, cdr.Jazzy)
		into.UnmarshalCDR(r)
	}
}
