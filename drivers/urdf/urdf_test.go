package urdf

import "testing"

func TestLoad(t *testing.T) {
	for _, n := range Names() {
		r, err := Load(n)
		if err != nil {
			t.Fatal(err)
		}
		if r.Name != n || r.Link("tool") == nil {
			t.Errorf("%s: name %q, tool %v", n, r.Name, r.Link("tool"))
		}
	}
}
