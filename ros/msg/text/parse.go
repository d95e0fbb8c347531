package text

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"viad/ros/msg"
)

// ParseJSON reads a JSON object into m. It is strict: a field that m does not have, one that comes twice, a number that
// does not fit its type and null are refused, with the field's path and what is allowed. Fields that are not named get
// the default of the definition, else they stay as they are. Bytes are a list of numbers or base64.
func ParseJSON(data []byte, m msg.Message) error { return parse(data, m, false) }

// ParseJSONLoose is ParseJSON for what a peer sends, which may be of a newer release: fields that m does not have are
// left alone.
func ParseJSONLoose(data []byte, m msg.Message) error { return parse(data, m, true) }

func parse(data []byte, m msg.Message, loose bool) error {
	if d, ok := m.(interface{ SetDefaults() }); ok {
		d.SetDefaults()
	}
	p := parser{json.NewDecoder(bytes.NewReader(data)), loose}
	p.UseNumber()
	if err := p.value(structOf(m), m.TypeName()); err != nil {
		return err
	}
	if _, err := p.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more comes behind the object", m.TypeName())
	}
	return nil
}

type parser struct {
	*json.Decoder
	loose bool
}

func (p parser) value(v reflect.Value, path string) error {
	t, err := p.Token()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' && v.Kind() == reflect.Struct {
			return p.object(v, path)
		}
		if t == '[' && (v.Kind() == reflect.Slice || v.Kind() == reflect.Array) {
			return p.list(v, path)
		}
	case string:
		if v.Kind() == reflect.String {
			v.SetString(t)
			return nil
		}
		if (v.Kind() == reflect.Slice || v.Kind() == reflect.Array) && v.Type().Elem().Kind() == reflect.Uint8 {
			return base64Bytes(v, t, path)
		}
	case bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(t)
			return nil
		}
	case json.Number:
		return number(v, t, path)
	}
	return fmt.Errorf("%s: %v is no %s", path, told(t), kind(v.Type()))
}

// told is a token in an error.
func told(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "a list"}[t]
	case string:
		return strconv.Quote(t)
	default:
		return fmt.Sprint(t)
	}
}

// kind is a type in an error.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return "object (" + t.String() + ")"
	case reflect.Slice:
		return "list of " + t.Elem().String()
	case reflect.Array:
		return fmt.Sprintf("list of %d %s", t.Len(), t.Elem())
	default:
		return t.Kind().String()
	}
}

func (p parser) object(v reflect.Value, path string) error {
	seen := map[string]bool{}
	for p.More() {
		t, err := p.Token()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		key, _ := t.(string)
		if seen[key] {
			return fmt.Errorf("%s.%s comes twice", path, key)
		}
		seen[key] = true
		i := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool {
			n, _ := name(f)
			return n == key
		})
		switch {
		case i >= 0:
			if err := p.value(v.Field(i), path+"."+key); err != nil {
				return err
			}
		case p.loose:
			var skipped json.RawMessage
			if err := p.Decode(&skipped); err != nil {
				return fmt.Errorf("%s.%s: %w", path, key, err)
			}
		default:
			return fmt.Errorf("%s has no field %q; it has: %s", path, key, strings.Join(names(v.Type()), ", "))
		}
	}
	return p.end(path)
}

func (p parser) end(path string) error {
	if _, err := p.Token(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func names(t reflect.Type) []string {
	if t.NumField() == 0 {
		return []string{"none"}
	}
	out := make([]string, t.NumField())
	for i := range out {
		out[i], _ = name(t.Field(i))
	}
	return out
}

func (p parser) list(v reflect.Value, path string) error {
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	n := 0
	for ; p.More(); n++ {
		if v.Kind() == reflect.Slice {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			if d, ok := v.Index(n).Addr().Interface().(interface{ SetDefaults() }); ok {
				d.SetDefaults()
			}
		} else if n == v.Len() {
			return fmt.Errorf("%s: more than the %d elements that it has", path, v.Len())
		}
		if err := p.value(v.Index(n), fmt.Sprintf("%s[%d]", path, n)); err != nil {
			return err
		}
	}
	if n != v.Len() {
		return fmt.Errorf("%s: %d elements; it has %d", path, n, v.Len())
	}
	return p.end(path)
}

func base64Bytes(v reflect.Value, s, path string) error {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return fmt.Errorf("%s is neither a list nor base64: %w", path, err)
	}
	if v.Kind() == reflect.Slice {
		v.SetBytes(b)
		return nil
	}
	if len(b) != v.Len() {
		return fmt.Errorf("%s: %d bytes; it has %d", path, len(b), v.Len())
	}
	reflect.Copy(v, reflect.ValueOf(b))
	return nil
}

func number(v reflect.Value, n json.Number, path string) error {
	var err error
	switch {
	case v.CanInt():
		var i int64
		if i, err = strconv.ParseInt(n.String(), 10, v.Type().Bits()); err == nil {
			v.SetInt(i)
		}
	case v.CanUint():
		var u uint64
		if u, err = strconv.ParseUint(n.String(), 10, v.Type().Bits()); err == nil {
			v.SetUint(u)
		}
	case v.CanFloat():
		var f float64
		if f, err = strconv.ParseFloat(n.String(), v.Type().Bits()); err == nil {
			v.SetFloat(f)
		}
	default:
		return fmt.Errorf("%s: %s is no %s", path, n, kind(v.Type()))
	}
	if err != nil {
		return fmt.Errorf("%s: %s does not fit a %s", path, n, v.Kind())
	}
	return nil
}
