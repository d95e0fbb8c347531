package rtps

import (
	"encoding/hex"
	"fmt"
)

// Entity ids that the specification fixes: the participant and the endpoints of discovery.
var (
	entityParticipant = EntityID{0, 0, 1, 0xc1}
	entitySPDPWriter  = EntityID{0, 1, 0, 0xc2}
	entitySPDPReader  = EntityID{0, 1, 0, 0xc7}
	entityPubWriter   = EntityID{0, 0, 3, 0xc2}
	entityPubReader   = EntityID{0, 0, 3, 0xc7}
	entitySubWriter   = EntityID{0, 0, 4, 0xc2}
	entitySubReader   = EntityID{0, 0, 4, 0xc7}
	entityLiveWriter  = EntityID{0, 2, 0, 0xc2}
	entityLiveReader  = EntityID{0, 2, 0, 0xc7}
)

// The kinds of endpoints whose topics have no key, which is what ROS makes: the last byte of their entity ids.
const (
	kindWriter = 0x03
	kindReader = 0x04
)

// Vendors that ROS 2's usual middlewares announce.
var (
	VendorFastDDS = VendorID{0x01, 0x0f}
	VendorCyclone = VendorID{0x01, 0x10}
)

// String names the vendor if it is a known one.
func (v VendorID) String() string {
	switch v {
	case VendorFastDDS:
		return "eProsima Fast DDS"
	case VendorCyclone:
		return "Eclipse Cyclone DDS"
	case VendorID{0x01, 0x01}:
		return "RTI Connext"
	case VendorID{}:
		return "unnamed"
	}
	return fmt.Sprintf("vendor %02x%02x", v[0], v[1])
}

// Prefix is the participant that the endpoint belongs to.
func (g GUID) Prefix() GUIDPrefix { return GUIDPrefix(g[:12]) }

// Entity is the endpoint's name within its participant.
func (g GUID) Entity() EntityID { return EntityID(g[12:]) }

// String is the form that DDS tools print: prefix|entity, in hex.
func (g GUID) String() string { return hex.EncodeToString(g[:12]) + "|" + hex.EncodeToString(g[12:]) }

// String is the prefix in hex.
func (p GUIDPrefix) String() string { return hex.EncodeToString(p[:]) }

// GUID names an entity of the participant.
func (p GUIDPrefix) GUID(e EntityID) (g GUID) {
	copy(g[:], p[:])
	copy(g[12:], e[:])
	return g
}
