package tool

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
)

// quoteHuge turns number literals that no float64 can hold, like 1e400, into strings. encoding/json gives
// up on the whole message over one of them, and the client would get a protocol error with Go's words; as a
// string it reaches the argument check, which names the parameter and its range.
func quoteHuge(b []byte) []byte {
	var out []byte
	last := 0
	for i := 0; i < len(b); {
		switch ch := b[i]; {
		case ch == '"':
			i = stringEnd(b, i)
		case ch == '-' || ch >= '0' && ch <= '9':
			end := i + 1
			for end < len(b) && bytes.IndexByte([]byte("0123456789+-.eE"), b[end]) >= 0 {
				end++
			}
			if huge(b[i:end]) {
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

// huge reports a well-formed number that overflows.
func huge(lit []byte) bool {
	if len(lit) < 4 {
		return false
	}
	v, err := strconv.ParseFloat(string(lit), 64)
	return err != nil && v-v != 0
}

// lines applies quoteHuge to each line of a stream.
type lines struct {
	r    *bufio.Reader
	rest []byte
	err  error
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReader(r)} }

// Read gives the next bytes of the stream.
func (l *lines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 && l.err == nil {
		var line []byte
		line, l.err = l.r.ReadBytes('\n')
		l.rest = quoteHuge(line)
	}
	if len(l.rest) == 0 {
		return 0, l.err
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
