package hello

import (
	"encoding/binary"
	"errors"
	"math"
)

// errNumber is a status with a number that is none.
var errNumber = errors.New("a number in the answer is not finite")

// reader takes little-endian numbers from the front of a reply whose length was checked.
type reader struct {
	b   []byte
	bad bool // a float was not finite
}

func (r *reader) take(n int) []byte {
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *reader) f32() float64 { return r.finite(float64(math.Float32frombits(r.u32()))) }
func (r *reader) f64() float64 { return r.finite(math.Float64frombits(r.u64())) }

// loose is a float that matters to nobody's motion and may be anything.
func (r *reader) loose() float64 { return float64(math.Float32frombits(r.u32())) }

func (r *reader) finite(x float64) float64 {
	if x-x != 0 {
		r.bad = true
	}
	return x
}

func putFloat(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
}
