package model

import (
	"testing"

	"viad/sim/mj"
)

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		if _, err := Build(Spec{Robot: "stretch4", World: "room", Seed: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	m, err := Build(Spec{Robot: "stretch4", World: "room", Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x, err := mj.Load(m.XML)
		if err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
}

func BenchmarkStep(b *testing.B) {
	for _, s := range []Spec{{Robot: "fr3", World: "tabletop"}, {Robot: "stretch4", World: "room"}} {
		b.Run(s.Robot+" "+s.World, func(b *testing.B) {
			m, err := Build(s)
			if err != nil {
				b.Fatal(err)
			}
			x, err := mj.Load(m.XML)
			if err != nil {
				b.Fatal(err)
			}
			defer x.Close()
			d, err := x.NewData()
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			for b.Loop() {
				if err := d.Step(1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
