package dds

import (
	"encoding/binary"
	"errors"

	"viad/ros/rtps"
)

// The two lengths of a Gid in ros_discovery_info: the message changed between Humble and Iron, under the same type name.
const (
	gidHumble = 24
	gidIron   = 16
)

// Bounds of what one ros_discovery_info may hold.
const (
	maxNodes    = 1024
	maxGids     = 8192
	maxEntities = 1 << 20 // bytes of the whole
)

// nodeEntities is one node of a participant and its endpoints.
type nodeEntities struct {
	namespace, name  string
	readers, writers []rtps.GUID
}

// full is the node's full name.
func (n *nodeEntities) full() string { return fullName(n.namespace, n.name) }

func fullName(namespace, name string) string {
	if namespace == "" || namespace == "/" {
		return "/" + name
	}
	return namespace + "/" + name
}

// entities is one message of ros_discovery_info: what a participant's nodes are.
type entities struct {
	participant rtps.GUID
	nodes       []nodeEntities
}

// marshal writes the message with gids of that length.
func (e *entities) marshal(gidLen int) []byte {
	b := []byte{0, 1, 0, 0}
	count := func(n int) {
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(n)) //nolint:gosec // small
	}
	gid := func(g rtps.GUID) { b = append(append(b, g[:]...), make([]byte, gidLen-len(g))...) }
	text := func(s string) { count(len(s) + 1); b = append(append(b, s...), 0) }
	gid(e.participant)
	count(len(e.nodes))
	for _, n := range e.nodes {
		text(n.namespace)
		text(n.name)
		for _, list := range [][]rtps.GUID{n.readers, n.writers} {
			count(len(list))
			for _, g := range list {
				gid(g)
			}
		}
	}
	return b
}

var errDiscovery = errors.New("ros_discovery_info has neither Humble's layout nor that of later distributions")

// parseEntities reads a message whose gid length is not known: only a reading that uses up all bytes is believed, and
// only when the other length does not do so too (length 0 then: nothing can be learnt, and the first reading is taken).
func parseEntities(payload []byte) (e entities, gidLen int, err error) {
	humble, okHumble := parseWith(payload, gidHumble)
	iron, okIron := parseWith(payload, gidIron)
	switch {
	case okHumble && okIron:
		return iron, 0, nil
	case okHumble:
		return humble, gidHumble, nil
	case okIron:
		return iron, gidIron, nil
	}
	return entities{}, 0, errDiscovery
}

func parseWith(payload []byte, gidLen int) (e entities, ok bool) {
	if len(payload) < 4 || payload[0] != 0 || payload[1] > 1 {
		return e, false
	}
	c := cursor{b: payload[4:], order: binary.LittleEndian}
	if payload[1] == 0 {
		c.order = binary.BigEndian
	}
	e.participant = c.gid(gidLen)
	for range c.count(maxNodes) {
		n := nodeEntities{namespace: c.text(), name: c.text()}
		n.readers, n.writers = c.gids(gidLen), c.gids(gidLen)
		if c.bad {
			return e, false
		}
		e.nodes = append(e.nodes, n)
	}
	return e, !c.bad && c.at == len(c.b)
}

// cursor reads forward; after the first mistake it is bad and reads zeros.
type cursor struct {
	b     []byte
	at    int
	order binary.ByteOrder
	bad   bool
}

func (c *cursor) take(n int) []byte {
	if c.bad || n < 0 || n > len(c.b)-c.at {
		c.bad = true
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

func (c *cursor) count(limit int) int {
	c.at = min((c.at+3)&^3, len(c.b))
	b := c.take(4)
	if b == nil {
		return 0
	}
	n := c.order.Uint32(b)
	if uint64(n) > uint64(limit) {
		c.bad = true
		return 0
	}
	return int(n)
}

func (c *cursor) text() string {
	b := c.take(c.count(257)) // names are bounded to 256 bytes, and the NUL
	if len(b) == 0 || b[len(b)-1] != 0 {
		c.bad = true
		return ""
	}
	return string(b[:len(b)-1])
}

// gid reads a gid; what is behind the GUID must be zeros.
func (c *cursor) gid(length int) (g rtps.GUID) {
	b := c.take(length)
	if b == nil {
		return g
	}
	copy(g[:], b)
	for _, x := range b[len(g):] {
		if x != 0 {
			c.bad = true
		}
	}
	return g
}

func (c *cursor) gids(length int) []rtps.GUID {
	n := c.count(maxGids)
	if c.bad || n > (len(c.b)-c.at)/length {
		c.bad = true
		return nil
	}
	out := make([]rtps.GUID, n)
	for i := range out {
		out[i] = c.gid(length)
	}
	return out
}
