package interop

import (
	"testing"

	"viad/ros"
	"viad/ros/dds"
)

const nodeName = "/viad_interop"

// node is our node, on this host alone, that knows of no distribution.
func node(t *testing.T, domain int, changes ...func(*dds.Config)) ros.Node {
	t.Helper()
	c := dds.Config{Node: "viad_interop", Domain: domain, Localhost: true}
	for _, change := range changes {
		change(&c)
	}
	n, err := dds.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, n.Close()) })
	return n
}
