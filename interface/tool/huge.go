package tool

import (
	"bytes"
	"strconv"
)

// quoteOdd turns numbers that JSON or float64 cannot hold, like NaN (as Python writes it) and 1e400, into
// strings. encoding/json gives up on the whole message over one of them, and the client would get a protocol
// error with Go's words; as a string it reaches the argument check, which names the parameter and its range.
func quoteOdd(b []byte) []byte {
	var out []byte
	last := 0
	for i := 0; i < len(b); {
		switch ch := b[i]; {
		case ch == '"':
			i = stringEnd(b, i)
		case ch == 'N' || ch == 'I' || ch == '-' || ch >= '0' && ch <= '9':
			end := i + max(1, unreal(b[i:]))
			for end < len(b) && bytes.IndexByte([]byte("0123456789+-.eE"), b[end]) >= 0 {
				end++
			}
			if unreal(b[i:end]) > 0 || huge(b[i:end]) {
				out = append(out, b[last:i]...)
				out = append(append(append(out, '"'), b[i:end]...), '"')
				last = end
			}
			i = end
		default:
			i++
		}
	}
	if last == 0 {
		return b
	}
	return append(out, b[last:]...)
}

// stringEnd is the index after the string that begins at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// unreal is the length of a number that is none at the start of b, 0 when there is none.
func unreal(b []byte) int {
	for _, w := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(w)) {
			return len(w)
		}
	}
	return 0
}

// huge reports a well-formed number that overflows.
func huge(lit []byte) bool {
	if len(lit) < 4 {
		return false
	}
	v, err := strconv.ParseFloat(string(lit), 64)
	return err != nil && v-v != 0
}
