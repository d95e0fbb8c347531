package rosbridge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// item is CBOR that the library has found well-formed, of definite lengths. Its parts are cut out of it, never copied: a
// picture of a megabyte lies in the frame that came.
type item []byte

// The major types of CBOR.
const (
	majorUint  = 0
	majorNint  = 1
	majorBytes = 2
	majorText  = 3
	majorList  = 4
	majorMap   = 5
	majorTag   = 6
)

var errKind = errors.New("it is something else")

func (b item) major() byte {
	if len(b) == 0 {
		return 0xff
	}
	return b[0] >> 5
}

// null says whether it is null or undefined.
func (b item) null() bool { return len(b) > 0 && (b[0] == 0xf6 || b[0] == 0xf7) }

// head is the number in the head of an item, and what follows the head.
func (b item) head() (n uint64, rest item, err error) {
	if len(b) == 0 {
		return 0, nil, errShort
	}
	var size int
	switch low := b[0] & 31; {
	case low < 24:
		return uint64(low), b[1:], nil
	case low < 28:
		size = 1 << (low - 24)
	default:
		return 0, nil, fmt.Errorf("a length of form %d", low)
	}
	if len(b) < 1+size {
		return 0, nil, errShort
	}
	var wide [8]byte
	copy(wide[8-size:], b[1:1+size])
	return binary.BigEndian.Uint64(wide[:]), b[1+size:], nil
}

// skip cuts the first item off.
func (b item) skip(depth int) (first, rest item, err error) {
	n, rest, err := b.head()
	if err != nil {
		return nil, nil, err
	}
	if depth > maxDepth {
		return nil, nil, fmt.Errorf("it nests deeper than %d", maxDepth)
	}
	switch b.major() {
	case majorBytes, majorText:
		if n > uint64(len(rest)) {
			return nil, nil, errShort
		}
		rest = rest[n:]
	case majorMap, majorList, majorTag:
		items := n
		switch b.major() {
		case majorMap:
			if n > math.MaxUint64/2 {
				return nil, nil, errShort
			}
			items = 2 * n
		case majorTag:
			items = 1
		}
		for ; items > 0; items-- {
			if _, rest, err = rest.skip(depth + 1); err != nil {
				return nil, nil, err
			}
		}
	}
	return b[:len(b)-len(rest)], rest, nil
}

// object calls f with each key and its value.
func (b item) object(f func(key string, v item) error) error {
	if b.major() != majorMap {
		return errKind
	}
	n, rest, err := b.head()
	for ; err == nil && n > 0; n-- {
		var key, value item
		if key, rest, err = rest.skip(0); err != nil {
			break
		}
		if value, rest, err = rest.skip(0); err != nil {
			break
		}
		name, kind := key.text()
		if kind != nil {
			return kind
		}
		err = f(name, value)
	}
	return err
}

// list calls f with each element and says how many there were.
func (b item) list(f func(i int, v item) error) (int, error) {
	if b.major() != majorList {
		return 0, errKind
	}
	n, rest, err := b.head()
	if err != nil {
		return 0, err
	}
	if n > uint64(len(rest)) { // an element has a byte at least
		return 0, errShort
	}
	for i := range int(n) {
		var v item
		if v, rest, err = rest.skip(0); err != nil {
			return 0, err
		}
		if err := f(i, v); err != nil {
			return 0, err
		}
	}
	return int(n), nil
}

// tag is the number of a tag and what it is on.
func (b item) tag() (uint64, item, error) { return b.head() }

func (b item) bytes() ([]byte, error) { return b.stringOf(majorBytes) }

func (b item) text() (string, error) {
	s, err := b.stringOf(majorText)
	return string(s), err
}

func (b item) stringOf(major byte) ([]byte, error) {
	if b.major() != major {
		return nil, errKind
	}
	n, rest, err := b.head()
	if err != nil {
		return nil, err
	}
	if n != uint64(len(rest)) {
		return nil, errShort
	}
	return rest, nil
}

func (b item) int() (int64, error) {
	n, _, err := b.head()
	switch {
	case err != nil:
		return 0, err
	case b.major() > majorNint || n > math.MaxInt64:
		return 0, errKind
	case b.major() == majorNint:
		return -1 - int64(n), nil
	}
	return int64(n), nil
}
