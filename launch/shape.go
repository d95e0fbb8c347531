package launch

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Bounds of a file's own size, so that a wrong file (a picture, a dump) is told from a launch file at once:
// the parser takes gigabytes for deeply nested rubbish.
const (
	maxFile = 1 << 20
	maxLine = 4096
	maxDeep = 64
)

// notAFile says why text is no launch file, whatever stands in it.
func notAFile(text []byte) error {
	if len(text) > maxFile {
		return fmt.Errorf("is %d bytes long, and a launch file has at most %d", len(text), maxFile)
	}
	deep, line, number := 0, 0, 1
	for _, b := range text {
		line++
		switch b {
		case '\n':
			line = 0
			number++
		case '[', '{':
			deep++
		case ']', '}':
			deep--
		}
		if deep > maxDeep {
			return fmt.Errorf("line %d: brackets are nested more than %d deep", number, maxDeep)
		}
		if line > maxLine {
			return fmt.Errorf("line %d is longer than %d bytes", number, maxLine)
		}
	}
	return nil
}

// shaped checks that n can be decoded into a typ, and says so in words when it cannot: the decoder speaks of
// Go's types, and takes 5.5 for 5 where a whole number is wanted.
func shaped(n ast.Node, typ reflect.Type) error {
	switch v := n.(type) {
	case *ast.AnchorNode:
		return shaped(v.Value, typ)
	case *ast.TagNode:
		return shaped(v.Value, typ)
	case *ast.AliasNode:
		return nil // what it stands for is looked at where it stands
	}
	if typ.Kind() == reflect.Pointer {
		return shaped(n, typ.Elem())
	}
	if _, own := reflect.New(typ).Interface().(yaml.NodeUnmarshaler); own {
		return nil // it has words of its own
	}
	switch typ.Kind() { //nolint:exhaustive // the kinds that the config is made of; the decoder judges all others
	case reflect.Struct:
		return block(n, typ)
	case reflect.Slice:
		seq, ok := n.(*ast.SequenceNode)
		if !ok {
			return at(n, "this must be a list: [first, second]")
		}
		for _, v := range seq.Values {
			if err := shaped(v, typ.Elem()); err != nil {
				return err
			}
		}
	case reflect.Int, reflect.Int64:
		if _, ok := n.(*ast.IntegerNode); !ok {
			return at(n, "this must be a whole number, for example 1")
		}
	case reflect.Bool:
		if _, ok := n.(*ast.BoolNode); !ok {
			return at(n, "this must be true or false")
		}
	case reflect.String:
		switch n.(type) {
		case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
			return at(n, "this must be a word or a text, in quotes when it has other signs")
		}
	}
	return nil
}

// block checks the keys and values of a block of keys.
func block(n ast.Node, typ reflect.Type) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return at(n, "this must be a block of keys, one a line, as in the shipped launch files: "+keysOf(typ))
	}
	for it := m.MapRange(); it.Next(); {
		key := it.Key()
		name := key.GetToken().Value
		f, ok := fieldOf(typ, name)
		if !ok {
			return at(key, unknownKey(name, typ))
		}
		if err := shaped(it.Value(), f.Type); err != nil {
			return err
		}
	}
	return nil
}

func fieldOf(typ reflect.Type, key string) (reflect.StructField, bool) {
	for f := range fields(typ) {
		if f.Tag.Get("yaml") == key && key != "" {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func fields(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if f := typ.Field(i); f.Tag.Get("yaml") != "" && !yield(f) {
				return
			}
		}
	}
}

func keysOf(typ reflect.Type) string {
	var names []string
	for f := range fields(typ) {
		names = append(names, f.Tag.Get("yaml"))
	}
	return strings.Join(names, ", ")
}

// unknownKey names the key that was probably meant, or all that there are.
func unknownKey(name string, typ reflect.Type) string {
	best, least := "", max(1, len(name)/3)+1
	for f := range fields(typ) {
		if d := edits(name, f.Tag.Get("yaml")); d < least {
			best, least = f.Tag.Get("yaml"), d
		}
	}
	if best != "" {
		return fmt.Sprintf("there is no key %q here: %s is probably meant", name, best)
	}
	return fmt.Sprintf("there is no key %q here: the keys are %s", name, keysOf(typ))
}

// edits is how many letters must be changed, put in, left out or swapped with the next to make a into b.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	prev, row := make([]int, len(y)+1), make([]int, len(y)+1)
	var before []int
	for j := range row {
		row[j] = j
	}
	for i, p := range x {
		before, prev, row = prev, row, make([]int, len(y)+1)
		row[0] = i + 1
		for j, q := range y {
			cost := 1
			if p == q {
				cost = 0
			}
			row[j+1] = min(prev[j]+cost, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && p == y[j-1] && x[i-1] == q {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(y)]
}

// noNulls refuses keys without a value: the parser would take them for zeros, and a limit of zero is not
// what somebody meant who left a line empty.
func noNulls(n ast.Node) error {
	var v nullVisitor
	ast.Walk(&v, n)
	return v.err
}

type nullVisitor struct{ err error }

// Visit is ast.Visitor.
func (v *nullVisitor) Visit(n ast.Node) ast.Visitor {
	const says = "this key has no value: give it one, or leave the line out for the default"
	if v.err != nil {
		return nil
	}
	switch n := n.(type) {
	case *ast.MappingValueNode:
		if _, null := n.Value.(*ast.NullNode); null {
			v.err = at(n.Key, says) // the value itself stands nowhere
			return nil
		}
	case *ast.NullNode:
		v.err = at(n, says)
	}
	return v
}

var errEmpty = errors.New("the file is empty: start from a shipped launch file")
