package ros1

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
)

// What a peer may send at most: a header is a few kilobytes (the text of a type), a frame one message.
const (
	maxHeader = 1 << 20
	maxFrame  = 128 << 20
	chunk     = 1 << 20 // memory for a frame grows with what has come, not with what is announced
)

// conn is a TCPROS connection.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func newConn(c net.Conn) *conn {
	if t, ok := c.(*net.TCPConn); ok {
		// The other side's machine may go without a word. An error here means a socket that is already dead.
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3})
		_ = t.SetNoDelay(true)
	}
	return &conn{Conn: c, r: bufio.NewReaderSize(c, 64<<10)}
}

// readHeader reads the connection header. goroslib's reader is given it only when its length is in and is believable.
func (c *conn) readHeader(within time.Duration) (protocommon.HeaderRaw, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	b, err := c.r.Peek(4)
	if err != nil {
		return nil, err
	}
	if n := binary.LittleEndian.Uint32(b); n > maxHeader {
		return nil, fmt.Errorf("a connection header of %d bytes is announced, more than %d are not read", n, maxHeader)
	}
	h, err := protocommon.HeaderRawDecode(c.r)
	if err != nil {
		return nil, err
	}
	return h, c.SetReadDeadline(time.Time{})
}

func (c *conn) writeHeader(h protocommon.Header, within time.Duration) error {
	if err := c.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if err := protocommon.HeaderEncode(c.Conn, h); err != nil {
		return err
	}
	return c.SetWriteDeadline(time.Time{})
}

// readFrame reads a length and as many bytes, into memory of its own.
func (c *conn) readFrame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n > maxFrame {
		return nil, fmt.Errorf("a message of %d bytes is announced, more than %d are not read", n, maxFrame)
	}
	b := make([]byte, min(n, chunk))
	for have := 0; ; {
		if _, err := io.ReadFull(c.r, b[have:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if have = len(b); have == n {
			return b, nil
		}
		more := make([]byte, min(n, 2*have))
		copy(more, b)
		b = more
	}
}

// frame is a length and a payload that fill appends.
func frame(fill func([]byte) ([]byte, error)) ([]byte, error) {
	b, err := fill(make([]byte, 4, 256))
	if err != nil {
		return nil, err
	}
	if len(b)-4 > maxFrame {
		return nil, fmt.Errorf("a message of %d bytes is longer than %d", len(b)-4, maxFrame)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	return b, nil
}

// refusal is the header that answers a connection which is not wanted.
type refusal struct{ Error string }

// checks says in words why two ends do not fit, or "".
func checks(what string, mine signature, h protocommon.HeaderRaw) string {
	md5, name := h["md5sum"], h["type"]
	if md5 == mine.md5 {
		return ""
	}
	if name != "" && name != "*" && name != mine.name { // though the checksum be any
		return fmt.Sprintf("%s is %s here and %s there", what, mine.name, name)
	}
	if md5 == "*" {
		return ""
	}
	return fmt.Sprintf("%s: %s has the checksum %s here and %s there; the two sides have other versions of the type",
		what, mine.name, mine.md5, md5)
}

// shake writes our header and reads theirs.
func (n *Node) shake(c *conn, ours protocommon.Header) (protocommon.HeaderRaw, error) {
	if err := c.writeHeader(ours, n.config.Timeout); err != nil {
		return nil, err
	}
	h, err := c.readHeader(n.config.Timeout)
	if err != nil {
		return nil, fmt.Errorf("no answer to the connection header: %w", err)
	}
	if why, bad := h["error"]; bad {
		return nil, fmt.Errorf("the other side refuses: %s", why)
	}
	return h, nil
}
