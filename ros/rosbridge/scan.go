package rosbridge

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep what comes may nest; ROS messages stay under ten.
const maxDepth = 64

var errShort = errors.New("it ends in the middle")

// scanner walks over JSON once, without making anything of what it passes over.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek is the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.i >= len(s.b) {
		return 0
	}
	return s.b[s.i]
}

func (s *scanner) want(c byte) error {
	got := s.peek()
	if got == 0 {
		return errShort
	}
	if got != c {
		return fmt.Errorf("byte %d is %q where %q belongs", s.i, got, c)
	}
	s.i++
	return nil
}

// more says whether another element of a list or an object follows, after the opening bracket or after an element.
func (s *scanner) more(closing byte, first bool) (bool, error) {
	switch c := s.peek(); {
	case c == 0:
		return false, errShort
	case c == closing:
		s.i++
		return false, nil
	case first:
		return true, nil
	case c == ',':
		s.i++
		if s.peek() == closing {
			return false, fmt.Errorf("byte %d is %q after a comma", s.i, closing)
		}
		return true, nil
	default:
		return false, fmt.Errorf("byte %d is %q where a comma belongs", s.i, c)
	}
}

// rawString is what stands between the quotes, and whether it has escapes.
func (s *scanner) rawString() (raw []byte, escaped bool, err error) {
	if err := s.want('"'); err != nil {
		return nil, false, err
	}
	from := s.i
	for {
		end := bytes.IndexByte(s.b[s.i:], '"')
		if end < 0 {
			return nil, false, errShort
		}
		end += s.i
		back := 0
		for back < end-from && s.b[end-1-back] == '\\' {
			back++
		}
		s.i = end + 1
		if back%2 == 0 {
			raw = s.b[from:end]
			return raw, bytes.IndexByte(raw, '\\') >= 0, nil
		}
	}
}

// str is a string value.
func (s *scanner) str() (string, error) {
	raw, escaped, err := s.rawString()
	if err != nil || !escaped {
		return string(raw), err
	}
	return unescape(raw)
}

func unescape(raw []byte) (string, error) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if i >= len(raw) {
			return "", errShort
		}
		const plain, meant = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
		if at := bytes.IndexByte([]byte(plain), raw[i]); at >= 0 {
			out = append(out, meant[at])
			continue
		}
		if raw[i] != 'u' {
			return "", fmt.Errorf("the escape \\%c is not JSON", raw[i])
		}
		r, err := hex4(raw[i+1:])
		if err != nil {
			return "", err
		}
		i += 4
		if utf16.IsSurrogate(r) {
			low := rune(utf8.RuneError)
			if i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if l, err := hex4(raw[i+3:]); err == nil {
					low = l
				}
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out), nil
}

func hex4(b []byte) (rune, error) {
	if len(b) < 4 {
		return 0, errShort
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return 0, fmt.Errorf("\\u%s is not an escape", b[:4])
	}
	return rune(n), nil
}

// word is a number, true, false, null, or what is none of them: everything up to the next delimiter.
func (s *scanner) word() ([]byte, error) {
	s.space()
	from := s.i
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', ']', '}', ' ', '\t', '\n', '\r', ':', '"', '[', '{':
			if s.i == from {
				return nil, fmt.Errorf("byte %d is %q where a value belongs", s.i, s.b[s.i])
			}
			return s.b[from:s.i], nil
		}
		s.i++
	}
	if s.i == from {
		return nil, errShort
	}
	return s.b[from:], nil
}

// skip passes over one value and returns the bytes of it. Words are not looked at: who reads the value does.
func (s *scanner) skip() ([]byte, error) {
	s.space()
	from := s.i
	depth := 0
	for {
		switch s.peek() {
		case 0:
			return nil, errShort
		case '{', '[':
			if depth++; depth > maxDepth {
				return nil, fmt.Errorf("it nests deeper than %d", maxDepth)
			}
			s.i++
		case '}', ']':
			if depth--; depth < 0 {
				return nil, fmt.Errorf("byte %d closes what was not opened", s.i)
			}
			s.i++
		case ',', ':':
			if depth == 0 {
				return nil, fmt.Errorf("byte %d is %q where a value belongs", s.i, s.b[s.i])
			}
			s.i++
		case '"':
			if _, _, err := s.rawString(); err != nil {
				return nil, err
			}
		default:
			if _, err := s.word(); err != nil {
				return nil, err
			}
		}
		if depth == 0 {
			return s.b[from:s.i], nil
		}
	}
}

// object calls f with each key; f reads the value.
func (s *scanner) object(f func(key []byte) error) error {
	if err := s.want('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.more('}', first)
		if err != nil || !more {
			return err
		}
		key, escaped, err := s.rawString()
		if err != nil {
			return err
		}
		if escaped {
			k, err := unescape(key)
			if err != nil {
				return err
			}
			key = []byte(k)
		}
		if err := s.want(':'); err != nil {
			return err
		}
		if err := f(key); err != nil {
			return err
		}
	}
}

// end says what stands after the value, if anything does.
func (s *scanner) end() error {
	if c := s.peek(); c != 0 {
		return fmt.Errorf("byte %d is %q after the end", s.i, c)
	}
	return nil
}
