package wire

import "math"

// speedSlack is what measured speeds may be off by, rad/s.
const speedSlack = 0.05

// fastest is the range of speeds that the control box allows joint j at q, rad/s.
type fastest func(j int, q float64) (least, most float64)

// fastFR3 is Franka's own bound of an FR3: the nearer to an end, the slower towards it.
func fastFR3(j int, q float64) (least, most float64) {
	v := [7]float64{2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26}[j]
	o := [7]float64{0.30, 0.20, 0.20, 0.30, 0.35, 0.35, 0.35}[j]
	c := [7]float64{12, 5.17, 7, 8, 34, 11, 34}[j]
	lo := [7]float64{-2.7501, -1.7918, -2.9065, -3.0481, -2.8101, 0.54092, -3.0196}[j]
	hi := [7]float64{2.7501, 1.7918, 2.9065, -0.1458, 2.8101, 4.5205, 3.0196}[j]
	bound := func(way float64) float64 { return min(v, max(0, math.Sqrt(c*max(0, way))-o)) }
	return -bound(q - lo), bound(hi - q)
}

func fastPanda(j int, _ float64) (least, most float64) {
	v := 2.175
	if j >= 4 {
		v = 2.61
	}
	return -v, v
}

// hurries says whether a joint is faster than the control box lets it. The caller holds mu.
func (a *arm) hurries() bool {
	for j, v := range a.v {
		if least, most := a.build.fast(j, a.q[j]); v < least-speedSlack || v > most+speedSlack {
			return true
		}
	}
	return false
}
