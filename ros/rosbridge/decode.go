package rosbridge

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"viad/ros/cdr"
	"viad/ros/msg"
)

// Malformed says that a message came that its type cannot hold, or that lacks what must be there.
type Malformed struct {
	Type, Field string
	Why         string
}

func (e *Malformed) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("a %s came malformed: %s", e.Type, e.Why)
	}
	return fmt.Sprintf("a %s came malformed at %s: %s", e.Type, e.Field, e.Why)
}

var errNull = errors.New("null where a number belongs: the robot's value is NaN or Inf, which JSON cannot carry, and 0 would " +
	"be a lie; subscribe to this topic with cbor-raw")

// decode reads what came into m. On an error m holds nothing of use.
func (n *Node) decode(p payload, m msg.Message) error {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("rosbridge: %T is not a message", m)
	}
	var err error
	switch p.enc {
	case CBORRaw:
		err = decodeCDR(p.raw, m, n.distro())
	case CBOR:
		d := cborDecoder{c: &n.codec, mode: n.cbor}
		err = d.value(p.raw, v.Elem())
	default:
		d := jsonDecoder{c: &n.codec, s: scanner{b: p.raw}}
		if err = d.value(v.Elem()); err == nil {
			err = d.s.end()
		}
	}
	if err == nil {
		return nil
	}
	bad := &Malformed{Type: m.TypeName()}
	for at := (*atField)(nil); errors.As(err, &at); err = at.err {
		if bad.Field != "" {
			bad.Field += "."
		}
		bad.Field += at.name
	}
	bad.Why = err.Error()
	return bad
}

// atField is where in a message an error is.
type atField struct {
	name string
	err  error
}

func (e *atField) Error() string { return e.name + ": " + e.err.Error() }

type jsonDecoder struct {
	c *codec
	s scanner
}

func (d *jsonDecoder) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Struct:
		return d.object(v)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && d.s.peek() == '"' {
			return d.base64(v)
		}
		if v.Kind() == reflect.Slice {
			return d.slice(v)
		}
		return d.array(v)
	case reflect.String:
		s, err := d.s.str()
		v.SetString(s)
		return err
	case reflect.Bool:
		return d.bool(v)
	default:
		return d.number(v)
	}
}

func (d *jsonDecoder) object(v reflect.Value) error {
	s := d.c.shape(v.Type())
	var seen uint64
	err := d.s.object(func(key []byte) error {
		i, ok := s.byName[string(key)]
		if !ok { // a newer robot's field
			_, err := d.s.skip()
			return err
		}
		f := &s.fields[i]
		if i < 64 {
			seen |= 1 << i
		}
		if err := d.value(v.Field(f.index)); err != nil {
			return &atField{f.name, err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.missing(seen)
}

// missing says which field did not come although a number is in it: missing is missing, never zero.
func (s *shape) missing(seen uint64) error {
	for i, f := range s.fields {
		if f.required && i < 64 && seen&(1<<i) == 0 {
			return &atField{f.name, errors.New("it is missing")}
		}
	}
	return nil
}

func (d *jsonDecoder) slice(v reflect.Value) error {
	if err := d.s.want('['); err != nil {
		return err
	}
	v.SetLen(0)
	for n := 0; ; n++ {
		more, err := d.s.more(']', n == 0)
		if err != nil || !more {
			return err
		}
		grow(v)
		if err := d.value(v.Index(n)); err != nil {
			return &atField{strconv.Itoa(n), err}
		}
	}
}

// grow makes a slice one longer, in the memory that it has if that is enough.
func grow(v reflect.Value) {
	n := v.Len()
	if n < v.Cap() {
		v.SetLen(n + 1)
		v.Index(n).SetZero()
		return
	}
	v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
}

func (d *jsonDecoder) array(v reflect.Value) error {
	if err := d.s.want('['); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := d.s.more(']', n == 0)
		if err != nil {
			return err
		}
		if !more || n == v.Len() {
			if more || n < v.Len() {
				return fmt.Errorf("it has not %d elements", v.Len())
			}
			return nil
		}
		if err := d.value(v.Index(n)); err != nil {
			return &atField{strconv.Itoa(n), err}
		}
	}
}

func (d *jsonDecoder) base64(v reflect.Value) error {
	raw, escaped, err := d.s.rawString()
	if err != nil {
		return err
	}
	if escaped { // a slash may be written \/
		s, err := unescape(raw)
		if err != nil {
			return err
		}
		raw = []byte(s)
	}
	size := base64.StdEncoding.DecodedLen(len(raw))
	var into []byte
	if v.Kind() == reflect.Slice && cap(v.Bytes()) >= size {
		into = v.Bytes()[:size]
	} else {
		into = make([]byte, size)
	}
	got, err := base64.StdEncoding.Decode(into, raw)
	if err != nil {
		return fmt.Errorf("it is not base64: %w", err)
	}
	return setBytes(v, into[:got])
}

func setBytes(v reflect.Value, b []byte) error {
	if v.Kind() == reflect.Slice {
		v.SetBytes(b)
		return nil
	}
	if len(b) != v.Len() {
		return fmt.Errorf("it has %d bytes where %d belong", len(b), v.Len())
	}
	reflect.Copy(v, reflect.ValueOf(b))
	return nil
}

func (d *jsonDecoder) bool(v reflect.Value) error {
	w, err := d.s.word()
	if err != nil {
		return err
	}
	if string(w) != "true" && string(w) != "false" {
		return fmt.Errorf("%.20s where true or false belongs", w)
	}
	v.SetBool(w[0] == 't')
	return nil
}

func (d *jsonDecoder) number(v reflect.Value) error {
	if d.s.peek() == '"' {
		return errors.New("a string where a number belongs")
	}
	w, err := d.s.word()
	if err != nil {
		return err
	}
	switch string(w) {
	case "null":
		return errNull
	case "NaN", "Infinity", "-Infinity":
		return fmt.Errorf("%s is not JSON, though Python writes it: subscribe to this topic with cbor-raw", w)
	}
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		return setFloat(v, w)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x, err := strconv.ParseInt(string(w), 10, v.Type().Bits())
		if err != nil || !jsonNumber(w) {
			return fmt.Errorf("%.30s is not a whole number of %d bits", w, v.Type().Bits())
		}
		v.SetInt(x)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		x, err := strconv.ParseUint(string(w), 10, v.Type().Bits())
		if err != nil || !jsonNumber(w) {
			return fmt.Errorf("%.30s is not a whole number from 0 of %d bits", w, v.Type().Bits())
		}
		v.SetUint(x)
	default:
		return fmt.Errorf("no message has a Go %s", v.Type())
	}
	return nil
}

func setFloat(v reflect.Value, w []byte) error {
	x, err := strconv.ParseFloat(string(w), v.Type().Bits())
	if !jsonNumber(w) || err != nil {
		return fmt.Errorf("%.30s is not a number of %d bits", w, v.Type().Bits())
	}
	v.SetFloat(x)
	return nil
}

// jsonNumber is the grammar of RFC 8259, narrower than what strconv takes (hexadecimal, underscores, "inf", "+1").
func jsonNumber(w []byte) bool {
	w = bytes.TrimPrefix(w, []byte("-"))
	whole := digits(w)
	if whole == 0 || (w[0] == '0' && whole > 1) {
		return false
	}
	w = w[whole:]
	if len(w) > 0 && w[0] == '.' {
		n := digits(w[1:])
		if n == 0 {
			return false
		}
		w = w[1+n:]
	}
	if len(w) > 0 && (w[0] == 'e' || w[0] == 'E') {
		w = w[1:]
		if len(w) > 0 && (w[0] == '+' || w[0] == '-') {
			w = w[1:]
		}
		n := digits(w)
		return n > 0 && n == len(w)
	}
	return len(w) == 0
}

func digits(w []byte) int {
	n := 0
	for n < len(w) && w[n] >= '0' && w[n] <= '9' {
		n++
	}
	return n
}

// decodeCDR reads what cbor-raw carries: the message as DDS has it, with its four byte header.
func decodeCDR(raw []byte, m msg.Message, d cdr.Distro) error {
	r := cdr.NewReader(raw, d)
	m.UnmarshalCDR(r)
	return r.Err()
}
