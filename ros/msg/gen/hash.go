package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// description is a type as its RIHS01 hash sees it (REP 2011): the sha256 of a JSON text with the type's fields and those
// of every type it refers to, sorted by name, without constants, defaults and comments.
type description struct {
	name   string
	fields []described
}

type described struct {
	name     string
	id       int
	capacity int
	str      int
	nested   string
}

const (
	idNested  = 1
	idBounded = 4 // from a string to a bounded string
	idArray   = 48
	idLimited = 96
	idSeq     = 144
)

// describer makes descriptions and finds what they refer to.
type describer struct{ defs *definitions }

// hash is the RIHS01 hash of a message, a service or an action's service by its full name.
func (d describer) hash(full string) string {
	top := d.describe(full)
	seen := map[string]description{}
	d.collect(top, seen)
	names := slices.Sorted(maps.Keys(seen))
	var b strings.Builder
	b.WriteString(`{"type_description": `)
	top.write(&b)
	b.WriteString(`, "referenced_type_descriptions": [`)
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		seen[n].write(&b)
	}
	b.WriteString("]}")
	sum := sha256.Sum256([]byte(b.String()))
	return "RIHS01_" + hex.EncodeToString(sum[:])
}

func (d describer) collect(of description, seen map[string]description) {
	for _, f := range of.fields {
		if _, ok := seen[f.nested]; f.nested == "" || ok {
			continue
		}
		seen[f.nested] = d.describe(f.nested)
		d.collect(seen[f.nested], seen)
	}
}

func (t description) write(b *strings.Builder) {
	fmt.Fprintf(b, `{"type_name": %q, "fields": [`, t.name)
	for i, f := range t.fields {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, `{"name": %q, "type": {"type_id": %d, "capacity": %d, "string_capacity": %d, "nested_type_name": %q}}`,
			f.name, f.id, f.capacity, f.str, f.nested)
	}
	b.WriteString("]}")
}

// describe knows messages, and makes up what rosidl makes up: services and their events.
func (d describer) describe(full string) description {
	out := description{name: full}
	e := d.defs.entries[full]
	switch base, event := strings.CutSuffix(full, "_Event"); {
	case e != nil && len(e.fields) == 0:
		out.fields = []described{{name: "structure_needs_at_least_one_member", id: primitives["uint8"].id}}
	case e != nil:
		for _, f := range e.fields {
			out.fields = append(out.fields, d.field(f))
		}
	case event:
		out.fields = []described{
			{name: "info", id: idNested, nested: "service_msgs/msg/ServiceEventInfo"},
			{name: "request", id: idNested + idLimited, capacity: 1, nested: base + "_Request"},
			{name: "response", id: idNested + idLimited, capacity: 1, nested: base + "_Response"},
		}
	default: // a service
		out.fields = []described{
			{name: "request_message", id: idNested, nested: full + "_Request"},
			{name: "response_message", id: idNested, nested: full + "_Response"},
			{name: "event_message", id: idNested, nested: full + "_Event"},
		}
	}
	return out
}

func (d describer) field(f field) described {
	out := described{name: f.name, id: idNested, str: f.typ.str}
	if f.typ.pkg == "" {
		out.id = primitives[f.typ.base].id
		if f.typ.str > 0 {
			out.id += idBounded
		}
	} else {
		out.nested = d.defs.of(f.typ).full()
	}
	switch f.typ.shape {
	case array:
		out.id, out.capacity = out.id+idArray, f.typ.n
	case bounded:
		out.id, out.capacity = out.id+idLimited, f.typ.n
	case sequence:
		out.id += idSeq
	case single:
	}
	return out
}
