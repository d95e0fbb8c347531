package text

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"viad/ros/msg"
)

// AppendJSON appends m as JSON the way rosbridge has it: uint8[] and byte[], also of a fixed length, as base64, an empty
// sequence as [], fields that not every distribution has only when they are set. NaN and infinities are refused, because
// JSON has none and null is no number.
func AppendJSON(b []byte, m msg.Message) ([]byte, error) {
	return appendValue(b, structOf(m), m.TypeName())
}

func appendValue(b []byte, v reflect.Value, path string) ([]byte, error) {
	switch v.Kind() {
	case reflect.Struct:
		return appendStruct(b, v, path)
	case reflect.Slice, reflect.Array:
		return appendList(b, v, path)
	case reflect.String:
		s, err := json.Marshal(v.String())
		return append(b, s...), err
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%s is %v, which JSON cannot carry: send a number or leave the message", path, f)
		}
		return strconv.AppendFloat(b, f, 'g', -1, v.Type().Bits()), nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	default:
		return strconv.AppendUint(b, v.Uint(), 10), nil
	}
}

func appendStruct(b []byte, v reflect.Value, path string) ([]byte, error) {
	b = append(b, '{')
	first := true
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if leftOut(f, v.Field(i)) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		n, _ := name(f)
		b = strconv.AppendQuote(b, n)
		b = append(b, ':')
		var err error
		if b, err = appendValue(b, v.Field(i), path+"."+n); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendList(b []byte, v reflect.Value, path string) ([]byte, error) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, octets(v))
		return append(b, '"'), nil
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// octets is the content of a slice or an array of bytes.
func octets(v reflect.Value) []byte {
	if v.Kind() == reflect.Slice || v.CanAddr() {
		return v.Bytes()
	}
	b := make([]byte, v.Len())
	reflect.Copy(reflect.ValueOf(b), v)
	return b
}
