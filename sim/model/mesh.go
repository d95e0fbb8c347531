package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/spatial/r3"
)

// Looks are meshes drawn from a few numbers in the fragments: lathe turns a profile about z, loft
// skins rounded rectangles stacked along z, pipe sweeps a circle along a curve. They are closed, so
// that MuJoCo accepts them, and only seen: nothing collides with a mesh.

const (
	around = 36 // vertices of a full turn
	crease = 0.75
)

// mesh is an indexed triangle surface, counter-clockwise seen from outside.
type mesh struct {
	v []r3.Vec
	f [][3]int
}

func (m *mesh) quad(a, b, c, d int) { m.f = append(m.f, [3]int{a, b, c}, [3]int{a, c, d}) }

// rings joins closed rings of equal count, listed along the surface with their first and last closed
// by a fan. A ring runs counter-clockwise seen against the direction of travel.
func rings(rs [][]r3.Vec) *mesh {
	m := &mesh{}
	n := len(rs[0])
	for _, r := range rs {
		m.v = append(m.v, r...)
	}
	for k := 0; k+1 < len(rs); k++ {
		for i := range n {
			j := (i + 1) % n
			m.quad(k*n+i, k*n+j, (k+1)*n+j, (k+1)*n+i)
		}
	}
	m.fan(rs[0], 0, true)
	m.fan(rs[len(rs)-1], (len(rs)-1)*n, false)
	return m
}

func (m *mesh) fan(ring []r3.Vec, first int, flip bool) {
	var mid r3.Vec
	for _, p := range ring {
		mid = r3.Add(mid, r3.Scale(1/float64(len(ring)), p))
	}
	c := len(m.v)
	m.v = append(m.v, mid)
	for i := range ring {
		a, b := first+i, first+(i+1)%len(ring)
		if flip {
			a, b = b, a
		}
		m.f = append(m.f, [3]int{a, b, c})
	}
}

// asset is the <mesh> element, with normals smoothed over edges less sharp than the crease.
func (m *mesh) asset(name string) string {
	fn := make([]r3.Vec, len(m.f)) // area-weighted
	byVertex := make([][]int, len(m.v))
	for i, f := range m.f {
		fn[i] = r3.Cross(r3.Sub(m.v[f[1]], m.v[f[0]]), r3.Sub(m.v[f[2]], m.v[f[0]]))
		if r3.Norm(fn[i]) < 1e-12 {
			continue // a triangle of no area bends nothing
		}
		for _, v := range f {
			byVertex[v] = append(byVertex[v], i)
		}
	}
	var vs, ns, fs []byte
	seen := map[[6]int32]int{}
	for i, f := range m.f {
		if r3.Norm(fn[i]) < 1e-12 {
			continue
		}
		for _, v := range f {
			n := smooth(i, byVertex[v], fn)
			p := m.v[v]
			key := [6]int32{
				int32(math.Round(p.X * 1e6)), int32(math.Round(p.Y * 1e6)), int32(math.Round(p.Z * 1e6)),
				int32(math.Round(n.X * 1e3)), int32(math.Round(n.Y * 1e3)), int32(math.Round(n.Z * 1e3)),
			}
			id, ok := seen[key]
			if !ok {
				id = len(seen)
				seen[key] = id
				for k := range 3 {
					vs = append(strconv.AppendFloat(vs, float64(key[k])/1e6, 'g', -1, 64), ' ')
					ns = append(strconv.AppendFloat(ns, float64(key[3+k])/1e3, 'g', -1, 64), ' ')
				}
			}
			fs = append(strconv.AppendInt(fs, int64(id), 10), ' ')
		}
	}
	return fmt.Sprintf("<mesh name=%q vertex=\"%s\" normal=\"%s\" face=\"%s\"/>", name, vs, ns, fs)
}

// smooth is a vertex's normal on face i: the mean over the vertex's faces that lie nearly as face i does.
func smooth(i int, faces []int, fn []r3.Vec) r3.Vec {
	var n r3.Vec
	u := r3.Unit(fn[i])
	for _, k := range faces {
		if r3.Dot(fn[k], u) > crease*r3.Norm(fn[k]) {
			n = r3.Add(n, fn[k])
		}
	}
	return r3.Unit(n)
}

// lathe turns a profile of "radius z [fillet]" points, from the lower end to the upper, about z. A profile
// that does not start or end at radius zero is closed by a flat cap.
func lathe(name, profile string) (string, error) {
	rows, err := table(profile, 2, 3)
	if err != nil {
		return "", fmt.Errorf("lathe %s: %w", name, err)
	}
	pts := make([][3]float64, len(rows))
	for i, r := range rows {
		pts[i] = [3]float64{r[0], r[1], r[2]}
	}
	var rs [][]r3.Vec
	for _, p := range fillet(pts) {
		r := math.Max(p[0], 1e-5)
		ring := make([]r3.Vec, around)
		for i := range ring {
			s, c := math.Sincos(2 * math.Pi * float64(i) / around)
			ring[i] = r3.Vec{X: r * c, Y: r * s, Z: p[1]}
		}
		rs = append(rs, ring)
	}
	return rings(rs).asset(name), nil
}

// fillet rounds the corners of a profile; the third number of a point is the length cut off each edge.
func fillet(pts [][3]float64) [][2]float64 {
	var out [][2]float64
	for i, p := range pts {
		if p[2] == 0 || i == 0 || i == len(pts)-1 {
			out = append(out, [2]float64{p[0], p[1]})
			continue
		}
		a, b := toward(p, pts[i-1]), toward(p, pts[i+1])
		const n = 6
		for k := range n + 1 {
			t := float64(k) / n
			u, v, w := (1-t)*(1-t), 2*t*(1-t), t*t
			out = append(out, [2]float64{u*a[0] + v*p[0] + w*b[0], u*a[1] + v*p[1] + w*b[1]})
		}
	}
	return out
}

func toward(p, q [3]float64) [2]float64 {
	l := math.Hypot(q[0]-p[0], q[1]-p[1])
	t := math.Min(p[2]/l, 0.5)
	return [2]float64{p[0] + t*(q[0]-p[0]), p[1] + t*(q[1]-p[1])}
}

// loft skins sections "z halfx halfy power [x y]": superellipses (power 2 round, 4 rounded rectangle,
// 10 nearly square) centred at x, y, listed with rising z.
func loft(name, sections string) (string, error) {
	rows, err := table(sections, 4, 6)
	if err != nil {
		return "", fmt.Errorf("loft %s: %w", name, err)
	}
	var rs [][]r3.Vec
	for _, s := range rows {
		ring := superellipse(s[1], s[2], s[3])
		for i := range ring {
			ring[i] = r3.Add(ring[i], r3.Vec{X: s[4], Y: s[5], Z: s[0]})
		}
		rs = append(rs, ring)
	}
	return rings(rs).asset(name), nil
}

// superellipse is a ring of half axes a and b with its points where it bends and where it is long.
func superellipse(a, b, p float64) []r3.Vec {
	const fine = 16 * around
	at := func(i int) r3.Vec {
		sn, cs := math.Sincos(2 * math.Pi * float64(i) / fine)
		return r3.Vec{X: a * power(cs, 2/p), Y: b * power(sn, 2/p)}
	}
	along := make([]float64, fine+1) // length and turn so far
	scale := 1 / (4 * (a + b))
	last := r3.Vec{Y: 1}
	for i := 1; i <= fine; i++ {
		d := r3.Sub(at(i), at(i-1))
		l := r3.Norm(d)
		along[i] = along[i-1] + l*scale
		if l > 1e-12 {
			d = r3.Scale(1/l, d)
			along[i] += math.Acos(math.Min(1, r3.Dot(d, last))) / (2 * math.Pi)
			last = d
		}
	}
	ring := make([]r3.Vec, around)
	k := 0
	for i := range ring {
		for along[k] < along[fine]*float64(i)/around {
			k++
		}
		ring[i] = at(k)
	}
	return ring
}

func power(x, e float64) float64 { return math.Copysign(math.Pow(math.Abs(x), e), x) }

// pipe sweeps a circle through points "x y z radius" along a smooth curve.
func pipe(name, points string) (string, error) {
	rows, err := table(points, 4, 4)
	if err != nil {
		return "", fmt.Errorf("pipe %s: %w", name, err)
	}
	const sub = 5
	var centre []r3.Vec
	var radius []float64
	for i := 0; i+1 < len(rows); i++ {
		p0, p1, p2, p3 := rows[max(i-1, 0)], rows[i], rows[i+1], rows[min(i+2, len(rows)-1)]
		for k := range sub {
			q := catmull(p0, p1, p2, p3, float64(k)/sub)
			centre, radius = append(centre, r3.Vec{X: q[0], Y: q[1], Z: q[2]}), append(radius, q[3])
		}
	}
	last := rows[len(rows)-1]
	centre, radius = append(centre, r3.Vec{X: last[0], Y: last[1], Z: last[2]}), append(radius, last[3])
	var rs [][]r3.Vec
	side := r3.Vec{X: 1, Y: 0.01}
	for i, c := range centre {
		d := r3.Unit(r3.Sub(centre[min(i+1, len(centre)-1)], centre[max(i-1, 0)]))
		u := r3.Unit(r3.Sub(side, r3.Scale(r3.Dot(side, d), d)))
		v := r3.Cross(d, u)
		side = u
		ring := make([]r3.Vec, around)
		for k := range ring {
			sn, cs := math.Sincos(2 * math.Pi * float64(k) / around)
			ring[k] = r3.Add(c, r3.Add(r3.Scale(radius[i]*cs, u), r3.Scale(radius[i]*sn, v)))
		}
		rs = append(rs, ring)
	}
	return rings(rs).asset(name), nil
}

func catmull(p0, p1, p2, p3 [6]float64, t float64) [4]float64 {
	var out [4]float64
	for i := range out {
		a, b, c, d := p0[i], p1[i], p2[i], p3[i]
		out[i] = 0.5 * (2*b + (c-a)*t + (2*a-5*b+4*c-d)*t*t + (3*b-a-3*c+d)*t*t*t)
	}
	return out
}

// table reads rows of numbers separated by semicolons; missing trailing numbers are zero.
func table(s string, least, most int) ([][6]float64, error) {
	var out [][6]float64
	for _, line := range strings.Split(s, ";") {
		f := strings.Fields(line)
		if len(f) < least || len(f) > most {
			return nil, fmt.Errorf("row %q has %d numbers; wanted %d to %d", line, len(f), least, most)
		}
		var row [6]float64
		for i, x := range f {
			v, err := strconv.ParseFloat(x, 64)
			if err != nil {
				return nil, fmt.Errorf("row %q: %w", line, err)
			}
			row[i] = v
		}
		out = append(out, row)
	}
	return out, nil
}
