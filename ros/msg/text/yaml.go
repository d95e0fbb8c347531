package text

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"viad/ros/msg"
)

// Options say how a message is printed.
type Options struct {
	// Array is how many elements of an array or a sequence are printed; what is left out is counted. 0 prints all.
	Array int
	// String is how many bytes of a string are printed, 0 for all.
	String int
}

// YAML prints m: one line for each field, lists of numbers and of strings in one line. What is printed whole is YAML.
func YAML(w io.Writer, m msg.Message, o Options) error {
	p := printer{o: o}
	p.fields(structOf(m), "")
	if p.b.Len() == 0 {
		p.b.WriteString("{}\n")
	}
	_, err := w.Write(p.b.Bytes())
	return err
}

type printer struct {
	o Options
	b bytes.Buffer
}

func (p *printer) fields(v reflect.Value, indent string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if leftOut(f, v.Field(i)) {
			continue
		}
		n, _ := name(f)
		fmt.Fprintf(&p.b, "%s%s:", indent, n)
		p.value(v.Field(i), indent)
	}
}

func (p *printer) value(v reflect.Value, indent string) {
	switch v.Kind() {
	case reflect.Struct:
		if v.NumField() == 0 {
			p.b.WriteString(" {}\n")
			return
		}
		p.b.WriteByte('\n')
		p.fields(v, indent+"  ")
	case reflect.Slice, reflect.Array:
		p.list(v, indent)
	default:
		p.b.WriteString(" " + p.scalar(v) + "\n")
	}
}

func (p *printer) list(v reflect.Value, indent string) {
	n, shown := v.Len(), v.Len()
	if p.o.Array > 0 {
		shown = min(n, p.o.Array)
	}
	if v.Type().Elem().Kind() == reflect.Struct && n > 0 {
		p.b.WriteByte('\n')
		for i := range shown {
			p.element(v.Index(i), indent)
		}
		if shown < n {
			fmt.Fprintf(&p.b, "%s# %d more, %d in all\n", indent, n-shown, n)
		}
		return
	}
	p.b.WriteString(" [")
	for i := range shown {
		if i > 0 {
			p.b.WriteString(", ")
		}
		p.b.WriteString(p.scalar(v.Index(i)))
	}
	if shown < n {
		fmt.Fprintf(&p.b, ", ...] # %d in all\n", n)
		return
	}
	p.b.WriteString("]\n")
}

// element prints one message of a list: its first field stands behind the dash.
func (p *printer) element(v reflect.Value, indent string) {
	at := p.b.Len()
	p.fields(v, indent+"  ")
	if p.b.Len() == at {
		fmt.Fprintf(&p.b, "%s- {}\n", indent)
		return
	}
	p.b.Bytes()[at+len(indent)] = '-'
}

// plain is what needs no quotes in YAML.
var plain = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_/.-]*$`)

func (p *printer) scalar(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return p.text(v.String())
	case reflect.Float32:
		return float(v.Float(), 32)
	case reflect.Float64:
		return float(v.Float(), 64)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	default:
		return fmt.Sprint(v.Interface())
	}
}

func (p *printer) text(s string) string {
	more := ""
	if p.o.String > 0 && len(s) > p.o.String {
		s, more = s[:p.o.String], fmt.Sprintf(" # %d bytes in all", len(s))
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(s) + more
	}
	if plain.MatchString(s) {
		return s + more
	}
	return strconv.Quote(s) + more
}

func float(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if strings.ContainsAny(s, ".e") {
		return s
	}
	return s + ".0"
}
