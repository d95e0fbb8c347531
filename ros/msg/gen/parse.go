package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// shape is how many of a field there are.
type shape int

const (
	single   shape = iota
	array          // [n]
	bounded        // [<=n]
	sequence       // []
)

// fieldType is the type of a field: a primitive (base in primitives) or a message (pkg and base).
type fieldType struct {
	pkg, base string // pkg is "" for a primitive
	str       int    // bound of a string, 0 is none
	shape     shape
	n         int // of array and bounded
}

// field is one field of a message.
type field struct {
	name  string
	typ   fieldType
	def   string // default value as written, "" is none
	newer bool   // older releases end before it
}

// constant is one constant of a message.
type constant struct {
	name, value string
	typ         fieldType
}

// message is one message with a layout.
type message struct {
	pkg, kind, name string // "sensor_msgs", "msg", "Image"
	fields          []field
	constants       []constant
}

func (m *message) full() string { return m.pkg + "/" + m.kind + "/" + m.name }

var (
	nameRule  = regexp.MustCompile(`^[a-zA-Z](_?[a-zA-Z0-9])*$`)
	typeRule  = regexp.MustCompile(`^([a-zA-Z0-9_/]+)(?:<=(\d+))?(?:\[(<=)?(\d*)\])?$`)
	lineRule  = regexp.MustCompile(`^(\S+)\s+(.*)$`)
	constant1 = regexp.MustCompile(`^([A-Z][A-Z0-9_]*)\s*=\s*(.*)$`)
)

// parse reads one part of a definition, between its "---" lines.
func parse(pkg, kind, name, text string) (*message, error) {
	m := &message{pkg: pkg, kind: kind, name: name}
	for i, line := range strings.Split(text, "\n") {
		if err := m.line(line); err != nil {
			return nil, fmt.Errorf("%s line %d: %w", m.full(), i+1, err)
		}
	}
	return m, nil
}

func (m *message) line(line string) error {
	line, comment := uncomment(line)
	if line == "" {
		return nil
	}
	parts := lineRule.FindStringSubmatch(line)
	if parts == nil {
		return fmt.Errorf("%q is no field and no constant", line)
	}
	typ, err := parseType(m.pkg, parts[1])
	if err != nil {
		return err
	}
	if c := constant1.FindStringSubmatch(parts[2]); c != nil {
		m.constants = append(m.constants, constant{name: c[1], value: strings.TrimSpace(c[2]), typ: typ})
		return nil
	}
	name, def, _ := strings.Cut(parts[2], " ")
	if !nameRule.MatchString(name) {
		return fmt.Errorf("%q is no name of a field", name)
	}
	m.fields = append(m.fields, field{name: name, typ: typ, def: strings.TrimSpace(def), newer: strings.HasPrefix(comment, "newer")})
	return nil
}

func uncomment(line string) (rest, comment string) {
	quote := byte(0)
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && c == '#':
			return strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+1:])
		}
	}
	return strings.TrimSpace(line), ""
}

func parseType(pkg, s string) (fieldType, error) {
	p := typeRule.FindStringSubmatch(s)
	if p == nil {
		return fieldType{}, fmt.Errorf("%q is no type", s)
	}
	t := fieldType{base: p[1]}
	if p[2] != "" {
		t.str, _ = strconv.Atoi(p[2])
		if t.base != "string" && t.base != "wstring" {
			return t, fmt.Errorf("%q: only strings have a bound of their own", s)
		}
	}
	if strings.HasSuffix(s, "]") {
		switch {
		case p[4] == "":
			t.shape = sequence
		case p[3] != "":
			t.shape = bounded
		default:
			t.shape = array
		}
		t.n, _ = strconv.Atoi(p[4])
	}
	if _, ok := primitives[t.base]; ok {
		return t, nil
	}
	t.pkg = pkg
	if of, base, ok := strings.Cut(t.base, "/"); ok {
		t.pkg, t.base = of, strings.TrimPrefix(base, "msg/")
	}
	return t, nil
}
