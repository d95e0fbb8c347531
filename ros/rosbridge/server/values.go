package server

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"viad/ros/msg"
)

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Bare NaN stands in raw parts, which the encoder checks.
		return bare(v)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// bare writes an answer whose values are no JSON.
func bare(v any) ([]byte, error) {
	a, ok := v.(answer)
	if !ok {
		return nil, fmt.Errorf("%T cannot be written", v)
	}
	values := a.Values
	a.Values = json.RawMessage(`"@"`)
	b, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	return bytes.Replace(b, []byte(`"values":"@"`), append([]byte(`"values":`), values...), 1), nil
}

// toJSON writes a message as rosbridge_suite does: bytes as base64, also of fixed length; NaN and Inf as null.
func (s *Server) toJSON(m msg.Message) []byte {
	var b bytes.Buffer
	s.writeJSON(&b, reflect.ValueOf(m).Elem())
	return b.Bytes()
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func bytesOf(v reflect.Value) []byte {
	out := make([]byte, v.Len())
	reflect.Copy(reflect.ValueOf(out), v)
	return out
}

func (s *Server) writeJSON(b *bytes.Buffer, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		b.WriteByte('{')
		for i := range v.NumField() {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(strconv.Quote(nameOf(v.Type().Field(i))))
			b.WriteString(": ")
			s.writeJSON(b, v.Field(i))
		}
		b.WriteByte('}')
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8, v.Kind() == reflect.Array && v.Type().Elem().Kind() == reflect.Uint8:
		b.WriteByte('"')
		b.WriteString(base64.StdEncoding.EncodeToString(bytesOf(v)))
		b.WriteByte('"')
	case v.Kind() == reflect.Slice, v.Kind() == reflect.Array:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteString(", ")
			}
			s.writeJSON(b, v.Index(i))
		}
		b.WriteByte(']')
	case v.CanFloat():
		s.writeFloat(b, v.Float(), v.Type().Bits())
	case v.Kind() == reflect.String:
		b.WriteString(pythonString(v.String()))
	default:
		fmt.Fprint(b, v.Interface())
	}
}

// pythonString writes what is not ASCII as escapes, as Python's json does.
func pythonString(s string) string {
	q := strconv.QuoteToASCII(s)
	if !strings.Contains(q, `\x`) && !strings.Contains(q, `\U`) && !strings.Contains(q, `\a`) && !strings.Contains(q, `\v`) {
		return q
	}
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

func (s *Server) writeFloat(b *bytes.Buffer, f float64, bits int) {
	switch {
	case !math.IsNaN(f) && !math.IsInf(f, 0):
		t := strconv.FormatFloat(f, 'g', -1, bits)
		if !strings.ContainsAny(t, ".e") { // Python writes 1.0
			t += ".0"
		}
		b.WriteString(t)
	case !s.o.BareNaN:
		b.WriteString("null")
	case math.IsNaN(f):
		b.WriteString("NaN")
	case f < 0:
		b.WriteString("-Infinity")
	default:
		b.WriteString("Infinity")
	}
}

// fromJSON reads a message; a field that the type lacks is an error, as it is there.
func fromJSON(raw json.RawMessage, m msg.Message) error {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "[]" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return fmt.Errorf("%s: %w", m.TypeName(), err)
	}
	return nil
}

// fillStamp puts the robot's clock into the header when the client left the stamp out.
func fillStamp(raw json.RawMessage, m msg.Message, now time.Time) {
	header := reflect.ValueOf(m).Elem().FieldByName("Header")
	if !header.IsValid() {
		return
	}
	var part struct {
		Header *struct {
			Stamp *json.RawMessage `json:"stamp"`
		} `json:"header"`
	}
	if json.Unmarshal(raw, &part) != nil || (part.Header != nil && part.Header.Stamp != nil) {
		return
	}
	stamp := header.FieldByName("Stamp")
	stamp.FieldByName("Sec").SetInt(now.Unix())
	stamp.FieldByName("Nanosec").SetUint(uint64(now.Nanosecond()))
}

// CBOR, as far as rosbridge writes it: a head is a major type and a number.
func head(b []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n <= math.MaxUint8:
		return append(b, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

func cborText(b []byte, s string) []byte { return append(head(b, 3, uint64(len(s))), s...) }
func cborBytes(b, s []byte) []byte       { return append(head(b, 2, uint64(len(s))), s...) }
func cborInt(b []byte, n int64) []byte {
	if n < 0 {
		return head(b, 1, uint64(-(n + 1))) // it is positive
	}
	return head(b, 0, uint64(n))
}

// toCBOR writes a message: bytes as such, lists of numbers as typed arrays, little endian.
func toCBOR(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Struct:
		b = head(b, 5, uint64(v.NumField()))
		for i := range v.NumField() {
			b = toCBOR(cborText(b, nameOf(v.Type().Field(i))), v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		return listToCBOR(b, v)
	case reflect.String:
		return cborText(b, v.String())
	case reflect.Bool:
		if v.Bool() {
			return append(b, 0xf5)
		}
		return append(b, 0xf4)
	case reflect.Float32, reflect.Float64:
		return binary.BigEndian.AppendUint64(append(b, 0xfb), math.Float64bits(v.Float()))
	default:
		if v.CanUint() {
			return head(b, 0, v.Uint())
		}
		return cborInt(b, v.Int())
	}
	return b
}

// typedTag is the tag of RFC 8746 that rosbridge_suite uses for a list of numbers; 0 is none.
func typedTag(k reflect.Kind) uint64 {
	switch k {
	case reflect.Uint16:
		return 69
	case reflect.Uint32:
		return 70
	case reflect.Uint64:
		return 71
	case reflect.Int8:
		return 72
	case reflect.Int16:
		return 77
	case reflect.Int32:
		return 78
	case reflect.Int64:
		return 79
	case reflect.Float32:
		return 85
	case reflect.Float64:
		return 86
	default:
		return 0
	}
}

func listToCBOR(b []byte, v reflect.Value) []byte {
	kind := v.Type().Elem().Kind()
	if kind == reflect.Uint8 {
		return cborBytes(b, bytesOf(v))
	}
	tag := typedTag(kind)
	if tag == 0 {
		b = head(b, 4, uint64(v.Len()))
		for i := range v.Len() {
			b = toCBOR(b, v.Index(i))
		}
		return b
	}
	var packed bytes.Buffer
	for i := range v.Len() {
		if err := binary.Write(&packed, binary.LittleEndian, v.Index(i).Interface()); err != nil {
			return append(b, 0xf7)
		}
	}
	return cborBytes(head(b, 6, tag), packed.Bytes())
}
