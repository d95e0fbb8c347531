package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// qualified finds the packages that emitted code names, outside of strings: none of ours has a dot before a capital.
var qualified = regexp.MustCompile(`(?:^|[^.\w"/])([a-z][a-z0-9_]*)\.[A-Z]`)

// emitter writes the Go of one message.
type emitter struct {
	defs *definitions
	e    *entry
	b    *bytes.Buffer
}

func (g *emitter) printf(format string, args ...any) { fmt.Fprintf(g.b, format, args...) }

func (g *emitter) message() {
	e := g.e
	g.constants()
	g.printf("// %s is %s.\n", e.name, e.full())
	if len(e.layouts) > 1 {
		g.printf("// Its layout differs by distribution, which the codec must be told.\n")
	}
	if len(e.merged) == 0 {
		g.printf("type %s struct{}\n\n", e.name)
	} else {
		g.printf("type %s struct {\n", e.name)
		for _, f := range e.merged {
			omit := ""
			if !g.everywhere(f) {
				omit = ",omitempty"
			}
			g.printf("%s %s `json:\"%s%s\"`\n", camel(f.name), g.goType(f.typ), f.name, omit)
		}
		g.printf("}\n\n")
	}
	h := describer{g.defs}
	g.method("TypeName", "is "+e.full(), "string", e.full())
	g.method("TypeHash", "is the type's RIHS01 hash", "string", h.hash(e.full()))
	if e.service != "" {
		g.method("ServiceHash", "is the RIHS01 hash of the service "+e.service, "string", h.hash(e.service))
	}
	if e.action != "" {
		g.printf("// ActionHashes are the RIHS01 hashes of what carries the action.\nfunc (*%s) ActionHashes() msg.ActionHashes {\n", e.name)
		g.printf("return msg.ActionHashes{\nSendGoal: %q,\nGetResult: %q,\nFeedback: %q,\n}\n}\n\n",
			h.hash(e.action+"_SendGoal"), h.hash(e.action+"_GetResult"), h.hash(e.action+"_FeedbackMessage"))
	}
	if g.defaulted(e) {
		g.defaults()
	}
	g.codec("MarshalCDR appends the message", "w *cdr.Writer", g.write, g.notWritten)
	g.codec("UnmarshalCDR reads the message", "r *cdr.Reader", g.read, g.notRead)
}

func (g *emitter) method(name, doc, typ, value string) {
	g.printf("// %s %s.\nfunc (*%s) %s() %s {\nreturn %q\n}\n\n", name, doc, g.e.name, name, typ, value)
}

// everywhere says whether every layout has the field.
func (g *emitter) everywhere(f field) bool {
	for _, l := range g.e.layouts {
		if !slices.ContainsFunc(l.fields, func(o field) bool { return o.name == f.name }) {
			return false
		}
	}
	return true
}

func (g *emitter) constants() {
	if len(g.e.constants) == 0 {
		return
	}
	g.printf("// Constants of %s.\nconst (\n", g.e.full())
	for _, c := range g.e.constants {
		g.printf("%s_%s %s = %s\n", g.e.name, c.name, primitives[c.typ.base].goType, literal(c.typ, c.value))
	}
	g.printf(")\n\n")
}

// literal is a value of a definition in Go.
func literal(t fieldType, v string) string {
	if strings.HasSuffix(t.base, "string") {
		if len(v) > 1 && (v[0] == '"' || v[0] == '\'') {
			v = v[1 : len(v)-1]
		}
		return strconv.Quote(v)
	}
	if t.base == "bool" {
		return strconv.FormatBool(v == "1" || strings.EqualFold(v, "true"))
	}
	return v
}

func (g *emitter) elemType(t fieldType) string {
	switch t.pkg {
	case "":
		return primitives[t.base].goType
	case g.e.pkg:
		return t.base
	default:
		return t.pkg + "." + t.base
	}
}

func (g *emitter) goType(t fieldType) string {
	switch t.shape {
	case array:
		return fmt.Sprintf("[%d]%s", t.n, g.elemType(t))
	case bounded, sequence:
		return "[]" + g.elemType(t)
	default:
		return g.elemType(t)
	}
}

// defaulted says that e, or a message directly in it, has default values.
func (g *emitter) defaulted(e *entry) bool {
	return slices.ContainsFunc(e.fields, func(f field) bool { return g.hasDefault(f) })
}

func (g *emitter) hasDefault(f field) bool {
	return f.def != "" && f.typ.shape == single || f.typ.pkg != "" && f.typ.shape == single && g.defaulted(g.defs.of(f.typ))
}

func (g *emitter) defaults() {
	g.printf("// SetDefaults gives the fields that have a default value in the definition that value.\n")
	g.printf("func (m *%s) SetDefaults() {\n", g.e.name)
	for _, f := range g.e.fields {
		switch name := "m." + camel(f.name); {
		case !g.hasDefault(f):
		case f.typ.pkg != "":
			g.printf("%s.SetDefaults()\n", name)
		default:
			g.printf("%s = %s\n", name, literal(f.typ, f.def))
		}
	}
	g.printf("}\n\n")
}

// codec writes one direction, with a branch for each layout when there are several.
func (g *emitter) codec(doc, param string, each func(field), missing func(field, layout)) {
	e, v := g.e, param[:1]
	name, _, _ := strings.Cut(doc, " ")
	used := "m "
	if len(e.merged) == 0 {
		used = ""
	}
	g.printf("// %s.\nfunc (%s*%s) %s(%s) {\n", doc, used, e.name, name, param)
	switch {
	case len(e.merged) == 0:
		g.printf("%s.Empty()\n", v)
	case len(e.layouts) == 1:
		g.fields(e.layouts[0], each)
	default:
		g.printf("switch %s.Distro() {\n", v)
		for _, l := range e.layouts {
			cases := make([]string, 0, len(l.distros))
			for _, d := range l.distros {
				cases = append(cases, "cdr."+strings.ToUpper(d[:1])+d[1:])
			}
			g.printf("case %s:\n", strings.Join(cases, ", "))
			g.fields(l, each)
			for _, f := range e.merged {
				missing(f, l)
			}
		}
		g.printf("default:\n%s.DistroUnknown(%q)\n}\n", v, e.full())
	}
	g.printf("}\n\n")
}

func (g *emitter) fields(l layout, each func(field)) {
	for _, f := range l.fields {
		each(f)
	}
}
