package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is what a parameter holds.
type kind int

const (
	number kind = iota
	integer
	text
)

// param is one parameter of a tool: what is published of it, and what is checked.
type param struct {
	name     string
	kind     kind
	desc     string
	unit     string // "m", "deg" or empty
	min, max float64
	required bool
	def      float64  // number and integer
	enum     []string // text: the words that are allowed
	defText  string
}

// limit is the range in words, as refusals print it.
func (p *param) limit() string {
	if p.kind == text {
		return "one of " + strings.Join(p.enum, ", ")
	}
	s := fmt.Sprintf("%s to %s", plain(p.min), plain(p.max))
	if p.unit != "" {
		s += " " + p.unit
	}
	return s
}

// args are the checked arguments of one call, in the order of the tool's parameters.
type args struct {
	params []param
	num    []float64
	str    []string
}

// number is a number or integer argument, or its default.
func (a *args) number(name string) float64 {
	if i := index(a.params, name); i >= 0 {
		return a.num[i]
	}
	return 0
}

// word is a text argument, or its default.
func (a *args) word(name string) string {
	if i := index(a.params, name); i >= 0 {
		return a.str[i]
	}
	return ""
}

func index(ps []param, name string) int {
	for i := range ps {
		if ps[i].name == name {
			return i
		}
	}
	return -1
}

// badArg is an argument that was refused. Its parts are worded like a safety refusal.
type badArg struct{ rule, value, limit, next string }

// maxShown is how much of a foreign value is repeated in a refusal.
const maxShown = 60

// parseArgs checks raw, the JSON object that a client sent, against ps. Absent arguments, null and {} are
// the same; null stands for an absent optional argument; a plain number in a string is a number.
func parseArgs(raw []byte, ps []param) (*args, *badArg) {
	a := &args{params: ps, num: make([]float64, len(ps)), str: make([]string, len(ps))}
	set := make([]bool, len(ps))
	for i := range ps {
		a.num[i], a.str[i] = ps[i].def, ps[i].defText
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if bad := a.object(raw, set); bad != nil {
			return nil, bad
		}
	}
	for i := range ps {
		if ps[i].required && !set[i] {
			return nil, &badArg{
				rule: "missing argument " + ps[i].name, value: "nothing", limit: ps[i].limit(),
				next: fmt.Sprintf("Call again with %s.", ps[i].name),
			}
		}
	}
	return a, nil
}

// object reads the key and value pairs of raw.
func (a *args) object(raw []byte, set []bool) *badArg {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	open, err := d.Token()
	if open != json.Delim('{') || err != nil {
		return a.malformed(raw)
	}
	seen := make([]string, 0, len(a.params))
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return a.malformed(raw)
		}
		key, ok := t.(string)
		if !ok {
			return a.malformed(raw)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return a.malformed(raw)
		}
		for _, s := range seen {
			if s == key {
				return &badArg{
					rule: "argument " + shown(key) + " given twice", value: shown(string(value)) + " the second time", limit: "once",
					next: "Call again with each argument once.",
				}
			}
		}
		seen = append(seen, key)
		i := index(a.params, key)
		if i < 0 {
			return a.unknown(key)
		}
		if bad := a.value(i, value, set); bad != nil {
			return bad
		}
	}
	if _, err := d.Token(); err != nil {
		return a.malformed(raw)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return a.malformed(raw)
	}
	return nil
}

func (a *args) names() string {
	if len(a.params) == 0 {
		return "no arguments"
	}
	n := make([]string, len(a.params))
	for i := range a.params {
		n[i] = a.params[i].name
	}
	return strings.Join(n, ", ")
}

func (a *args) malformed(raw []byte) *badArg {
	return &badArg{
		rule: "arguments must be one JSON object", value: shown(string(raw)), limit: a.names(),
		next: "Call again with an object of named arguments.",
	}
}

func (a *args) unknown(key string) *badArg {
	return &badArg{
		rule: "unknown argument", value: shown(key), limit: a.names(),
		next: "Call again with only the arguments that this tool has.",
	}
}

// value checks one value for parameter i.
func (a *args) value(i int, raw json.RawMessage, set []bool) *badArg {
	p := &a.params[i]
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" {
		if p.required {
			return p.refuse("null")
		}
		return nil
	}
	set[i] = true
	if p.kind == text {
		var s string
		if raw[0] != '"' || json.Unmarshal(raw, &s) != nil || !p.allows(s) {
			return p.refuse(shown(string(raw)))
		}
		a.str[i] = s
		return nil
	}
	lit := string(raw)
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return p.refuse(shown(lit))
		}
		lit = strings.TrimSpace(s)
	}
	v, ok := plainNumber(lit)
	if !ok || p.kind == integer && v != math.Trunc(v) {
		return p.refuse(shown(string(raw)))
	}
	if !(v >= p.min && v <= p.max) {
		b := p.refuse(shown(string(raw)))
		b.rule = p.name + " is out of range"
		return b
	}
	a.num[i] = v
	return nil
}

func (p *param) allows(s string) bool {
	for _, e := range p.enum {
		if e == s {
			return true
		}
	}
	return false
}

// refuse is the refusal of a value of this parameter.
func (p *param) refuse(value string) *badArg {
	b := &badArg{rule: p.name, value: value, limit: p.limit()}
	switch {
	case p.kind == text:
		b.next = fmt.Sprintf("Call again with %s as one of those words.", p.name)
	case p.kind == integer:
		b.rule += " must be a whole number"
		b.next = fmt.Sprintf("Call again with %s as a whole number in that range.", p.name)
	case p.unit != "":
		b.rule += " must be a plain number in " + unitName(p.unit)
		b.next = fmt.Sprintf("Call again with %s in that range, without a unit; several calls add up.", p.name)
	default:
		b.rule += " must be a plain number"
		b.next = fmt.Sprintf("Call again with %s as a fraction of the picture, 0 to 1.", p.name)
	}
	return b
}

func unitName(u string) string {
	if u == "deg" {
		return "degrees"
	}
	return "metres"
}

// plainNumber reads a decimal number: digits, at most one point, an optional exponent, no other letters.
// What is too large for a float64 is not a number.
func plainNumber(s string) (float64, bool) {
	if len(s) == 0 || len(s) > 64 {
		return 0, false
	}
	for i := range len(s) {
		if !strings.ContainsRune("0123456789+-.eE", rune(s[i])) {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v-v != 0 {
		return 0, false
	}
	return v, true
}

// shown is a foreign value cut to a length that fits in one line, quoted where it is not plain.
func shown(s string) string {
	for i, r := range s {
		if r < ' ' || r == 0x7f || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			s = strconv.QuoteToASCII(s)
			break
		}
		if i > 4*maxShown {
			break
		}
	}
	if utf8.RuneCountInString(s) > maxShown {
		r := []rune(s)
		s = string(r[:maxShown]) + "..."
	}
	if s == "" {
		return `""`
	}
	return s
}
