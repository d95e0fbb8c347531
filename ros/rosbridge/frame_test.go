package rosbridge

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"viad/ros/cdr"
	"viad/ros/msg"
)

// stamp, header and sample are a message by hand, so that the codec is tested against nothing that is generated.
type stamp struct {
	Sec     int32  `json:"sec"`
	Nanosec uint32 `json:"nanosec"`
}

type header struct {
	Stamp   stamp  `json:"stamp"`
	FrameID string `json:"frame_id"`
}

func (*header) TypeName() string           { return "std_msgs/msg/Header" }
func (*header) TypeHash() string           { return "" }
func (*header) MarshalCDR(w *cdr.Writer)   { w.Fail("", "not here") }
func (*header) UnmarshalCDR(r *cdr.Reader) { r.Fail("", "not here") }

type sample struct {
	Header header     `json:"header"`
	Flag   bool       `json:"flag"`
	I8     int8       `json:"i8"`
	U16    uint16     `json:"u16"`
	I64    int64      `json:"i64"`
	U64    uint64     `json:"u64"`
	F32    float32    `json:"f32"`
	F64    float64    `json:"f64"`
	Words  string     `json:"words"`
	Data   []byte     `json:"data"`
	UUID   [4]byte    `json:"uuid"`
	Cov    [3]float64 `json:"cov"`
	List   []float64  `json:"list"`
	Ints   []int32    `json:"ints"`
	Names  []string   `json:"names"`
	Subs   []stamp    `json:"subs"`
}

func (*sample) TypeName() string { return "test_msgs/msg/Sample" }
func (*sample) TypeHash() string { return "" }
func (s *sample) MarshalCDR(w *cdr.Writer) {
	w.Float64(s.F64)
	w.String(s.Words, 0, "words")
}

func (s *sample) UnmarshalCDR(r *cdr.Reader) {
	s.F64 = r.Float64()
	s.Words = r.String("", 0, "words")
}

func full() *sample {
	return &sample{
		Header: header{Stamp: stamp{7, 999999999}, FrameID: "base \"link\"\n\u00fc\U0001f916"}, Flag: true, I8: -128, U16: 65535,
		I64: math.MinInt64, U64: math.MaxUint64, F32: 0.1, F64: -2.25e-300, Words: "x", Data: []byte{0, 255, 254}, UUID: [4]byte{1, 2, 3, 4},
		Cov: [3]float64{1, 0, -1}, List: []float64{1e300, 0.1}, Ints: []int32{-5}, Names: []string{"", "a"}, Subs: []stamp{{1, 2}},
	}
}

func testNode(t testing.TB) *Node {
	t.Helper()
	mode, err := decMode(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return &Node{cbor: mode}
}

func TestJSONThereAndBack(t *testing.T) {
	n := testNode(t)
	b, err := n.codec.encode(full(), false)
	if err != nil {
		t.Fatal(err)
	}
	got := &sample{List: make([]float64, 0, 8), Data: make([]byte, 5)}
	if err := n.decode(payload{enc: JSON, raw: b}, got); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if d := cmp.Diff(full(), got); d != "" {
		t.Error(d)
	}
	// Lists that are empty are lists, not null: a server refuses null for a list.
	b, err = n.codec.encode(&sample{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "null") {
		t.Errorf("an empty message has null in it: %s", b)
	}
}

// As rosbridge_suite writes it: fixed byte arrays in base64, ASCII escapes, spaces.
func TestJSONAsPythonWritesIt(t *testing.T) {
	n := testNode(t)
	text := `{"header": {"stamp": {"sec": 7, "nanosec": 999999999}, "frame_id": "base \"link\"\n\u00fc\ud83e\udd16"}, "flag": true, "i8": -128,
	 "u16": 65535, "i64": -9223372036854775808, "u64": 18446744073709551615, "f32": 0.10000000149011612, "f64": -2.25e-300, "words": "x",
	 "data": "AP\/+", "uuid": "` + base64.StdEncoding.EncodeToString([]byte{1, 2, 3, 4}) + `", "cov": [1.0, 0.0, -1.0],
	 "list": [1e+300, 0.1], "ints": [-5], "names": ["", "a"], "subs": [{"sec": 1, "nanosec": 2}], "newer_field": {"x": [null, NaN]}}`
	got := new(sample)
	if err := n.decode(payload{enc: JSON, raw: []byte(text)}, got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(full(), got); d != "" {
		t.Error(d)
	}
}

func TestStampLeftOut(t *testing.T) {
	n := testNode(t)
	for _, c := range []struct {
		m     sample
		robot bool
		want  bool // a stamp is written
	}{{sample{}, true, false}, {sample{}, false, true}, {*full(), true, true}} {
		b, err := n.codec.encode(&c.m, c.robot)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(b), `"stamp"`); got != c.want {
			t.Errorf("a stamp is written: %v, want %v: %s", got, c.want, b)
		}
	}
}

// replace makes the full message's JSON with one value put in the place of another.
func broken(t *testing.T, n *Node, key, value string) []byte {
	t.Helper()
	b, err := n.codec.encode(full(), false)
	if err != nil {
		t.Fatal(err)
	}
	s := scanner{b: b}
	var out []byte
	err = s.object(func(k []byte) error {
		v, err := s.skip()
		if string(k) == key {
			if value == "" {
				return err
			}
			v = []byte(value)
		}
		if out != nil {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), k...), `":`...), v...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(append([]byte("{"), out...), '}')
}

func TestMalformedJSON(t *testing.T) {
	n := testNode(t)
	for _, c := range []struct{ name, key, value, want string }{
		{"NaN as null", "f64", `null`, "null where a number belongs"},
		{"NaN as null in a list", "list", `[1, null]`, "list.1: null where a number belongs"},
		{"NaN as null in a fixed list", "cov", `[0,null,0]`, "cov.1: null where"},
		{"bare NaN", "f64", `NaN`, "NaN is not JSON"},
		{"bare Infinity", "f64", `Infinity`, "Infinity is not JSON"},
		{"bare -Infinity", "list", `[-Infinity]`, "-Infinity is not JSON"},
		{"missing", "f64", ``, "f64: it is missing"},
		{"a missing part", "header", ``, "header: it is missing"},
		{"a whole number with a point", "i64", `1.0`, "not a whole number"},
		{"beyond 64 bits", "i64", `9223372036854775808`, "not a whole number"},
		{"2^53 and one as a float", "u64", `9.007199254740993e15`, "not a whole number"},
		{"out of range", "i8", `128`, "not a whole number of 8 bits"},
		{"negative", "u16", `-1`, "not a whole number from 0"},
		{"a number too large", "f32", `1e39`, "not a number of 32 bits"},
		{"a string", "f64", `"1"`, "a string where a number belongs"},
		{"hexadecimal", "f64", `0x1p3`, "not a number"},
		{"an underscore", "i64", `1_0`, "not a whole number"},
		{"plus", "i64", `+1`, "not a whole number"},
		{"leading zero", "i64", `01`, "not a whole number"},
		{"no base64", "data", `"@@"`, "not base64"},
		{"too few bytes", "uuid", `"AAA="`, "2 bytes where 4 belong"},
		{"too few elements", "cov", `[1,2]`, "has not 3 elements"},
		{"too many elements", "cov", `[1,2,3,4]`, "has not 3 elements"},
		{"a number for a bool", "flag", `1`, "true or false"},
		{"a list for an object", "header", `[]`, "'{' belongs"},
		{"a comma too many", "list", `[1,]`, "after a comma"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := new(sample)
			err := n.decode(payload{enc: JSON, raw: broken(t, n, c.key, c.value)}, m)
			var bad *Malformed
			if !errors.As(err, &bad) {
				t.Fatalf("got %v and %+v, want a *Malformed", err, m)
			}
			if got := bad.Field + ": " + bad.Why; !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
			if bad.Type != "test_msgs/msg/Sample" {
				t.Errorf("the type is %q", bad.Type)
			}
		})
	}
	// 2^53+1, which is no float64, comes through as it is.
	m := new(sample)
	if err := n.decode(payload{enc: JSON, raw: broken(t, n, "u64", "9007199254740993")}, m); err != nil || m.U64 != 9007199254740993 {
		t.Errorf("got %d, %v", m.U64, err)
	}
}

func TestNaNIsNotSent(t *testing.T) {
	n := testNode(t)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		m := full()
		m.List = []float64{0, v}
		if b, err := n.codec.encode(m, false); err == nil || !strings.Contains(err.Error(), "field list") {
			t.Errorf("%v was written as %s (%v)", v, b, err)
		}
	}
}

// The bytes of RFC 8746's tags, written by hand.
func TestCBORTypedArrays(t *testing.T) {
	n := testNode(t)
	for _, c := range []struct {
		name, hex string
		want      []float64
		ints      []int32
	}{
		{"float64 little", "d85650" + "000000000000f03f" + "000000000000f07f", []float64{1, math.Inf(1)}, nil},
		{"float64 big", "d85248" + "3ff0000000000000", []float64{1}, nil},
		{"float32 little", "d85544" + "0000003f", []float64{0.5}, nil},
		{"float16 little", "d85446" + "003c" + "01bc" + "0100", []float64{1, -1.0009765625, 1.0 / (1 << 24)}, nil},
		{"int32 little", "d84e48" + "feffffff" + "7fffffff", nil, []int32{-2, -129}},
		{"int8", "d84842" + "80" + "7f", nil, []int32{-128, 127}},
		{"uint16 little", "d84544" + "ffff" + "0100", nil, []int32{65535, 1}},
		{"plain list", "82" + "20" + "03", nil, []int32{-1, 3}},
		{"plain floats", "82" + "f93c00" + "01", []float64{1, 1}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := hex.DecodeString(c.hex)
			if err != nil {
				t.Fatal(err)
			}
			b := cborSample(t)
			key := "list"
			if c.ints != nil {
				key = "ints"
			}
			b[key] = raw
			m := new(sample)
			if err := n.decode(payload{enc: CBOR, raw: b.encode()}, m); err != nil {
				t.Fatal(err)
			}
			if c.ints != nil && !slices.Equal(m.Ints, c.ints) || c.want != nil && !slices.Equal(m.List, c.want) {
				t.Errorf("got %v %v, want %v %v", m.List, m.Ints, c.want, c.ints)
			}
		})
	}
}

func TestMalformedCBOR(t *testing.T) {
	n := testNode(t)
	for _, c := range []struct{ name, key, hex, want string }{
		{"null", "f64", "f6", "null where a number belongs"},
		{"undefined", "i8", "f7", "null where a number belongs"},
		{"null in a list", "list", "81f6", "list.0: null"},
		{"a length that does not fit", "list", "d85643000000", "no typed array"},
		{"an unknown tag", "list", "d82b43000000", "no typed array"},
		{"tag 76", "ints", "d84c4100", "no typed array"},
		{"float128", "list", "d85750" + strings.Repeat("00", 16), "no typed array"},
		{"too large for the field", "ints", "d84648" + "ffffffff" + "00000000", "does not fit"},
		{"floats for whole numbers", "ints", "d85544" + "0000003f", "does not fit"},
		{"bytes for numbers", "list", "4400000000", "byte string"},
		{"text for a number", "f64", "6131", "cannot unmarshal"},
		{"a number that does not fit", "i8", "190100", "cannot unmarshal"},
		{"fixed length", "cov", "d85648" + "0000000000000000", "1 elements where 3 belong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := hex.DecodeString(c.hex)
			if err != nil {
				t.Fatal(err)
			}
			b := cborSample(t)
			b[c.key] = raw
			err = n.decode(payload{enc: CBOR, raw: b.encode()}, new(sample))
			var bad *Malformed
			if !errors.As(err, &bad) || !strings.Contains(bad.Field+": "+bad.Why, c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	b := cborSample(t)
	delete(b, "f64")
	if err := n.decode(payload{enc: CBOR, raw: b.encode()}, new(sample)); err == nil || !strings.Contains(err.Error(), "f64: it is missing") {
		t.Errorf("a missing number: %v", err)
	}
}

// cborMap is a CBOR map by hand.
type cborMap map[string][]byte

func (m cborMap) encode() []byte {
	out := []byte{0xb8, byte(len(m))}
	for k, v := range m {
		out = append(append(append(out, 0x60|byte(len(k))), k...), v...)
	}
	return out
}

func cborSample(t *testing.T) cborMap {
	t.Helper()
	h := cborMap{"stamp": cborMap{"sec": {7}, "nanosec": {8}}.encode(), "frame_id": {0x60}}
	return cborMap{
		"header": h.encode(), "flag": {0xf5}, "i8": {0x20}, "u16": {1}, "i64": {1}, "u64": {1}, "f32": {0xf9, 0x3c, 0}, "f64": {0xf9, 0x3c, 0},
		"words": {0x60}, "data": {0x42, 1, 2}, "uuid": {0x44, 1, 2, 3, 4}, "cov": {0x83, 0, 0, 0}, "list": {0x80}, "ints": {0x80}, "names": {0x80}, "subs": {0x80},
	}
}

func TestCBORRaw(t *testing.T) {
	n := testNode(t)
	w := cdr.NewWriter(nil, cdr.Jazzy)
	full().MarshalCDR(w)
	body := append([]byte{0x58, byte(len(w.Bytes()))}, w.Bytes()...)
	f, err := parseFrame(cborMap{
		"op": []byte("\x67publish"), "topic": []byte("\x62/t"), "msg": cborMap{"secs": {0x0a}, "nsecs": {0x0b}, "bytes": body}.encode(),
	}.encode(), true, n.cbor)
	if err != nil {
		t.Fatal(err)
	}
	if f.op != "publish" || f.topic != "/t" || f.msg.enc != CBORRaw || !f.msg.sent.Equal(time.Unix(10, 11)) {
		t.Fatalf("got %+v", f)
	}
	m := new(sample)
	if err := n.decode(f.msg, m); err != nil || m.F64 != -2.25e-300 || m.Words != "x" {
		t.Errorf("got %+v, %v", m, err)
	}
	var bad *Malformed
	if err := n.decode(payload{enc: CBORRaw, raw: f.msg.raw[:9]}, m); !errors.As(err, &bad) {
		t.Errorf("a cut message: %v", err)
	}
}

func TestFragments(t *testing.T) {
	now := time.Unix(1000, 0)
	var a assembler
	a.maxBytes = 100
	add := func(id string, num, total int, data string) ([]byte, error) {
		return a.add(&frame{id: id, num: num, total: total, data: data, fragmentNums: true}, now)
	}
	for _, c := range []struct {
		id         string
		num, total int
		data, want string
	}{{"1", 1, 3, "bb", ""}, {"2", 0, 1, "whole", "whole"}, {"1", 0, 3, "a", ""}, {"1", 2, 3, "c", "abbc"}} {
		if got, err := add(c.id, c.num, c.total, c.data); err != nil || string(got) != c.want {
			t.Errorf("got %q, %v, want %q", got, err, c.want)
		}
	}
	if a.held != 0 || len(a.partial) != 0 {
		t.Errorf("%d bytes of %d messages are still held", a.held, len(a.partial))
	}
	for _, c := range []struct {
		name, id   string
		num, total int
		data       string
	}{
		{"no id", "", 0, 2, "x"},
		{"beyond", "3", 2, 2, "x"},
		{"negative", "3", -1, 2, "x"},
		{"none", "3", 0, 0, "x"},
		{"absurd", "3", 0, 1 << 30, "x"},
		{"empty", "3", 0, 2, ""},
		{"a jump", "3", 60000, 65536, "x"},
		{"too many bytes", "3", 0, 2, strings.Repeat("x", 101)},
	} {
		if got, err := add(c.id, c.num, c.total, c.data); err == nil {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
	// Whose number of fragments changes is not made of what there is.
	for _, c := range []struct {
		num, total int
		ok         bool
	}{{0, 4, true}, {1, 4, true}, {3, 3 + 1, true}, {2, 3, false}, {0, 2, true}, {1, 2, true}} {
		if got, err := add("4", c.num, c.total, "x"); (err == nil) != c.ok {
			t.Errorf("fragment %d of %d: got %q, %v", c.num, c.total, got, err)
		}
	}
	for i := range maxPartial {
		if _, err := add(string(rune('a'+i)), 0, 2, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := add("one more", 0, 2, "x"); err == nil {
		t.Error("there is no bound on messages in fragments")
	}
	now = now.Add(partialFor + time.Second)
	if _, err := add("one more", 0, 2, "x"); err != nil {
		t.Errorf("old fragments are kept for ever: %v", err)
	}
}

// FuzzFrame feeds anything: nothing may panic, and what is made is bounded by what came.
func FuzzFrame(f *testing.F) {
	n := testNode(f)
	body, err := n.codec.encode(full(), false)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		`{"op":"publish","topic":"/t","msg":` + string(body) + `}`,
		`{"op": "service_response", "id": "x", "service": "/s", "values": "Service /s does not exist", "result": false}`,
		`{"op":"action_result","id":"g","action":"/a","values":{},"status":5,"result":true}`,
		`{"op":"action_result","id":7,"action":"/a","values":{"f64":NaN},"status":null,"result":true}`,
		`{"op":"fragment","id":"1","data":"{\"op\":\"status\"}","num":0,"total":1}`,
		`{"op":"status","level":"error","msg":"Unknown operation"}`,
		`{"op":"publish","msg":[[[[[[]]]]]],"x":"\ud83e\udd16\u0000"}`, `{"op":`, `[]`, `null`, ``, "\xff\xfe", `{"op":"x"}}`,
	} {
		f.Add([]byte(s), false)
	}
	raw := cborMap{"op": []byte("\x67publish"), "topic": []byte("\x62/t"), "msg": cborMap{"secs": {0x0a}, "nsecs": {0x0b}, "bytes": {0x44, 0, 1, 0, 0}}.encode()}
	f.Add(raw.encode(), true)
	raw["msg"] = cborMap{"list": {0xd8, 0x56, 0x48, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f}, "uuid": {0x44, 1, 2, 3, 4}}.encode()
	f.Add(raw.encode(), true)
	f.Fuzz(func(t *testing.T, b []byte, binary bool) {
		fr, err := parseFrame(b, binary, n.cbor)
		if err != nil {
			return
		}
		if fr.op == "" {
			t.Error("a frame without an op was taken")
		}
		var a assembler
		a.maxBytes = len(b)
		if fr.op == "fragment" {
			if whole, err := a.add(&fr, time.Now()); err == nil && len(whole) > len(b) {
				t.Errorf("%d bytes of fragments became %d", len(b), len(whole))
			}
			return
		}
		var m sample
		var list statusArray
		d := jsonDecoder{c: &n.codec, s: scanner{b: fr.msg.raw}}
		_ = n.decodeInto(&d, &list) // only a panic is wrong
		if err := n.decode(fr.msg, &m); err == nil && fr.msg.enc == JSON {
			for _, x := range append(m.List, m.F64) {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%v came out of JSON", x)
				}
			}
			if _, err := n.codec.encode(&m, false); err != nil {
				t.Errorf("what came cannot be sent: %v", err)
			}
		}
	})
}

var _ msg.Message = (*sample)(nil)
