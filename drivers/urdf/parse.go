package urdf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"
)

// maxDepth bounds nesting; URDF needs six levels.
const maxDepth = 16

// node is one element, kept with its place so that errors can name it.
type node struct {
	name  string
	attrs map[string]string
	kids  []*node
	path  string // robot "x" > joint "y" > limit
}

// Parse reads a URDF document. Errors name the element and the value that is wrong.
func Parse(doc []byte) (*Robot, error) {
	root, err := readTree(doc)
	if err != nil {
		return nil, err
	}
	r, err := readRobot(root)
	if err != nil {
		return nil, err
	}
	if err := r.connect(); err != nil {
		return nil, err
	}
	return r, nil
}

func readTree(doc []byte) (*node, error) {
	dec := xml.NewDecoder(bytes.NewReader(doc))
	var root *node
	var open []*node
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("urdf: %w", err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			n, err := newNode(t, open)
			if err != nil {
				return nil, err
			}
			switch {
			case len(open) > 0:
				p := open[len(open)-1]
				p.kids = append(p.kids, n)
			case root != nil:
				return nil, fmt.Errorf("urdf: a second document element <%s>; there must be one <robot>", n.name)
			default:
				root = n
			}
			if open = append(open, n); len(open) > maxDepth {
				return nil, fmt.Errorf("urdf: %s: nested deeper than %d elements", n.path, maxDepth)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
	if root == nil {
		return nil, errors.New("urdf: the document is empty; it must hold one <robot>")
	}
	return root, nil
}

func newNode(t xml.StartElement, open []*node) (*node, error) {
	n := &node{name: t.Name.Local, attrs: map[string]string{}}
	n.path = n.name
	for _, a := range t.Attr {
		if _, twice := n.attrs[a.Name.Local]; twice {
			return nil, fmt.Errorf("urdf: <%s> has attribute %q twice", n.name, a.Name.Local)
		}
		n.attrs[a.Name.Local] = a.Value
	}
	if v, ok := n.attrs["name"]; ok {
		n.path += " " + strconv.Quote(v)
	}
	if len(open) > 0 {
		n.path = open[len(open)-1].path + " > " + n.path
	}
	return n, nil
}

func (n *node) errorf(format string, args ...any) error {
	return fmt.Errorf("urdf: %s: %s", n.path, fmt.Sprintf(format, args...))
}

// only refuses children that are neither wanted nor knowingly skipped, and second ones of a single.
func (n *node) only(single, many, skipped []string) error {
	seen := map[string]bool{}
	for _, k := range n.kids {
		switch {
		case slices.Contains(many, k.name), slices.Contains(skipped, k.name):
		case !slices.Contains(single, k.name):
			return n.errorf("<%s> is not read here; wanted %s", k.name, strings.Join(append(slices.Clone(single), many...), ", "))
		case seen[k.name]:
			return n.errorf("a second <%s>", k.name)
		}
		seen[k.name] = true
	}
	return nil
}

func (n *node) kid(name string) *node {
	for _, k := range n.kids {
		if k.name == name {
			return k
		}
	}
	return nil
}

func (n *node) str(attr string) (string, error) {
	v := strings.TrimSpace(n.attrs[attr])
	if v == "" {
		return "", n.errorf("attribute %q is missing or empty", attr)
	}
	return v, nil
}

func (n *node) floats(attr string, want int) ([]float64, error) {
	v, err := n.str(attr)
	if err != nil {
		return nil, err
	}
	f := strings.Fields(v)
	if len(f) != want {
		return nil, n.errorf("%s=%q has %d numbers; wanted %d", attr, v, len(f), want)
	}
	out := make([]float64, want)
	for i, s := range f {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, n.errorf("%s=%q: %q is not a finite number", attr, v, s)
		}
		out[i] = x
	}
	return out, nil
}

func (n *node) vec(attr string) (r3.Vec, error) {
	f, err := n.floats(attr, 3)
	if err != nil {
		return r3.Vec{}, err
	}
	return r3.Vec{X: f[0], Y: f[1], Z: f[2]}, nil
}

// number reads an attribute that may be absent.
func (n *node) number(attr string, absent float64) (float64, error) {
	if _, ok := n.attrs[attr]; !ok {
		return absent, nil
	}
	f, err := n.floats(attr, 1)
	if err != nil {
		return 0, err
	}
	return f[0], nil
}

// length reads a required positive number of metres.
func (n *node) length(attr string) (float64, error) {
	f, err := n.floats(attr, 1)
	if err != nil {
		return 0, err
	}
	if f[0] <= 0 {
		return 0, n.errorf("%s=%q must be over 0", attr, n.attrs[attr])
	}
	return f[0], nil
}

func (n *node) origin() (Origin, error) {
	o := n.kid("origin")
	if o == nil {
		return Origin{}, nil
	}
	var out Origin
	var err error
	if _, ok := o.attrs["xyz"]; ok {
		if out.XYZ, err = o.vec("xyz"); err != nil {
			return Origin{}, err
		}
	}
	if _, ok := o.attrs["rpy"]; ok {
		if out.RPY, err = o.vec("rpy"); err != nil {
			return Origin{}, err
		}
	}
	return out, nil
}
