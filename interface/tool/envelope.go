package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// envelope is what stands around the arguments of a message.
type envelope struct {
	method string
	id     json.RawMessage // nil for a notification
	modern bool            // protocol 2026-07-28, which has no sessions

	tool      string // of tools/call
	arguments json.RawMessage
}

// fault is why a message can not be taken: it never reaches the library, so nothing was called.
type fault struct {
	status int // of HTTP
	code   int // of JSON-RPC
	id     json.RawMessage
	why    string
}

// The codes of JSON-RPC.
const (
	notJSON    = -32700
	notRequest = -32600
	notParams  = -32602
)

// maxID bounds a request id, which is kept and recorded.
const maxID = 256

// modernVersion is in the metadata of every message of protocol 2026-07-28.
const modernVersion = "io.modelcontextprotocol/protocolVersion"

// open reads the envelope of one message. The library reads names without regard to case and takes the last of
// several, so that a call could say stop and end the episode; here such a message is refused.
func (s *Server) open(b []byte) (envelope, *fault) {
	var e envelope
	bad := func(code int, format string, args ...any) (envelope, *fault) {
		id := e.id
		if id == nil {
			id = json.RawMessage("null")
		}
		return e, &fault{http.StatusBadRequest, code, id, oneLine(fmt.Sprintf(format, args...))}
	}
	b = bytes.TrimSpace(b)
	if err := oneValue(b); err != nil {
		return bad(notJSON, "%v: send one JSON-RPC message", err)
	}
	if b[0] == '[' {
		return bad(notRequest, "a batch is not taken: send one JSON-RPC message at a time")
	}
	top, why := members(b, "jsonrpc", "id", "method", "params", "result", "error")
	if why != "" {
		return bad(notRequest, "%s: nothing was called", why)
	}
	if json.Unmarshal(top["method"], &e.method) != nil && top["method"] != nil {
		return bad(notRequest, "method is %s, and must be a string", shown(string(top["method"])))
	}
	if e.method == "" {
		return e, nil // an answer to something that was asked of the client
	}
	if id, given := top["id"]; given {
		if !(id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9') || len(id) > maxID {
			return bad(notRequest, "id is %s, and must be a string or a number of at most %d characters: nothing was called", shown(string(id)), maxID)
		}
		e.id = id
	}
	params := top["params"]
	if e.method != "tools/call" {
		if params != nil && params[0] == '{' {
			if _, why := members(params, "_meta"); why != "" {
				return bad(notParams, "params: %s", why)
			}
		}
		e.modern = modernIn(params)
		return e, nil
	}
	if e.id == nil {
		return bad(notRequest, "tools/call without an id is not taken, for its result could not be told: nothing was called")
	}
	return s.openCall(e, params)
}

// openCall reads the parameters of tools/call.
func (s *Server) openCall(e envelope, params json.RawMessage) (envelope, *fault) {
	bad := func(status int, format string, args ...any) (envelope, *fault) {
		return e, &fault{status, notParams, e.id, oneLine(fmt.Sprintf(format, args...))}
	}
	if params == nil || params[0] != '{' {
		return bad(http.StatusBadRequest, "params of tools/call must be an object with name and arguments: nothing was called")
	}
	p, why := members(params, "name", "arguments", "_meta")
	if why != "" {
		return bad(http.StatusBadRequest, "params of tools/call: %s: nothing was called", why)
	}
	if json.Unmarshal(p["name"], &e.tool) != nil {
		return bad(http.StatusBadRequest, "name of tools/call is %s, and must be a string: nothing was called", shown(string(p["name"])))
	}
	e.arguments = p["arguments"]
	if meta := p["_meta"]; meta != nil && meta[0] != '{' {
		return bad(http.StatusBadRequest, "_meta of tools/call is %s, and must be an object: nothing was called", shown(string(meta)))
	}
	e.modern = modernIn(params)
	if !e.modern && !slices.ContainsFunc(s.defs, func(d *definition) bool { return d.name == e.tool }) {
		return bad(http.StatusOK, "there is no tool %s on this face: tools/list names those that there are", shown(e.tool))
	}
	return e, nil
}

// modernIn reports whether parameters carry the metadata of protocol 2026-07-28.
func modernIn(params json.RawMessage) bool {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	return json.Unmarshal(params, &p) == nil && p.Meta[modernVersion] != nil
}

// oneValue refuses what is not exactly one JSON value.
func oneValue(b []byte) error {
	if len(b) == 0 {
		return errors.New("the message is empty")
	}
	var v json.RawMessage
	err := json.Unmarshal(b, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("the message is not JSON (%w, byte %d)", err, syntax.Offset)
	}
	if err != nil {
		return fmt.Errorf("the message is not JSON (%w)", err)
	}
	return nil
}

// members are the values of an object by their names, and why they are not clear: a name twice, or one of the
// known names in other letters.
func members(b []byte, known ...string) (map[string]json.RawMessage, string) {
	d := json.NewDecoder(bytes.NewReader(b))
	if open, err := d.Token(); open != json.Delim('{') || err != nil {
		return nil, "a message is one JSON object, got " + shown(string(b))
	}
	out, seen := make(map[string]json.RawMessage), make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err.Error()
		}
		name, ok := t.(string)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil || !ok {
			return nil, "a name without a value"
		}
		for _, k := range known {
			if strings.EqualFold(k, name) && k != name {
				return nil, fmt.Sprintf("%s must be written %s", shown(name), k)
			}
		}
		fold := strings.ToLower(name)
		if seen[fold] {
			return nil, shown(name) + " stands there twice"
		}
		seen[fold] = true
		out[name] = bytes.TrimSpace(value)
	}
	return out, ""
}

// write answers with the fault as JSON-RPC wants it.
func (f *fault) write(w io.Writer) error {
	b, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}{"2.0", f.id, struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{f.code, f.why}})
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
