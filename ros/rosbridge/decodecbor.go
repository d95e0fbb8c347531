package rosbridge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/fxamacker/cbor/v2"
)

// cborDecoder reads a message from CBOR. The library parses; typed arrays (RFC 8746), which it does not know, and what
// ROS must not take for a number are decided here.
type cborDecoder struct {
	c    *codec
	mode cbor.DecMode
}

func (d *cborDecoder) value(raw item, v reflect.Value) error {
	if len(raw) == 0 {
		return errShort
	}
	if raw.null() {
		return errNull
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.object(raw, v)
	case reflect.Slice, reflect.Array:
		return d.list(raw, v)
	default:
		if err := d.mode.Unmarshal(raw, v.Addr().Interface()); err != nil {
			return err
		}
		if v.Kind() == reflect.Float32 && raw[0] == 0xfb { // a double that was too large became Inf
			var wide float64
			if d.mode.Unmarshal(raw, &wide) == nil && math.IsInf(v.Float(), 0) && !math.IsInf(wide, 0) {
				return fmt.Errorf("%g does not fit 32 bits", wide)
			}
		}
		return nil
	}
}

func (d *cborDecoder) object(raw item, v reflect.Value) error {
	s := d.c.shape(v.Type())
	var seen uint64
	err := raw.object(func(key string, part item) error {
		i, ok := s.byName[key]
		if !ok { // a newer robot's field
			return nil
		}
		if i < 64 {
			if seen&(1<<i) != 0 {
				return &atField{key, errors.New("it comes twice")}
			}
			seen |= 1 << i
		}
		if err := d.value(part, v.Field(s.fields[i].index)); err != nil {
			return &atField{key, err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.missing(seen)
}

func (d *cborDecoder) list(raw item, v reflect.Value) error {
	switch raw.major() {
	case majorTag:
		return d.typed(raw, v)
	case majorBytes:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			return errors.New("a byte string where numbers belong")
		}
		b, err := raw.bytes()
		if err != nil {
			return err
		}
		return copyBytes(v, b)
	}
	if v.Kind() == reflect.Slice {
		v.SetLen(0)
	}
	n, err := raw.list(func(i int, part item) error {
		if v.Kind() == reflect.Slice { // it grows with what is there: what is announced may be no message at all
			grow(v)
		} else if i == v.Len() {
			return fmt.Errorf("it has more than %d elements", v.Len())
		}
		if err := d.value(part, v.Index(i)); err != nil {
			return &atField{strconv.Itoa(i), err}
		}
		return nil
	})
	if err == nil && n < v.Len() {
		err = fmt.Errorf("it has %d elements where %d belong", n, v.Len())
	}
	return err
}

// copyBytes fills v from memory that is not its own.
func copyBytes(v reflect.Value, b []byte) error {
	if v.Kind() == reflect.Slice {
		b = append(v.Bytes()[:0], b...)
	}
	return setBytes(v, b)
}

func setLen(v reflect.Value, n int) error {
	if v.Kind() == reflect.Array {
		if n != v.Len() {
			return fmt.Errorf("it has %d elements where %d belong", n, v.Len())
		}
		return nil
	}
	if v.Cap() < n {
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		return nil
	}
	v.SetLen(n)
	return nil
}

// typed reads a typed array: a tag that names the number format, and the numbers as bytes (RFC 8746, 2.1).
func (d *cborDecoder) typed(raw item, v reflect.Value) error {
	n, content, err := raw.tag()
	if err != nil {
		return err
	}
	// The tag is 0b010_f_s_e_ll: float, signed, little endian, length. 68 is clamped bytes, 76 is not assigned.
	if n < 64 || n > 87 || n == 76 {
		return fmt.Errorf("tag %d is no typed array", n)
	}
	isFloat, signed, little, ll := n&16 != 0, n&8 != 0, n&4 != 0, n&3
	size := 1 << ll
	if isFloat {
		size = 2 << ll
	}
	b, err := content.bytes()
	if err != nil {
		return err
	}
	if len(b)%size != 0 || size > 8 {
		return fmt.Errorf("%d bytes are no typed array of tag %d", len(b), n)
	}
	if v.Type().Elem().Kind() == reflect.Uint8 && n == 64 {
		return copyBytes(v, b)
	}
	if err := setLen(v, len(b)/size); err != nil {
		return err
	}
	var order binary.ByteOrder = binary.BigEndian
	if little {
		order = binary.LittleEndian
	}
	for i := range v.Len() {
		if err := setTyped(v.Index(i), order, b[i*size:(i+1)*size], isFloat, signed); err != nil {
			return &atField{strconv.Itoa(i), err}
		}
	}
	return nil
}

func setTyped(v reflect.Value, order binary.ByteOrder, b []byte, isFloat, signed bool) error {
	var bits uint64
	switch len(b) {
	case 1:
		bits = uint64(b[0])
	case 2:
		bits = uint64(order.Uint16(b))
	case 4:
		bits = uint64(order.Uint32(b))
	default:
		bits = order.Uint64(b)
	}
	switch {
	case isFloat:
		x := math.Float64frombits(bits)
		switch len(b) {
		case 2:
			x = half(uint16(bits)) // two bytes were read
		case 4:
			x = float64(math.Float32frombits(uint32(bits))) // four bytes were read
		}
		if !v.CanFloat() || (v.OverflowFloat(x) && !math.IsInf(x, 0)) {
			return fmt.Errorf("%g does not fit a %s", x, v.Type())
		}
		v.SetFloat(x)
	case signed:
		shift := 64 - 8*len(b)
		x := int64(bits<<shift) >> shift // the sign is what is wanted
		switch {
		case v.CanInt() && !v.OverflowInt(x):
			v.SetInt(x)
		case v.CanUint() && x >= 0 && !v.OverflowUint(uint64(x)):
			v.SetUint(uint64(x))
		default:
			return fmt.Errorf("%d does not fit a %s", x, v.Type())
		}
	default:
		switch {
		case v.CanUint() && !v.OverflowUint(bits):
			v.SetUint(bits)
		case v.CanInt() && bits <= math.MaxInt64 && !v.OverflowInt(int64(bits)):
			v.SetInt(int64(bits))
		default:
			return fmt.Errorf("%d does not fit a %s", bits, v.Type())
		}
	}
	return nil
}

// half is a binary16 number.
func half(b uint16) float64 {
	sign, exp, frac := 1.0, int(b>>10&31), float64(b&1023)
	if b>>15 == 1 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac == 0 {
			return sign * math.Inf(1)
		}
		return math.NaN()
	default:
		return sign * math.Ldexp(1024+frac, exp-25)
	}
}
