// Package cdr writes and reads the payloads of ROS 2 messages: XCDR version 1, plain (OMG DDSI-RTPS 2.5, 10.2 and 10.5).
// A payload begins with a four byte header that names the byte order (00 01 little, 00 00 big, then two option bytes);
// every primitive is aligned to its own size, counted from the byte behind that header; a string is a uint32 length that
// counts its final NUL, the bytes and the NUL; a sequence is a uint32 count and its elements; a structure without fields
// is one zero byte. Writers here write little endian, readers take both.
//
// Errors stick: after the first one a Writer gives out nothing and a Reader reads nothing more, and Err says where it went
// wrong. A Reader never trusts a length: what is announced must fit into what is there before anything is made for it.
//
// What comes behind the last field is left alone (padding, or fields of a newer release); Remaining tells. A field that
// is missing is an error, because a zero would look like a value; only fields which a definition marks as absent in older
// releases may be missing, at the very end of a payload (see Reader.End).
//
// Not supported: long double, which no ROS message has, and parameterised or XCDR version 2 encodings.
package cdr

// Distro is a ROS 2 distribution. A few messages have another layout in another distribution under the same type name,
// which no wire reveals, so that a codec must be told.
type Distro uint8

// The distributions that are told apart. Rolling is treated as the newest.
const (
	DistroUnknown Distro = iota
	Humble
	Iron
	Jazzy
)

// String is the distribution's name as ROS_DISTRO has it.
func (d Distro) String() string {
	switch d {
	case Humble:
		return "humble"
	case Iron:
		return "iron"
	case Jazzy:
		return "jazzy"
	default:
		return "unknown"
	}
}

// ParseDistro is the distribution of that name; rolling and what came after Jazzy count as Jazzy, "" is DistroUnknown.
func ParseDistro(name string) (Distro, bool) {
	switch name {
	case "", "unknown":
		return DistroUnknown, true
	case "humble":
		return Humble, true
	case "iron":
		return Iron, true
	case "jazzy", "kilted", "rolling":
		return Jazzy, true
	default:
		return DistroUnknown, false
	}
}
