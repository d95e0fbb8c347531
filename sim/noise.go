package sim

// Noise is a hash of what it belongs to, not a stream: it is the same however often and in whatever order
// it is asked for.

// mix is splitmix64's finaliser over three words.
func mix(a, b, c uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 ^ b*0xbf58476d1ce4e5b9 ^ c*0x94d049bb133111eb
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// uniform is in [0, 1).
func uniform(a, b, c uint64) float64 { return float64(mix(a, b, c)>>11) / (1 << 53) }

// gauss has zero mean and unit deviation; it never exceeds 3.5.
func gauss(a, b, c uint64) float64 {
	x := mix(a, b, c)
	// Four uniforms of 16 bits: variance 4/12, so the sum is scaled by sqrt(3).
	s := float64(x&0xffff) + float64(x>>16&0xffff) + float64(x>>32&0xffff) + float64(x>>48)
	return (s/65536 - 2) * 1.7320508075688772
}
