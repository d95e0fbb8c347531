package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// emitAll writes package all: one file for each ROS package, and the switch over them.
func emitAll(out map[string][]byte, packages map[string][]*entry) error {
	names := slices.Sorted(maps.Keys(packages))
	var b, list strings.Builder
	b.WriteString("// New makes an empty message by its full ROS 2 name (\"sensor_msgs/msg/Image\"); false says that there is none here.\n")
	b.WriteString("func New(typeName string) (msg.Message, bool) {\npkg, rest, _ := strings.Cut(typeName, \"/\")\nvar m msg.Message\nswitch pkg {\n")
	for _, pkg := range names {
		fmt.Fprintf(&b, "case %q:\nm = %s(rest)\n", pkg, maker(pkg))
		fmt.Fprintf(&list, "out = %s(out)\n", lister(pkg))
		if err := emitPackage(out, pkg, packages[pkg]); err != nil {
			return err
		}
	}
	b.WriteString("}\nreturn m, m != nil\n}\n\n")
	fmt.Fprintf(&b, "// Names are the full names of all messages that New makes, sorted.\nfunc Names() []string {\nvar out []string\n%sreturn out\n}\n", list.String())
	const head = header + "// Package all makes any message that viad has by its name.\npackage all\n\nimport (\n\"strings\"\n\n\"viad/ros/msg\"\n)\n\n"
	src, err := formatted("all/all.go", head+b.String())
	out["all/all.go"] = src
	return err
}

func maker(pkg string) string  { return "new" + camel(pkg) }
func lister(pkg string) string { return "names" + camel(pkg) }

func emitPackage(out map[string][]byte, pkg string, es []*entry) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%spackage all\n\nimport (\n\"viad/ros/msg\"\n\"viad/ros/msg/%s\"\n)\n\n", header, pkg)
	fmt.Fprintf(&b, "func %s(name string) msg.Message {\nswitch name {\n", maker(pkg))
	for _, e := range es {
		fmt.Fprintf(&b, "case %q:\nreturn new(%s.%s)\n", e.kind+"/"+e.name, pkg, e.name)
	}
	fmt.Fprintf(&b, "default:\nreturn nil\n}\n}\n\nfunc %s(out []string) []string {\nreturn append(out,\n", lister(pkg))
	for _, e := range es {
		fmt.Fprintf(&b, "%q,\n", e.full())
	}
	b.WriteString(")\n}\n")
	p := "all/" + pkg + ".go"
	src, err := formatted(p, b.String())
	out[p] = src
	return err
}
