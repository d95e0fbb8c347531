package rtps

import (
	"encoding/binary"
	"math"
	"net/netip"
	"time"
)

// Parameters, by id.
const (
	pidSentinel         = 0x01
	pidLease            = 0x02
	pidTopic            = 0x05
	pidType             = 0x07
	pidDomain           = 0x0f
	pidProtocol         = 0x15
	pidVendor           = 0x16
	pidReliability      = 0x1a
	pidLiveliness       = 0x1b
	pidDurability       = 0x1d
	pidOwnership        = 0x1f
	pidDeadline         = 0x23
	pidPartition        = 0x29
	pidLifespan         = 0x2b
	pidUserData         = 0x2c
	pidUnicast          = 0x2f
	pidDefaultUnicast   = 0x31
	pidMetaUnicast      = 0x32
	pidHistory          = 0x40
	pidParticipantGUID  = 0x50
	pidBuiltinEndpoints = 0x58
	pidEndpointGUID     = 0x5a
	pidEntityName       = 0x62
	pidKeyHash          = 0x70
	pidStatusInfo       = 0x71
	pidRepresentation   = 0x73
	pidRelated          = 0x83
	pidRelatedEprosima  = 0x800f // what Fast DDS before 3 sends and obeys, in place of 0x83
)

const (
	statusDisposed     = 1
	statusUnregistered = 2
)

// forever is an infinite duration on the wire.
var forever = wireTime{0x7fffffff, 0xffffffff}

// plist is a parameter list in the making, in little endian.
type plist struct{ message }

func newPlist() *plist { return &plist{message{[]byte{0, 3, 0, 0}}} }

func (l *plist) raw(id uint16, v []byte) {
	n := (len(v) + 3) &^ 3
	l.u16(id)
	l.u16(uint16(n))
	l.b = append(l.b, v...)
	for i := len(v); i < n; i++ {
		l.b = append(l.b, 0)
	}
}

func (l *plist) words(id uint16, vs ...uint32) {
	l.u16(id)
	l.u16(uint16(4 * len(vs)))
	for _, v := range vs {
		l.u32(v)
	}
}

func (l *plist) text(id uint16, s string) {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(s)+1))
	l.raw(id, append(append(b, s...), 0))
}

func (l *plist) userData(v []byte) {
	l.raw(pidUserData, append(binary.LittleEndian.AppendUint32(nil, uint32(len(v))), v...))
}

func (l *plist) locator(id uint16, a netip.AddrPort) {
	b := binary.LittleEndian.AppendUint32(nil, 1)
	b = binary.LittleEndian.AppendUint32(b, uint32(a.Port()))
	b = append(b, make([]byte, 12)...)
	ip := a.Addr().As4()
	l.raw(id, append(b, ip[:]...))
}

func (l *plist) duration(id uint16, d time.Duration) {
	w := durationToWire(d)
	l.words(id, w.sec, w.frac)
}

func (l *plist) done() []byte {
	l.u16(pidSentinel)
	l.u16(0)
	return l.b
}

// durationToWire takes 0 as infinite, as QoS does.
func durationToWire(d time.Duration) wireTime {
	if d <= 0 || d/time.Second >= math.MaxInt32 {
		return forever
	}
	return wireTime{uint32(d / time.Second), uint32(uint64(d%time.Second) << 32 / 1e9)}
}

// wireToDuration gives 0 for infinite. A duration that is none at all is the shortest there is.
func wireToDuration(o order, v []byte) (time.Duration, bool) {
	if len(v) < 8 {
		return 0, false
	}
	sec, frac := int32(o.u32(v)), o.u32(v[4:])
	if sec == math.MaxInt32 {
		return 0, true
	}
	if sec < 0 {
		return 0, false
	}
	d := time.Duration(sec)*time.Second + time.Duration((uint64(frac)*1e9+1<<31)>>32)
	return max(d, 1), true
}

// walk calls f for each parameter of a list without its header; n is how many bytes the list took, -1 when it is
// malformed. At most 4096 parameters are looked at.
func walk(o order, b []byte, f func(id uint16, v []byte)) (n int) {
	for range 4096 {
		if n+4 > len(b) {
			return -1
		}
		id, size := o.u16(b[n:]), int(o.u16(b[n+2:]))
		n += 4
		if id == pidSentinel {
			return n
		}
		if n+size > len(b) {
			return -1
		}
		f(id, b[n:n+size])
		n += size
	}
	return -1
}

// walkPayload is walk for a list as a payload, with its CDR header.
func walkPayload(b []byte, f func(o order, id uint16, v []byte)) bool {
	if len(b) < 4 || b[0] != 0 || b[1] != 2 && b[1] != 3 {
		return false
	}
	o := order(b[1] == 3)
	return walk(o, b[4:], func(id uint16, v []byte) { f(o, id, v) }) >= 0
}

// readLocator gives the address of an IPv4 UDP locator.
func readLocator(o order, v []byte) (netip.AddrPort, bool) {
	if len(v) < 24 || o.u32(v) != 1 {
		return netip.AddrPort{}, false
	}
	port := o.u32(v[4:])
	ip := netip.AddrFrom4([4]byte(v[20:24]))
	if port == 0 || port > 65535 || ip.IsUnspecified() || ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip, uint16(port)), true
}

// longestText bounds names of topics, types and people's names.
const longestText = 1024

func readText(o order, v []byte) string {
	if len(v) < 4 {
		return ""
	}
	n := o.u32(v)
	if n < 1 || uint64(n) > uint64(len(v)-4) || n > longestText {
		return ""
	}
	v = v[4 : 4+n]
	if v[n-1] == 0 {
		v = v[:n-1]
	}
	return string(v)
}

// readOctets copies at most 4096 bytes.
func readOctets(o order, v []byte) []byte {
	if len(v) < 4 {
		return nil
	}
	n := o.u32(v)
	if uint64(n) > uint64(len(v)-4) || n > 4096 {
		return nil
	}
	return append([]byte(nil), v[4:4+n]...)
}
