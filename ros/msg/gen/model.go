package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// primitive is what is known of a primitive type.
type primitive struct {
	goType string
	call   string // the codec's method
	size   int    // bytes on the wire, at least
	id     int    // in a type description
}

var primitives = map[string]primitive{
	"bool":    {"bool", "Bool", 1, 15},
	"byte":    {"byte", "Uint8", 1, 16},
	"char":    {"uint8", "Uint8", 1, 3}, // a char of ROS is a uint8
	"int8":    {"int8", "Int8", 1, 2},
	"uint8":   {"uint8", "Uint8", 1, 3},
	"int16":   {"int16", "Int16", 2, 4},
	"uint16":  {"uint16", "Uint16", 2, 5},
	"int32":   {"int32", "Int32", 4, 6},
	"uint32":  {"uint32", "Uint32", 4, 7},
	"int64":   {"int64", "Int64", 8, 8},
	"uint64":  {"uint64", "Uint64", 8, 9},
	"float32": {"float32", "Float32", 4, 10},
	"float64": {"float64", "Float64", 8, 11},
	"string":  {"string", "String", 4, 17},
	"wstring": {"string", "WString", 4, 18},
}

// distros are those whose layouts can differ, oldest first; the definitions in defs itself are the newest's.
var distros = []string{"humble", "iron", "jazzy"}

// entry is a message in all its layouts.
type entry struct {
	*message
	layouts []layout // more than one only when distributions differ
	merged  []field  // of the Go structure
	service string   // full name of the service that this is a half of
	action  string   // full name of the action that this is the goal, result or feedback of
}

// layout is a list of fields and the distributions that have it.
type layout struct {
	distros []string
	fields  []field
}

// definitions are all messages, by full name.
type definitions struct {
	entries map[string]*entry
	names   []string // sorted
}

// load reads every definition below the root of fsys.
func load(fsys fs.FS) (*definitions, error) {
	newest, err := read(fsys, ".")
	if err != nil {
		return nil, err
	}
	older := map[string]map[string]*entry{}
	for _, d := range distros {
		if older[d], err = read(fsys, d); err != nil {
			return nil, err
		}
	}
	defs := &definitions{entries: newest}
	for name, e := range newest {
		defs.names = append(defs.names, name)
		for _, d := range distros {
			fields := e.fields
			if o := older[d][name]; o != nil {
				fields = o.fields
			}
			e.addLayout(d, fields)
		}
		if e.merged, err = merge(e); err != nil {
			return nil, err
		}
	}
	slices.Sort(defs.names)
	return defs, defs.check(older)
}

func (e *entry) addLayout(d string, fields []field) {
	for i := range e.layouts {
		if slices.Equal(e.layouts[i].fields, fields) {
			e.layouts[i].distros = append(e.layouts[i].distros, d)
			return
		}
	}
	e.layouts = append(e.layouts, layout{[]string{d}, fields})
}

// merge is the fields of the Go structure: all that any layout has; of an array that has several lengths the longest.
func merge(e *entry) ([]field, error) {
	out := slices.Clone(e.fields)
	for _, l := range e.layouts {
		for _, f := range l.fields {
			i := slices.IndexFunc(out, func(o field) bool { return o.name == f.name })
			if i < 0 {
				out = append(out, f)
				continue
			}
			a, b := out[i].typ, f.typ
			longest := max(a.n, b.n)
			if a.shape == array {
				a.n, b.n = longest, longest
			}
			if a != b {
				return nil, fmt.Errorf("%s.%s has two types, which one Go field cannot hold", e.full(), f.name)
			}
			out[i].typ = a
		}
	}
	return out, nil
}

func (d *definitions) check(older map[string]map[string]*entry) error {
	for distro, es := range older {
		for name := range es {
			if d.entries[name] == nil {
				return fmt.Errorf("%s/%s has no newest definition", distro, name)
			}
		}
	}
	for _, name := range d.names {
		e := d.entries[name]
		optional := false
		for i, f := range e.merged {
			if f.newer && i == 0 && d.all(e) <= 4 {
				return fmt.Errorf("%s.%s may be absent, and is too short to be told from the byte of an empty message", name, f.name)
			}
			if f.typ.pkg != "" && d.of(f.typ) == nil {
				return fmt.Errorf("%s.%s: no definition of %s/%s", name, f.name, f.typ.pkg, f.typ.base)
			}
			if optional && !f.newer {
				return fmt.Errorf("%s.%s comes behind a field that may be absent", name, f.name)
			}
			if optional = f.newer; optional && len(e.layouts) > 1 {
				return fmt.Errorf("%s.%s may be absent, and the layout differs by distribution: not both", name, f.name)
			}
		}
	}
	return nil
}

// of is the message that a field's type names; messages within a service or an action name their own kind.
func (d *definitions) of(t fieldType) *entry {
	for _, kind := range []string{"msg", "srv", "action"} {
		if e := d.entries[t.pkg+"/"+kind+"/"+t.base]; e != nil {
			return e
		}
	}
	return nil
}

// read parses the packages in dir, leaving the distributions' folders out.
func read(fsys fs.FS, dir string) (map[string]*entry, error) {
	out := map[string]*entry{}
	err := fs.WalkDir(fsys, dir, func(p string, f fs.DirEntry, err error) error {
		if err != nil {
			if dir != "." && p == dir {
				return fs.SkipDir // a distribution without differences
			}
			return err
		}
		if f.IsDir() {
			if dir == "." && slices.Contains(distros, p) {
				return fs.SkipDir
			}
			return nil
		}
		text, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		return interpret(out, strings.TrimPrefix(p, dir+"/"), string(text))
	})
	return out, err
}

// interpret takes one file apart into its messages.
func interpret(out map[string]*entry, p, text string) error {
	parts := strings.Split(p, "/")
	if len(parts) != 3 || path.Ext(p) != "."+parts[1] {
		return fmt.Errorf("%s is not <package>/<kind>/<Name>.<kind>", p)
	}
	pkg, kind, name := parts[0], parts[1], strings.TrimSuffix(parts[2], path.Ext(p))
	suffixes := map[string][]string{"msg": {""}, "srv": {"_Request", "_Response"}, "action": {"_Goal", "_Result", "_Feedback"}}[kind]
	sections := strings.Split("\n"+text, "\n---")
	if len(sections) != len(suffixes) {
		return fmt.Errorf("%s has %d sections, a %s has %d", p, len(sections), kind, len(suffixes))
	}
	for i, s := range sections {
		m, err := parse(pkg, kind, name+suffixes[i], s)
		if err != nil {
			return err
		}
		e := &entry{message: m}
		switch kind {
		case "srv":
			e.service = pkg + "/srv/" + name
		case "action":
			e.action = pkg + "/action/" + name
		}
		out[m.full()] = e
	}
	if kind == "action" {
		wrap(out, pkg, name)
	}
	return nil
}

// wrap adds the messages that carry an action over services and a topic.
func wrap(out map[string]*entry, pkg, name string) {
	own := func(base string) fieldType { return fieldType{pkg: pkg, base: name + base} }
	id := field{name: "goal_id", typ: fieldType{pkg: "unique_identifier_msgs", base: "UUID"}}
	add := func(suffix, service string, fields ...field) {
		m := &message{pkg: pkg, kind: "action", name: name + suffix, fields: fields}
		e := &entry{message: m}
		if service != "" {
			e.service = pkg + "/action/" + name + service
		}
		out[m.full()] = e
	}
	add("_SendGoal_Request", "_SendGoal", id, field{name: "goal", typ: own("_Goal")})
	add("_SendGoal_Response", "_SendGoal", field{name: "accepted", typ: fieldType{base: "bool"}},
		field{name: "stamp", typ: fieldType{pkg: "builtin_interfaces", base: "Time"}})
	add("_GetResult_Request", "_GetResult", id)
	add("_GetResult_Response", "_GetResult", field{name: "status", typ: fieldType{base: "int8"}}, field{name: "result", typ: own("_Result")})
	add("_FeedbackMessage", "", id, field{name: "feedback", typ: own("_Feedback")})
}

// all is the fewest bytes that all of e's newest fields take on the wire.
func (d *definitions) all(e *entry) int {
	n := 0
	for _, f := range e.fields {
		n += d.leastOf(f.typ)
	}
	return n
}

// least is the fewest bytes that e takes on the wire, paddings not counted.
func (d *definitions) least(e *entry) int {
	smallest := -1
	for _, l := range e.layouts {
		n := 0
		for _, f := range l.fields {
			if !f.newer {
				n += d.leastOf(f.typ)
			}
		}
		if n = max(n, 1); smallest < 0 || n < smallest {
			smallest = n
		}
	}
	return smallest
}

func (d *definitions) leastOf(t fieldType) int {
	switch t.shape {
	case array:
		return t.n * d.leastElement(t)
	case bounded, sequence:
		return 4
	default:
		return d.leastElement(t)
	}
}

func (d *definitions) leastElement(t fieldType) int {
	if t.pkg == "" {
		return primitives[t.base].size
	}
	return d.least(d.of(t))
}
