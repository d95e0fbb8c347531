package ros1

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

// A codec writes a ROS 2 message in ROS 1's layout and reads it back. It is compiled once for a pair of types: the ROS 1
// struct gives the order and the widths on the wire, the ROS 2 struct the fields, matched by name. ROS 1's layout is little
// endian without any padding; strings and lists carry a uint32 count.
type codec struct {
	write func(b []byte, v reflect.Value) ([]byte, error)
	read  func(r *reader, v reflect.Value)
	least int // bytes that the shortest value takes
}

// reader reads a payload; the first error sticks.
type reader struct {
	b     []byte
	share bool // []byte fields may point into b
	err   error
}

var errShort = errors.New("the message ends before its last field")

func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b) {
		r.err = errShort
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) uint(width int) uint64 {
	b := r.take(width)
	if b == nil {
		return 0
	}
	switch width {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// count reads the number of elements that follow, each at least least bytes long: what is announced must be there.
func (r *reader) count(least int) int {
	n := r.uint(4)
	if r.err != nil {
		return 0
	}
	if n*uint64(max(least, 1)) > uint64(len(r.b)) {
		r.err = fmt.Errorf("a list of %d elements is announced and only %d bytes follow", n, len(r.b))
		return 0
	}
	return int(n)
}

func (r *reader) text() string { return string(r.take(r.count(1))) }

func putUint(b []byte, width int, x uint64) []byte {
	switch width {
	case 1:
		return append(b, byte(x))
	case 2:
		return binary.LittleEndian.AppendUint16(b, uint16(x))
	case 4:
		return binary.LittleEndian.AppendUint32(b, uint32(x))
	default:
		return binary.LittleEndian.AppendUint64(b, x)
	}
}

func putText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

// compile makes the codec of ROS 1's one for ROS 2's two. at says where, for errors.
func compile(one, two reflect.Type, at string) (codec, error) {
	switch {
	case one == reflect.TypeFor[time.Time]():
		return stamp(two, at)
	case one == reflect.TypeFor[time.Duration]():
		return stamp(two, at)
	case one.Kind() == reflect.Float64 && isStamp(two):
		return seconds(), nil
	}
	switch one.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Uint8, reflect.Int16, reflect.Uint16, reflect.Int32, reflect.Uint32,
		reflect.Int64, reflect.Uint64, reflect.Float32, reflect.Float64:
		return number(one, two, at)
	case reflect.String:
		if two.Kind() != reflect.String {
			return codec{}, mismatch(one, two, at)
		}
		return text(), nil
	case reflect.Slice:
		return list(one, two, at)
	case reflect.Array:
		return array(one, two, at)
	case reflect.Struct:
		return structure(one, two, at)
	default:
		return codec{}, mismatch(one, two, at)
	}
}

func mismatch(one, two reflect.Type, at string) error {
	return fmt.Errorf("%s is %s in ROS 1 and %s in ROS 2: ros/ros1 has no rule for that", at, one, two)
}

func width(k reflect.Kind) int {
	switch k {
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return 1
	case reflect.Int16, reflect.Uint16:
		return 2
	case reflect.Int32, reflect.Uint32, reflect.Float32:
		return 4
	case reflect.Int64, reflect.Uint64, reflect.Float64:
		return 8
	default:
		return 0
	}
}

func isFloat(t reflect.Type) bool { return reflect.Zero(t).CanFloat() }

func isInteger(t reflect.Type) bool { return reflect.Zero(t).CanInt() || reflect.Zero(t).CanUint() }

// number is a bool, an integer or a float: the same width on both sides. char and byte differ in sign between the two.
func number(one, two reflect.Type, at string) (codec, error) {
	w := width(one.Kind())
	if width(two.Kind()) != w {
		return codec{}, mismatch(one, two, at)
	}
	c := codec{least: w}
	switch {
	case two.Kind() == reflect.Bool && one.Kind() == reflect.Bool:
		c.write = func(b []byte, v reflect.Value) ([]byte, error) {
			if v.Bool() {
				return append(b, 1), nil
			}
			return append(b, 0), nil
		}
		c.read = func(r *reader, v reflect.Value) { v.SetBool(r.uint(1) != 0) }
	case isFloat(two) && isFloat(one) && w == 4:
		c.write = func(b []byte, v reflect.Value) ([]byte, error) {
			return putUint(b, 4, uint64(math.Float32bits(float32(v.Float())))), nil
		}
		c.read = func(r *reader, v reflect.Value) { v.SetFloat(float64(math.Float32frombits(uint32(r.uint(4))))) }
	case isFloat(two) && isFloat(one):
		c.write = func(b []byte, v reflect.Value) ([]byte, error) {
			return putUint(b, 8, math.Float64bits(v.Float())), nil
		}
		c.read = func(r *reader, v reflect.Value) { v.SetFloat(math.Float64frombits(r.uint(8))) }
	case isInteger(one) && isInteger(two) && reflect.Zero(two).CanUint():
		c.write = func(b []byte, v reflect.Value) ([]byte, error) { return putUint(b, w, v.Uint()), nil }
		c.read = func(r *reader, v reflect.Value) { v.SetUint(r.uint(w)) }
	case isInteger(one) && isInteger(two):
		shift := 64 - 8*w
		c.write = func(b []byte, v reflect.Value) ([]byte, error) { return putUint(b, w, uint64(v.Int())), nil }
		c.read = func(r *reader, v reflect.Value) { v.SetInt(int64(r.uint(w)<<shift) >> shift) }
	default:
		return codec{}, mismatch(one, two, at)
	}
	return c, nil
}

func text() codec {
	return codec{
		least: 4,
		write: func(b []byte, v reflect.Value) ([]byte, error) { return putText(b, v.String()), nil },
		read:  func(r *reader, v reflect.Value) { v.SetString(r.text()) },
	}
}

func isStamp(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() == 2 && t.Field(0).Name == "Sec" && t.Field(1).Name == "Nanosec" &&
		t.Field(0).Type.Kind() == reflect.Int32 && t.Field(1).Type.Kind() == reflect.Uint32
}

// stamp is a time or a duration: two words on both sides. Some ROS 1 clients send a duration below zero with both words
// negative; it is brought to ROS 2's form, where the nanoseconds count upwards.
func stamp(two reflect.Type, at string) (codec, error) {
	if !isStamp(two) {
		return codec{}, mismatch(reflect.TypeFor[time.Time](), two, at)
	}
	return codec{
		least: 8,
		write: func(b []byte, v reflect.Value) ([]byte, error) {
			b = putUint(b, 4, uint64(uint32(v.Field(0).Int())))
			return putUint(b, 4, v.Field(1).Uint()), nil
		},
		read: func(r *reader, v reflect.Value) {
			sec, nsec := int64(int32(r.uint(4))), int64(int32(r.uint(4)))
			setStamp(v, sec, nsec)
		},
	}, nil
}

func setStamp(v reflect.Value, sec, nsec int64) {
	const second = int64(time.Second)
	sec += nsec / second
	if nsec %= second; nsec < 0 {
		sec, nsec = sec-1, nsec+second
	}
	v.Field(0).SetInt(int64(int32(sec)))
	v.Field(1).SetUint(uint64(nsec))
}

// seconds is a float64 of seconds in ROS 1 and a duration in ROS 2 (the timeout of SwitchController).
func seconds() codec {
	return codec{
		least: 8,
		write: func(b []byte, v reflect.Value) ([]byte, error) {
			s := float64(v.Field(0).Int()) + float64(v.Field(1).Uint())/1e9
			return putUint(b, 8, math.Float64bits(s)), nil
		},
		read: func(r *reader, v reflect.Value) {
			s := math.Float64frombits(r.uint(8))
			if !(s >= math.MinInt32 && s <= math.MaxInt32) {
				if r.err == nil {
					r.err = fmt.Errorf("a duration of %g s does not fit", s)
				}
				return
			}
			whole := math.Floor(s)
			setStamp(v, int64(whole), int64(math.Round((s-whole)*1e9)))
		},
	}
}

func list(one, two reflect.Type, at string) (codec, error) {
	if two.Kind() != reflect.Slice {
		return codec{}, mismatch(one, two, at)
	}
	if width(one.Elem().Kind()) == 1 && two.Elem().Kind() == reflect.Uint8 {
		return octets(), nil
	}
	el, err := compile(one.Elem(), two.Elem(), at+"[]")
	if err != nil {
		return codec{}, err
	}
	return codec{
		least: 4,
		write: func(b []byte, v reflect.Value) ([]byte, error) {
			b = putUint(b, 4, uint64(v.Len()))
			for i := range v.Len() {
				var err error
				if b, err = el.write(b, v.Index(i)); err != nil {
					return b, err
				}
			}
			return b, nil
		},
		read: func(r *reader, v reflect.Value) {
			n := r.count(el.least)
			if v.Cap() >= n {
				v.SetLen(n)
			} else {
				v.Set(reflect.MakeSlice(two, n, n))
			}
			for i := 0; i < n && r.err == nil; i++ {
				el.read(r, v.Index(i))
			}
		},
	}, nil
}

// octets is a list of bytes: a picture is not copied again when nobody else reads the same message.
func octets() codec {
	return codec{
		least: 4,
		write: func(b []byte, v reflect.Value) ([]byte, error) {
			b = putUint(b, 4, uint64(v.Len()))
			return append(b, v.Bytes()...), nil
		},
		read: func(r *reader, v reflect.Value) {
			b := r.take(r.count(1))
			if !r.share {
				b = append([]byte(nil), b...)
			}
			v.SetBytes(b)
		},
	}
}

func array(one, two reflect.Type, at string) (codec, error) {
	if two.Kind() != reflect.Array || two.Len() != one.Len() {
		return codec{}, mismatch(one, two, at)
	}
	el, err := compile(one.Elem(), two.Elem(), at+"[]")
	if err != nil {
		return codec{}, err
	}
	return codec{
		least: one.Len() * el.least,
		write: func(b []byte, v reflect.Value) ([]byte, error) {
			for i := range v.Len() {
				var err error
				if b, err = el.write(b, v.Index(i)); err != nil {
					return b, err
				}
			}
			return b, nil
		},
		read: func(r *reader, v reflect.Value) {
			for i := 0; i < v.Len() && r.err == nil; i++ {
				el.read(r, v.Index(i))
			}
		},
	}, nil
}

// member is one field of a struct: at is its place in ROS 2's struct, -1 for a field that ROS 2 does not have.
type member struct {
	codec
	at  int
	typ reflect.Type // in ROS 1
}

func structure(one, two reflect.Type, at string) (codec, error) {
	if two.Kind() != reflect.Struct {
		return codec{}, mismatch(one, two, at)
	}
	if special, ok := specials()[rosName(one)]; ok {
		return special(two)
	}
	var members []member
	used := make([]bool, two.NumField())
	least := 0
	for _, f := range fields(one) {
		m := member{at: index(two, counterpart(one, f.Name)), typ: f.Type}
		var err error
		if m.at < 0 {
			if !dropped(one, f.Name) {
				return codec{}, fmt.Errorf("%s.%s of ROS 1 has no counterpart in ROS 2's %s", at, f.Name, two)
			}
			m.codec, err = compile(f.Type, f.Type, at+"."+f.Name)
		} else {
			used[m.at] = true
			m.codec, err = compile(f.Type, two.Field(m.at).Type, at+"."+f.Name)
		}
		if err != nil {
			return codec{}, err
		}
		members = append(members, m)
		least += m.least
	}
	var extra []int // what only ROS 2 has
	for i := range two.NumField() {
		if !used[i] && two.Field(i).IsExported() {
			extra = append(extra, i)
		}
	}
	return codec{least: least, write: structWriter(one, two, members, extra), read: structReader(members, extra)}, nil
}

func structWriter(one, two reflect.Type, members []member, extra []int) func([]byte, reflect.Value) ([]byte, error) {
	return func(b []byte, v reflect.Value) ([]byte, error) {
		for _, i := range extra {
			if f := v.Field(i); !empty(f) {
				return b, fmt.Errorf("%s of %s is set, and ROS 1's %s cannot carry it: leave it empty",
					two.Field(i).Name, two, rosName(one))
			}
		}
		for _, m := range members {
			from := reflect.Zero(m.typ)
			if m.at >= 0 {
				from = v.Field(m.at)
			}
			var err error
			if b, err = m.write(b, from); err != nil {
				return b, err
			}
		}
		return b, nil
	}
}

func structReader(members []member, extra []int) func(*reader, reflect.Value) {
	return func(r *reader, v reflect.Value) {
		for _, m := range members {
			var to reflect.Value
			if m.at >= 0 {
				to = v.Field(m.at)
			} else {
				to = reflect.New(m.typ).Elem()
			}
			if m.read(r, to); r.err != nil {
				return
			}
		}
		for _, i := range extra {
			v.Field(i).SetZero()
		}
	}
}

// empty says whether nothing is lost when v is not sent.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		for i := range v.NumField() {
			if !empty(v.Field(i)) {
				return false
			}
		}
		return true
	default:
		return v.IsZero()
	}
}

// index finds a field by its name, however the two spell it (FrameId, FrameID, frame_id).
func index(t reflect.Type, name string) int {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && !f.Anonymous && plain(f.Name) == plain(name) {
			return i
		}
	}
	return -1
}
