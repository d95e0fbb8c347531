package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// access says who may call a tool and what the call does to the seat.
type access int

const (
	observe access = iota // everybody, in parallel
	edit                  // the seat: target or viewport
	motion                // the seat: execute, end of the episode
	halt                  // everybody, always
)

// hints are the annotations that are true.
type hints struct{ destructive, idempotent bool }

// definition is one tool of a face.
type definition struct {
	name, title, desc string
	params            []param
	access            access
	hints             hints
	looks             bool // shows the newest scene; others show what the caller's clicks resolve in
	run               func(context.Context, *call) (*reply, error)
}

// quick makes a tool of what needs no context: it waits for nothing.
func quick(f func(*call) (*reply, error)) func(context.Context, *call) (*reply, error) {
	return func(_ context.Context, c *call) (*reply, error) { return f(c) }
}

// propertySchema is one parameter in JSON Schema; the order of its keys is the order of this struct.
type propertySchema struct {
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Enum        []string        `json:"enum,omitempty"`
	Minimum     *float64        `json:"minimum,omitempty"`
	Maximum     *float64        `json:"maximum,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
}

func (p *param) schema() propertySchema {
	s := propertySchema{Type: [...]string{"number", "integer", "string"}[p.kind], Description: p.describe()}
	if p.kind == text {
		s.Enum = p.enum
		if !p.required {
			s.Default, _ = json.Marshal(p.defText)
		}
		return s
	}
	s.Minimum, s.Maximum = &p.min, &p.max
	if !p.required {
		s.Default = json.RawMessage(plain(p.def))
	}
	return s
}

// describe repeats unit, limits and default in words, because some clients strip them from the schema.
func (p *param) describe() string {
	d := p.desc
	if p.kind == text {
		d += " One of: " + p.limit()[len("one of "):] + "."
		if !p.required {
			d += " Default " + p.defText + "."
		}
		return d
	}
	d += fmt.Sprintf(" Allowed: %s.", p.limit())
	if !p.required {
		d += fmt.Sprintf(" Default %s.", plain(p.def))
	}
	return d
}

// inputSchema is a flat object with its properties in the order of the parameters.
func (d *definition) inputSchema() (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	for i := range d.params {
		p := &d.params[i]
		body, err := json.Marshal(p.schema())
		if err != nil {
			return nil, fmt.Errorf("schema of %s.%s: %w", d.name, p.name, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", p.name, body)
		if p.required {
			required = append(required, p.name)
		}
	}
	b.WriteByte('}')
	if len(required) > 0 {
		r, err := json.Marshal(required)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", d.name, err)
		}
		fmt.Fprintf(&b, `,"required":%s`, r)
	}
	b.WriteString(`,"additionalProperties":false}`)
	return b.Bytes(), nil
}

// listed is the tool as tools/list shows it.
func (d *definition) listed() (mcp.Tool, error) {
	schema, err := d.inputSchema()
	if err != nil {
		return mcp.Tool{}, err
	}
	readOnly, world := d.access == observe, false
	t := mcp.NewToolWithRawSchema(d.name, strings.TrimSpace(d.desc), schema)
	t.Annotations = mcp.ToolAnnotation{
		Title: d.title, ReadOnlyHint: &readOnly, DestructiveHint: &d.hints.destructive,
		IdempotentHint: &d.hints.idempotent, OpenWorldHint: &world,
	}
	if d.access == halt {
		t.Meta = &mcp.Meta{AdditionalFields: alwaysLoad()}
	}
	return t, nil
}
