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

// wireCBOR is the envelope that servers send as CBOR: publish only.
type wireCBOR struct {
	Op    string          `cbor:"op"`
	ID    string          `cbor:"id"`
	Topic string          `cbor:"topic"`
	Msg   cbor.RawMessage `cbor:"msg"`
}

// wireRaw is the "msg" of cbor-raw.
type wireRaw struct {
	Secs  *int64 `cbor:"secs"`
	Nsecs *int64 `cbor:"nsecs"`
	Bytes []byte `cbor:"bytes"`
}

func parseCBOR(b []byte, d cbor.DecMode) (frame, error) {
	var w wireCBOR
	if err := d.Unmarshal(b, &w); err != nil {
		return frame{}, fmt.Errorf("it is not CBOR: %w", err)
	}
	f := frame{op: w.Op, id: w.ID, topic: w.Topic, msg: payload{enc: CBOR, raw: w.Msg}}
	var r wireRaw
	// A message of exactly these three fields does not exist in ROS: it is cbor-raw.
	if d.Unmarshal(w.Msg, &r) == nil && r.Bytes != nil && r.Secs != nil && r.Nsecs != nil {
		f.msg = payload{enc: CBORRaw, raw: r.Bytes, sent: time.Unix(*r.Secs, *r.Nsecs)}
	}
	return f, nil
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
