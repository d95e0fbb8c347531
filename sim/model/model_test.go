package model

import "testing"

func TestSameSpecSameBytes(t *testing.T) {
	for _, r := range Robots {
		for _, w := range Worlds {
			a, err := Build(Spec{Robot: r, World: w, Seed: 7})
			if err != nil {
				t.Fatal(err)
			}
			b, err := Build(Spec{Robot: r, World: w, Seed: 7})
			if err != nil {
				t.Fatal(err)
			}
			if a.XML != b.XML {
				t.Errorf("%s in %s: two builds of one seed differ", r, w)
			}
		}
	}
}
