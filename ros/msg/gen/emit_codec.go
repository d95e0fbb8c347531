package main

import (
	"fmt"
	"slices"
	"strings"
)

// where names a field in an error.
func (g *emitter) where(f field) string { return fmt.Sprintf("%q", g.e.pkg+"/"+g.e.name+"."+f.name) }

// sized is the field's name, cut to the layout's length when the Go array is longer.
func (g *emitter) sized(f field) string {
	name := "m." + camel(f.name)
	if f.typ.shape != array {
		return name
	}
	if i := slices.IndexFunc(g.e.merged, func(o field) bool { return o.name == f.name }); g.e.merged[i].typ.n > f.typ.n {
		return fmt.Sprintf("%s[:%d]", name, f.typ.n)
	}
	return name + "[:]"
}

// stringArgs are the further arguments of a string's codec.
func stringArgs(t fieldType, where string) string { return fmt.Sprintf("%d, %s", t.str, where) }

func isString(t fieldType) bool { return strings.HasSuffix(t.base, "string") }

func (g *emitter) write(f field) {
	t, name, where := f.typ, g.sized(f), g.where(f)
	if t.pkg != "" {
		g.writeNested(t, name, where)
		return
	}
	call := primitives[t.base].call
	switch {
	case t.shape == single && isString(t):
		g.printf("w.%s(%s, %s)\n", call, name, stringArgs(t, where))
	case t.shape == single:
		g.printf("w.%s(%s)\n", call, name)
	case t.shape == array && isString(t):
		g.printf("w.%ss(%s, %s)\n", call, name, stringArgs(t, where))
	case t.shape == array:
		g.printf("w.%ss(%s)\n", call, name)
	case isString(t):
		g.printf("w.%sSeq(%s, %d, %s)\n", call, name, t.n, stringArgs(t, where))
	default:
		g.printf("w.%sSeq(%s, %d, %s)\n", call, name, t.n, where)
	}
}

func (g *emitter) writeNested(t fieldType, name, where string) {
	plain := strings.TrimSuffix(name, "[:]")
	loop := fmt.Sprintf("for i := range %s {\n%s[i].MarshalCDR(w)\n}\n", plain, plain)
	switch t.shape {
	case single:
		g.printf("%s.MarshalCDR(w)\n", name)
	case array:
		g.printf("%s", loop)
	case bounded, sequence:
		g.printf("if w.Count(len(%s), %d, %s) {\n%s}\n", name, t.n, where, loop)
	}
}

func (g *emitter) read(f field) {
	if f.newer {
		// A message that is read into again must not keep what it had.
		end := "End"
		if g.e.fields[0] == f {
			end = "EndOfEmpty"
		}
		g.printf("if r.%s() {\n", end)
		for _, o := range g.e.merged[slices.IndexFunc(g.e.merged, func(o field) bool { return o.name == f.name }):] {
			g.printf("m.%s = %s\n", camel(o.name), g.zero(o.typ))
		}
		g.printf("return\n}\n")
	}
	t, name, where := f.typ, g.sized(f), g.where(f)
	if t.pkg != "" {
		g.readNested(t, name, where)
		return
	}
	call := primitives[t.base].call
	switch {
	case t.shape == single && isString(t):
		g.printf("%s = r.%s(%s, %s)\n", name, call, name, stringArgs(t, where))
	case t.shape == single:
		g.printf("%s = r.%s()\n", name, call)
	case t.shape == array && isString(t):
		g.printf("r.%ss(%s, %s)\n", call, name, stringArgs(t, where))
	case t.shape == array:
		g.printf("r.%ss(%s)\n", call, name)
	case isString(t):
		g.printf("%s = r.%sSeq(%s, %d, %s)\n", name, call, name, t.n, stringArgs(t, where))
	default:
		g.printf("%s = r.%sSeq(%s, %d, %s)\n", name, call, name, t.n, where)
	}
}

func (g *emitter) readNested(t fieldType, name, where string) {
	if t.shape == single {
		g.printf("%s.UnmarshalCDR(r)\n", name)
		return
	}
	plain := strings.TrimSuffix(name, "[:]")
	if t.shape != array {
		g.printf("%s = cdr.Resize(%s, r.Count(%d, %d, %s))\n", plain, plain, g.defs.leastElement(t), t.n, where)
	}
	g.printf("for i := range %s {\nif %s[i].UnmarshalCDR(r); r.Err() != nil {\nreturn\n}\n}\n", plain, plain)
}

// notWritten refuses a field with a value that the layout does not have. A message in its place cannot be compared and is
// left out.
func (g *emitter) notWritten(f field, l layout) {
	if slices.ContainsFunc(l.fields, func(o field) bool { return o.name == f.name }) {
		return
	}
	if f.typ.pkg != "" && f.typ.shape == single {
		return
	}
	name := "m." + camel(f.name)
	set := name
	switch {
	case f.typ.shape == bounded || f.typ.shape == sequence:
		set = fmt.Sprintf("len(%s) != 0", name)
	case f.typ.base != "bool" || f.typ.shape == array:
		set = fmt.Sprintf("%s != %s", name, parens(g.zero(f.typ)))
	}
	g.printf("w.Absent(%s, %s)\n", g.where(f), set)
}

func parens(zero string) string {
	if strings.HasSuffix(zero, "}") {
		return "(" + zero + ")"
	}
	return zero
}

// notRead empties what the layout does not have.
func (g *emitter) notRead(f field, l layout) {
	i := slices.IndexFunc(l.fields, func(o field) bool { return o.name == f.name })
	switch {
	case i < 0:
		g.printf("m.%s = %s\n", camel(f.name), g.zero(f.typ))
	case f.typ.shape == array && l.fields[i].typ.n < f.typ.n:
		g.printf("clear(m.%s[%d:])\n", camel(f.name), l.fields[i].typ.n)
	}
}

// zero is the zero value of a type in Go.
func (g *emitter) zero(t fieldType) string {
	switch {
	case t.shape == bounded || t.shape == sequence:
		return "nil"
	case t.shape == array || t.pkg != "":
		return g.goType(t) + "{}"
	case t.base == "bool":
		return "false"
	case isString(t):
		return `""`
	default:
		return "0"
	}
}
