package model

import (
	"encoding/xml"
	"math"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/num/quat"
	"gonum.org/v1/gonum/spatial/r3"

	"viad/drivers/geom"
	"viad/drivers/urdf"
)

// element is any XML element.
type element struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Kids    []element  `xml:",any"`
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e element) floats(t *testing.T, name string) []float64 {
	t.Helper()
	var out []float64
	for _, f := range strings.Fields(e.attr(name)) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func (e element) walk(do func(element)) {
	do(e)
	for _, k := range e.Kids {
		k.walk(do)
	}
}

// outside is how far a point of a link is outside the link's collision shapes.
func outside(l *urdf.Link, p r3.Vec) float64 {
	least := math.Inf(1)
	for _, c := range l.Collisions {
		half := r3.Vec{Z: c.Length / 2}
		at := originPose(c.Origin)
		least = math.Min(least, geom.Capsule{A: at.Point(half), B: at.Point(r3.Scale(-1, half)), R: c.Radius}.Dist(p))
	}
	return least
}

// The collision capsules are tight and whole: no seen mesh of a link reaches far out of that link's
// capsules, so that clearance holds for what is seen and a self-filter finds the robot's own points.
func TestCapsulesCoverLooks(t *testing.T) {
	for _, robot := range Robots {
		m, err := Build(Spec{Robot: robot, World: "room"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := urdf.Load(m.URDF)
		if err != nil {
			t.Fatal(err)
		}
		var doc element
		if err := xml.Unmarshal([]byte(m.XML), &doc); err != nil {
			t.Fatal(err)
		}
		verts := map[string][]float64{}
		doc.walk(func(e element) {
			if e.XMLName.Local == "mesh" {
				verts[e.attr("name")] = e.floats(t, "vertex")
			}
		})
		doc.walk(func(e element) {
			l := r.Link(e.attr("name"))
			if e.XMLName.Local != "body" || l == nil {
				return
			}
			for _, g := range e.Kids {
				v := verts[g.attr("mesh")]
				if g.attr("class") != "see" || v == nil {
					continue
				}
				at := geom.Identity()
				if p := g.floats(t, "pos"); p != nil {
					at.P = r3.Vec{X: p[0], Y: p[1], Z: p[2]}
				}
				if q := g.floats(t, "quat"); q != nil {
					at.R = geom.Normalize(quat.Number{Real: q[0], Imag: q[1], Jmag: q[2], Kmag: q[3]})
				}
				worst, where := 0.0, r3.Vec{}
				for i := 0; i < len(v); i += 3 {
					p := at.Point(r3.Vec{X: v[i], Y: v[i+1], Z: v[i+2]})
					if d := outside(l, p); d > worst {
						worst, where = d, p
					}
				}
				if worst > 0.020 {
					t.Errorf("%s %s: mesh %s reaches %.4f m out of the capsules at %.3v", robot, l.Name, g.attr("mesh"), worst, where)
				}
			}
		})
	}
}
