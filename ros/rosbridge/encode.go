package rosbridge

import (
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"viad/ros/msg"
)

// codec turns messages into JSON and back by their fields' json tags. It remembers the fields of the types it has seen.
type codec struct {
	shapes sync.Map // reflect.Type -> *shape
}

// shape is what is to be known of a struct.
type shape struct {
	fields []field
	byName map[string]int
	stamp  int // the field "stamp" of a std_msgs/Header, -1 otherwise
}

type field struct {
	name     string
	index    int
	required bool // a message without it is malformed: there is a number in it
}

func (c *codec) shape(t reflect.Type) *shape {
	if s, ok := c.shapes.Load(t); ok {
		return s.(*shape) // only shapes are stored
	}
	s := &shape{byName: map[string]int{}, stamp: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		s.byName[name] = len(s.fields)
		s.fields = append(s.fields, field{name: name, index: i, required: hasNumber(f.Type)})
	}
	if m, ok := reflect.New(t).Interface().(msg.Message); ok && m.TypeName() == "std_msgs/msg/Header" {
		if i, ok := s.byName["stamp"]; ok {
			s.stamp = i
		}
	}
	c.shapes.Store(t, s)
	return s
}

func hasNumber(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if hasNumber(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Array:
		return hasNumber(t.Elem())
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32,
		reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	default:
		return false
	}
}

// encode is m as JSON. With robotStamp a zero stamp of the header is left out: the server then fills in the robot's
// clock, and clocks that differ do no harm.
func (c *codec) encode(m msg.Message, robotStamp bool) ([]byte, error) {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("rosbridge: %T is not a message", m)
	}
	e := encoder{c: c}
	e.object(v.Elem(), robotStamp)
	if e.err != nil {
		return nil, fmt.Errorf("rosbridge: %s cannot be sent: %w", m.TypeName(), e.err)
	}
	return e.dst, nil
}

type encoder struct {
	c   *codec
	dst []byte
	err error
}

func (e *encoder) object(v reflect.Value, robotStamp bool) {
	s := e.c.shape(v.Type())
	e.dst = append(e.dst, '{')
	first := true
	for i, f := range s.fields {
		fv := v.Field(f.index)
		if robotStamp && i == s.stamp && fv.IsZero() {
			continue
		}
		if !first {
			e.dst = append(e.dst, ',')
		}
		first = false
		e.dst = append(append(append(e.dst, '"'), f.name...), '"', ':')
		if fv.Kind() == reflect.Struct {
			// Only the header of the message itself is filled in by every version of the server.
			e.object(fv, robotStamp && f.name == "header")
		} else {
			e.value(fv, f.name)
		}
		if e.err != nil {
			return
		}
	}
	e.dst = append(e.dst, '}')
}

func (e *encoder) value(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		e.object(v, false)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			e.dst = append(e.dst, '"')
			e.dst = base64.StdEncoding.AppendEncode(e.dst, v.Bytes())
			e.dst = append(e.dst, '"')
			return
		}
		e.list(v, name)
	case reflect.Array:
		e.list(v, name)
	case reflect.Bool:
		e.dst = strconv.AppendBool(e.dst, v.Bool())
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.dst = strconv.AppendInt(e.dst, v.Int(), 10)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.dst = strconv.AppendUint(e.dst, v.Uint(), 10)
	case reflect.Float32:
		e.float(v.Float(), 32, name)
	case reflect.Float64:
		e.float(v.Float(), 64, name)
	case reflect.String:
		e.dst = append(e.dst, quoted(v.String())...)
	default:
		e.err = fmt.Errorf("field %s has a Go type %s that no message has", name, v.Type())
	}
}

func (e *encoder) list(v reflect.Value, name string) {
	e.dst = append(e.dst, '[')
	for i := range v.Len() {
		if i > 0 {
			e.dst = append(e.dst, ',')
		}
		if e.value(v.Index(i), name); e.err != nil {
			return
		}
	}
	e.dst = append(e.dst, ']')
}

func (e *encoder) float(f float64, bits int, name string) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.err = fmt.Errorf("field %s is %v, which JSON cannot write and rosbridge would read as something else; send a number", name, f)
		return
	}
	e.dst = strconv.AppendFloat(e.dst, f, 'g', -1, bits)
}
