package hello

import (
	"errors"
	"fmt"
)

// Bounds of a frame: what goes over the wire without its zero, and what is left of it inside.
const (
	frameMost = 64 // bytes of COBS, the zero at the end included
	crcSize   = 2
	blockMost = frameMost - 1 - 1 - crcSize // content: without the zero, the one COBS byte and the CRC
)

// What a frame can be wrong in.
var (
	errLong  = errors.New("frame is longer than a board sends")
	errShort = errors.New("frame is too short")
	errCOBS  = errors.New("frame is cut: its COBS code points past its end")
	errCRC   = errors.New("CRC does not match")
)

// crc16 is the one of Modbus.
func crc16(b []byte) uint16 {
	crc := uint16(0xffff)
	for _, x := range b {
		crc ^= uint16(x)
		for range 8 {
			odd := crc & 1
			crc >>= 1
			if odd != 0 {
				crc ^= 0xa001
			}
		}
	}
	return crc
}

// frame wraps content: CRC, high byte first, then COBS, then the zero that ends it.
func frame(content []byte) ([]byte, error) {
	if n := len(content); n < 1 || n > blockMost {
		return nil, fmt.Errorf("hello: a frame carries 1 to %d bytes, not %d", blockMost, n)
	}
	crc := crc16(content)
	raw := append(append(make([]byte, 0, frameMost), content...), byte(crc>>8), byte(crc))
	out := make([]byte, 1, frameMost)
	code := 0 // where the running code byte is
	for _, x := range raw {
		if x != 0 {
			out = append(out, x)
			continue
		}
		out[code] = byte(len(out) - code)
		code = len(out)
		out = append(out, 0)
	}
	out[code] = byte(len(out) - code)
	return append(out, 0), nil
}

// unframe is the content of a frame, given without its zero.
func unframe(wire []byte) ([]byte, error) {
	switch n := len(wire); {
	case n >= frameMost:
		return nil, errLong
	case n < 1+1+crcSize:
		return nil, errShort
	}
	raw := make([]byte, 0, len(wire))
	for i := 0; i < len(wire); {
		code := int(wire[i])
		if code == 0 || i+code > len(wire) {
			return nil, errCOBS
		}
		raw = append(raw, wire[i+1:i+code]...)
		if i += code; i < len(wire) {
			raw = append(raw, 0)
		}
	}
	n := len(raw) - crcSize
	if n < 1 {
		return nil, errShort
	}
	if crc16(raw[:n]) != uint16(raw[n])<<8|uint16(raw[n+1]) {
		return nil, errCRC
	}
	return raw[:n], nil
}
