package tool

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"viad/interface/stage"
	"viad/safety"
)

// block is one content block: a text, or a picture when jpeg is set.
type block struct {
	text string
	view string
	jpeg []byte
}

// reply is the result of a call before it is put into MCP's words. It is immutable once returned.
type reply struct {
	blocks []block
	bad    bool // isError
	shown  *stage.Snapshot
	report *stage.Report
}

func (r *reply) say(s string) { r.blocks = append(r.blocks, block{text: s}) }

func (r *reply) picture(view string, jpeg []byte) {
	r.blocks = append(r.blocks, block{view: view, jpeg: jpeg})
}

// before returns a copy with a text block put before the last text block, so that pictures and the JSON
// block keep their places.
func (r *reply) before(s string) *reply {
	c := *r
	at := len(r.blocks)
	if at > 0 && r.blocks[at-1].jpeg == nil {
		at--
	}
	c.blocks = append(append(append([]block(nil), r.blocks[:at]...), block{text: s}), r.blocks[at:]...)
	return &c
}

func (r *reply) texts() []string {
	var t []string
	for _, b := range r.blocks {
		if b.jpeg == nil {
			t = append(t, b.text)
		}
	}
	return t
}

func (r *reply) pictures() []Picture {
	var p []Picture
	for _, b := range r.blocks {
		if b.jpeg != nil {
			p = append(p, Picture{View: b.view, JPEG: b.jpeg})
		}
	}
	return p
}

func (r *reply) result() *mcp.CallToolResult {
	out := &mcp.CallToolResult{IsError: r.bad, Content: make([]mcp.Content, 0, len(r.blocks))}
	for _, b := range r.blocks {
		if b.jpeg != nil {
			out.Content = append(out.Content, mcp.NewImageContent(base64.StdEncoding.EncodeToString(b.jpeg), "image/jpeg"))
			continue
		}
		out.Content = append(out.Content, mcp.NewTextContent(b.text))
	}
	return out
}

// message is a reply of one text that is no error.
func message(s string) *reply { return &reply{blocks: []block{{text: s}}} }

// ignoring says that a call was carried out without its arguments.
func (r *reply) ignoring(bad *badArg) *reply {
	if r == nil || len(r.blocks) == 0 {
		return r
	}
	c := *r
	c.blocks = append([]block(nil), r.blocks...)
	c.blocks[0].text = oneLine(fmt.Sprintf("%s (Ignored: %s, got %s, limit %s.)", c.blocks[0].text, bad.rule, bad.value, bad.limit))
	return &c
}

// refusal words a rule that was not met: `<tool> refused: <rule>, got <value>, limit <limit>. Nothing
// staged. <what to do>`.
func refusal(d *definition, rule, value, limit, next string) *reply {
	var b strings.Builder
	fmt.Fprintf(&b, "%s refused: %s", d.name, strings.TrimSuffix(rule, "."))
	if value != "" {
		fmt.Fprintf(&b, ", got %s", value)
	}
	if limit != "" {
		fmt.Fprintf(&b, ", limit %s", limit)
	}
	fmt.Fprintf(&b, ". %s", d.unchanged())
	if next != "" {
		fmt.Fprintf(&b, " %s", capital(sentence(next)))
	}
	return &reply{bad: true, blocks: []block{{text: oneLine(b.String())}}}
}

// unchanged says what did not happen.
func (d *definition) unchanged() string {
	switch d.access {
	case edit:
		return "Nothing staged."
	case motion:
		return "Nothing moved."
	default:
		return "Nothing changed."
	}
}

// failure turns an error of the rooms below into a reply.
func failure(d *definition, err error) *reply {
	var r *safety.Refused
	if errors.As(err, &r) {
		return refusal(d, r.Rule, r.Value, r.Limit, r.Next)
	}
	return &reply{bad: true, blocks: []block{{text: oneLine(fmt.Sprintf("%s failed: %v. %s", d.name, err, "Look again before the next step."))}}}
}

// oneLine keeps a sentence on one line whatever it was made of.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
