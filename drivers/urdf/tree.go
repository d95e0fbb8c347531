package urdf

import (
	"fmt"
	"strings"
)

// connect checks that the links form one tree and puts parents before children.
func (r *Robot) connect() error {
	if len(r.Links) == 0 {
		return fmt.Errorf("urdf: robot %q has no links", r.Name)
	}
	above := map[string]string{} // child link -> joint
	for _, j := range r.Joints {
		for _, l := range []string{j.Parent, j.Child} {
			if r.Link(l) == nil {
				return fmt.Errorf("urdf: joint %q: there is no link %q", j.Name, l)
			}
		}
		if j.Parent == j.Child {
			return fmt.Errorf("urdf: joint %q connects link %q to itself", j.Name, j.Child)
		}
		if other, twice := above[j.Child]; twice {
			return fmt.Errorf("urdf: link %q is the child of two joints, %q and %q", j.Child, other, j.Name)
		}
		above[j.Child] = j.Name
	}
	var roots []string
	for _, l := range r.Links {
		if above[l.Name] == "" {
			roots = append(roots, l.Name)
		}
	}
	switch {
	case len(roots) == 0:
		return fmt.Errorf("urdf: robot %q: the joints form a cycle, there is no root link", r.Name)
	case len(roots) > 1:
		return fmt.Errorf("urdf: robot %q has %d root links (%s); there must be one", r.Name, len(roots), strings.Join(roots, ", "))
	}
	r.Root = roots[0]
	if err := r.sortJoints(); err != nil {
		return err
	}
	return r.checkMimics()
}

func (r *Robot) sortJoints() error {
	below := map[string][]Joint{}
	for _, j := range r.Joints {
		below[j.Parent] = append(below[j.Parent], j)
	}
	sorted := make([]Joint, 0, len(r.Joints))
	for queue := []string{r.Root}; len(queue) > 0; queue = queue[1:] {
		for _, j := range below[queue[0]] {
			sorted = append(sorted, j)
			queue = append(queue, j.Child)
		}
	}
	if len(sorted) < len(r.Joints) {
		for _, j := range r.Joints {
			if !contains(sorted, j.Name) {
				return fmt.Errorf("urdf: joint %q is part of a cycle that does not reach the root link %q", j.Name, r.Root)
			}
		}
	}
	r.Joints = sorted
	return nil
}

func contains(js []Joint, name string) bool {
	for _, j := range js {
		if j.Name == name {
			return true
		}
	}
	return false
}

func (r *Robot) checkMimics() error {
	for _, j := range r.Joints {
		if j.Mimic == nil {
			continue
		}
		m := r.Joint(j.Mimic.Joint)
		switch {
		case m == nil || m.Type == Fixed:
			return fmt.Errorf("urdf: joint %q mimics %q, which is no moving joint", j.Name, j.Mimic.Joint)
		case m.Mimic != nil:
			return fmt.Errorf("urdf: joint %q mimics %q, which itself mimics %q; name the leader", j.Name, m.Name, m.Mimic.Joint)
		}
	}
	return nil
}
