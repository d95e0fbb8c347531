package main

import (
	"math"
	"slices"
	"time"
)

// series is measurements of one thing, in the order in which they were taken. The unit is its owner's.
type series []float64

// addTime appends a duration in milliseconds.
func (s *series) addTime(d time.Duration) { *s = append(*s, float64(d)/float64(time.Millisecond)) }

// percentile is the nearest rank: the least measurement that at least p percent are not above. NaN when there are none.
func (s series) percentile(p float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(math.Ceil(p / 100 * float64(len(s))))
	return sorted[min(max(rank, 1), len(s))-1]
}

// median is the middle, or the mean of the two middle ones. NaN when there are none.
func (s series) median() float64 {
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
