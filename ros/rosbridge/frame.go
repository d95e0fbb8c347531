package rosbridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// frame is one operation that came. msg is the part that a message type reads: "msg", "args" or "values", not yet looked
// at; it shares memory with the frame's bytes.
type frame struct {
	op, id                 string
	topic, service, action string
	level, words           string // of a status
	msg                    payload
	result, hasResult      bool
	status                 int
	hasStatus              bool
	data                   string // of a fragment
	num, total             int
	fragmentNums           bool
}

// payload is a message as it came.
type payload struct {
	enc  Encoding // JSON, CBOR or CBORRaw; never Auto
	raw  []byte
	sent time.Time // the server's clock, cbor-raw only
}

var errNoOp = errors.New(`it has no "op"`)

// parseFrame reads the envelope of a frame, text or binary.
func parseFrame(b []byte, binary bool, d cbor.DecMode) (frame, error) {
	var f frame
	var err error
	if binary {
		f, err = parseCBOR(b, d)
	} else {
		f, err = parseJSON(b)
	}
	if err == nil && f.op == "" {
		err = errNoOp
	}
	return f, err
}

func parseJSON(b []byte) (frame, error) {
	f := frame{msg: payload{enc: JSON}}
	s := scanner{b: b}
	err := s.object(func(key []byte) error {
		if err := f.field(&s, string(key)); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	return f, s.end()
}

func (f *frame) field(s *scanner, key string) (err error) {
	switch key {
	case "op":
		f.op, err = s.str()
	case "id":
		f.id, err = idOf(s)
	case "topic":
		f.topic, err = s.str()
	case "service":
		f.service, err = s.str()
	case "action":
		f.action, err = s.str()
	case "level":
		f.level, err = s.str()
	case "data":
		f.data, err = s.str()
	case "num":
		f.num, err = number(s)
		f.fragmentNums = true
	case "total":
		f.total, err = number(s)
	case "status":
		f.hasStatus = s.peek() != 'n' // null is no status
		if !f.hasStatus {
			_, err = s.skip()
			break
		}
		f.status, err = number(s)
	case "result":
		var w []byte
		if w, err = s.skip(); err == nil {
			f.result, f.hasResult = string(w) == "true", true
		}
	case "msg", "args", "values":
		// A status has words where others have a message, and so has a service that failed.
		f.msg.raw, err = s.skip()
		if err == nil && len(f.msg.raw) > 0 && f.msg.raw[0] == '"' {
			f.words, err = (&scanner{b: f.msg.raw}).str()
		}
	default:
		_, err = s.skip()
	}
	return err
}

// idOf reads an id: a string, or a number from clients that count.
func idOf(s *scanner) (string, error) {
	if s.peek() == '"' {
		return s.str()
	}
	w, err := s.skip()
	if string(w) == "null" {
		return "", err
	}
	return string(w), err
}

func number(s *scanner) (int, error) {
	w, err := s.word()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(w), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%.20s is not a whole number", w)
	}
	return int(n), nil
}

// parseCBOR reads the envelope that servers send as CBOR: publish only.
func parseCBOR(b []byte, d cbor.DecMode) (frame, error) {
	var f frame
	if err := d.Wellformed(b); err != nil {
		return f, fmt.Errorf("it is not CBOR: %w", err)
	}
	var body item
	err := item(b).object(func(key string, v item) (err error) {
		switch key {
		case "op":
			f.op, err = v.text()
		case "id":
			f.id, err = v.text()
		case "topic":
			f.topic, err = v.text()
		case "msg":
			body = v
		}
		return err
	})
	if err != nil {
		return f, err
	}
	f.msg = payload{enc: CBOR, raw: body}
	if r, ok := rawOf(body); ok {
		f.msg = r
	}
	return f, nil
}

// rawOf is what cbor-raw carries. A message of exactly these three fields does not exist in ROS.
func rawOf(body item) (payload, bool) {
	var secs, nsecs int64
	seen := 0
	p := payload{enc: CBORRaw}
	err := body.object(func(key string, v item) (err error) {
		seen++
		switch key {
		case "secs":
			secs, err = v.int()
		case "nsecs":
			nsecs, err = v.int()
		case "bytes":
			p.raw, err = v.bytes()
		default:
			seen = 4
		}
		return err
	})
	p.sent = time.Unix(secs, nsecs)
	return p, err == nil && seen == 3
}

// decMode refuses what ROS messages do not have, and bounds the rest.
func decMode(maxElements int) (cbor.DecMode, error) {
	m, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:  maxDepth,
		MaxArrayElements: min(max(maxElements, 16), 1<<30),
		MaxMapPairs:      4096,
		IndefLength:      cbor.IndefLengthForbidden,
	}.DecMode()
	if err != nil {
		return nil, fmt.Errorf("rosbridge: CBOR: %w", err)
	}
	return m, nil
}

// outgoing builds a frame: fields in the order they are given.
type outgoing []byte

func begin(op string) outgoing { return append(outgoing(`{"op":`), quoted(op)...) }

func (o outgoing) text(key, value string) outgoing {
	return append(o.key(key), quoted(value)...)
}

func (o outgoing) int(key string, value int64) outgoing {
	return strconv.AppendInt(o.key(key), value, 10)
}

func (o outgoing) float(key string, value float64) outgoing {
	return strconv.AppendFloat(o.key(key), value, 'f', -1, 64)
}

func (o outgoing) bool(key string, value bool) outgoing {
	return strconv.AppendBool(o.key(key), value)
}

func (o outgoing) raw(key string, value []byte) outgoing { return append(o.key(key), value...) }

func (o outgoing) key(key string) outgoing {
	return append(append(append(o, ',', '"'), key...), '"', ':')
}

func (o outgoing) end() []byte { return append(o, '}') }

func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		return []byte(`""`)
	}
	return b
}
