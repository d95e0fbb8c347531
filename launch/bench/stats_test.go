package main

import (
	"math"
	"slices"
	"testing"
	"time"
)

// Nearest rank, by counting instead of sorting: the least value that p percent of all are not above.
func TestPercentileIsTheNearestRank(t *testing.T) {
	s := series{7, 1, 5, 3, 9, 2, 8, 4, 6, 10, 11}
	before := slices.Clone(s)
	for p := 0.0; p <= 100; p += 0.5 {
		want := math.Inf(1)
		for _, x := range s {
			below := 0
			for _, y := range s {
				if y <= x {
					below++
				}
			}
			if 100*float64(below) >= p*float64(len(s)) {
				want = math.Min(want, x)
			}
		}
		if got := s.percentile(p); got != want {
			t.Errorf("p%g of 1..11 is %g, want %g", p, got, want)
		}
	}
	if !slices.Equal(s, before) {
		t.Error("the measurements were put into another order")
	}
}

func TestPercentilesOfKnownSeries(t *testing.T) {
	var hundred series
	for i := 100; i >= 1; i-- {
		hundred = append(hundred, float64(i))
	}
	for _, c := range []struct {
		s       series
		p, want float64
	}{{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred, 0, 1}, {hundred[:40], 99, 100}, {series{3}, 99, 3}} {
		if got := c.s.percentile(c.p); got != c.want {
			t.Errorf("p%g of %d values is %g, want %g", c.p, len(c.s), got, c.want)
		}
	}
	if x := (series{}).percentile(50); !math.IsNaN(x) {
		t.Errorf("p50 of nothing is %g", x)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		s    series
		want float64
	}{{series{3, 1, 2}, 2}, {series{4, 1, 3, 2}, 2.5}, {series{5}, 5}} {
		if got := c.s.median(); got != c.want {
			t.Errorf("median of %v is %g, want %g", c.s, got, c.want)
		}
	}
	if x := (series{}).median(); !math.IsNaN(x) {
		t.Errorf("median of nothing is %g", x)
	}
}

func TestTimesAreMilliseconds(t *testing.T) {
	var s series
	s.addTime(1500 * time.Microsecond)
	if s[0] != 1.5 {
		t.Errorf("1500 µs is kept as %g", s[0])
	}
}
