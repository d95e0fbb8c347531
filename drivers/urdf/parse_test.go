package urdf

import (
	"math"
	"strings"
	"testing"
)

const small = `<?xml version="1.0"?>
<robot name="r">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="a"><inertial><mass value="1"/></inertial>
    <visual><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>
    <collision><origin xyz="0 0 1" rpy="0 1 0"/><geometry><capsule radius="0.1" length="0.5"/></geometry></collision>
  </link>
  <link name="b"><visual><geometry><sphere radius="0.2"/></geometry><material name=""><color rgba="0 0 1 0.5"/></material></visual></link>
  <link name="c"/>
  <joint name="bc" type="prismatic"><parent link="b"/><child link="c"/><axis xyz="0 0 2"/>
    <limit lower="0" upper="1" velocity="0.3" effort="5"/><mimic joint="ab" multiplier="-2" offset="0.5"/></joint>
  <joint name="ab" type="continuous"><origin xyz="1 0 0"/><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
</robot>`

func TestParse(t *testing.T) {
	r, err := Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if r.Root != "a" || r.Joints[0].Name != "ab" {
		t.Errorf("root %q, first joint %q; parents come before children", r.Root, r.Joints[0].Name)
	}
	if v := r.Link("a").Visuals[0]; v.Kind != Box || v.Size.Z != 3 || v.Color != (Color{1, 0, 0, 1}) {
		t.Errorf("visual of a: %+v", v)
	}
	if v := r.Link("b").Visuals[0]; v.Color != (Color{0, 0, 1, 0.5}) {
		t.Errorf("colour written in place: %v", v.Color)
	}
	if c := r.Link("a").Collisions[0]; c.Kind != Capsule || c.Radius != 0.1 || c.Length != 0.5 || c.Origin.RPY.Y != 1 {
		t.Errorf("collision of a: %+v", c)
	}
	bc := r.Joint("bc")
	if bc.Axis.Z != 1 || *bc.Mimic != (Mimic{"ab", -2, 0.5}) || bc.Velocity != 0.3 || bc.Effort != 5 {
		t.Errorf("joint bc: %+v mimic %+v", bc, bc.Mimic)
	}
	if ab := r.Joint("ab"); !math.IsInf(ab.Upper, 1) || !math.IsInf(ab.Lower, -1) {
		t.Errorf("a continuous joint has limits %v..%v", ab.Lower, ab.Upper)
	}
}

// Every refusal names the element and the value.
func TestRefusals(t *testing.T) {
	for what, c := range map[string]struct{ from, to, want string }{
		"NaN":               {`size="1 2 3"`, `size="1 NaN 3"`, `link "a" > visual > geometry > box: size="1 NaN 3": "NaN" is not a finite number`},
		"infinite":          {`xyz="1 0 0"`, `xyz="1e999 0 0"`, `joint "ab" > origin: xyz="1e999 0 0": "1e999" is not a finite number`},
		"negative size":     {`size="1 2 3"`, `size="1 -2 3"`, `box: size="1 -2 3": every edge must be over 0`},
		"zero radius":       {`sphere radius="0.2"`, `sphere radius="0"`, `sphere: radius="0" must be over 0`},
		"two numbers":       {`size="1 2 3"`, `size="1 2"`, `has 2 numbers; wanted 3`},
		"mesh":              {`<box size="1 2 3"/>`, `<mesh filename="x.stl"/>`, `mesh: meshes are not read`},
		"two shapes":        {`<box size="1 2 3"/>`, `<box size="1 2 3"/><box size="1 2 3"/>`, `one <geometry> with one shape`},
		"unknown shape":     {`<box size="1 2 3"/>`, `<cone radius="1"/>`, `cone: unknown shape`},
		"unknown element":   {`<link name="c"/>`, `<link name="c"><sensor/></link>`, `link "c": <sensor> is not read here`},
		"unknown material":  {`<material name="red"/>`, `<material name="pink"/>`, `material "pink"`},
		"colour over 1":     {`rgba="1 0 0 1"`, `rgba="255 0 0 1"`, `255 is outside 0..1`},
		"no such link":      {`<child link="c"/>`, `<child link="d"/>`, `joint "bc": there is no link "d"`},
		"no child":          {`<child link="c"/>`, ``, `joint "bc": has no <child>`},
		"two roots":         {`<link name="c"/>`, `<link name="c"/><link name="d"/>`, `has 2 root links (a, d)`},
		"two parents":       {`<parent link="b"/><child link="c"/>`, `<parent link="c"/><child link="b"/>`, `link "b" is the child of two joints`},
		"self":              {`<parent link="b"/>`, `<parent link="c"/>`, `joint "bc" connects link "c" to itself`},
		"same link twice":   {`<link name="c"/>`, `<link name="c"/><link name="c"/>`, `link "c": a second link of this name`},
		"same joint twice":  {`name="bc"`, `name="ab"`, `joint "ab": a second joint of this name`},
		"limits crossed":    {`lower="0" upper="1"`, `lower="2" upper="1"`, `limit: lower=2 must be under upper=1`},
		"negative speed":    {`velocity="0.3"`, `velocity="-0.3"`, `velocity=-0.3`},
		"no limit":          {`<limit lower="0" upper="1" velocity="0.3" effort="5"/>`, ``, `a prismatic joint must have a <limit>`},
		"floating joint":    {`type="prismatic"`, `type="floating"`, `type="floating" is not read`},
		"axis of no length": {`xyz="0 0 2"`, `xyz="0 0 0"`, `xyz="0 0 0" has no direction`},
		"mimic of nothing":  {`mimic joint="ab"`, `mimic joint="zz"`, `mimics "zz", which is no moving joint`},
		"mimic of itself":   {`mimic joint="ab"`, `mimic joint="bc"`, `mimics "bc", which itself mimics`},
		"not closed":        {`</robot>`, ``, `unexpected EOF`},
		"no name":           {`<robot name="r">`, `<robot>`, `attribute "name" is missing`},
		"attribute twice":   {`<link name="c"/>`, `<link name="c" name="d"/>`, `twice`},
	} {
		doc := strings.Replace(small, c.from, c.to, 1)
		if doc == small {
			t.Fatalf("%s: nothing replaced", what)
		}
		_, err := Parse([]byte(doc))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwanted %s", what, err, c.want)
		}
	}
}

func TestNotARobot(t *testing.T) {
	for doc, want := range map[string]string{
		`<sdf name="x"/>`: `the document element must be <robot>`, ``: `the document is empty`,
		`<robot name="r"/>`: `has no links`, `<robot name="r"><link name="a"/></robot><robot name="s"/>`: `a second document element`,
	} {
		if _, err := Parse([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; wanted %s", doc, err, want)
		}
	}
}

func TestCycleBesideATree(t *testing.T) {
	_, err := Parse([]byte(`<robot name="r"><link name="a"/><link name="b"/><link name="c"/>
		<joint name="1" type="fixed"><parent link="b"/><child link="c"/></joint>
		<joint name="2" type="fixed"><parent link="c"/><child link="b"/></joint></robot>`))
	if err == nil || !strings.Contains(err.Error(), `joint "1" is part of a cycle`) {
		t.Error(err)
	}
	_, err = Parse([]byte(`<robot name="r"><link name="b"/><link name="c"/>
		<joint name="1" type="fixed"><parent link="b"/><child link="c"/></joint>
		<joint name="2" type="fixed"><parent link="c"/><child link="b"/></joint></robot>`))
	if err == nil || !strings.Contains(err.Error(), "there is no root link") {
		t.Error(err)
	}
}

// What parses is a tree with finite numbers, whatever the bytes were.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(`<robot name="r"><link name="a"/></robot>`))
	f.Add([]byte(`<robot name="r"/>`))
	f.Add([]byte(`<robot name="r"><link name="a"><visual><geometry><cylinder radius="1e-300" length="1"/></geometry></visual></link></robot>`))
	f.Add([]byte(strings.Repeat("<robot>", 40)))
	for _, n := range Names() {
		b, err := models.ReadFile("models/" + n + ".urdf")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:len(b)/3])
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		r, err := Parse(doc)
		if err != nil {
			return
		}
		if len(r.Joints) != len(r.Links)-1 {
			t.Fatalf("%d links and %d joints are no tree", len(r.Links), len(r.Joints))
		}
		seen := map[string]bool{r.Root: true}
		for _, j := range r.Joints {
			if !seen[j.Parent] || seen[j.Child] {
				t.Fatalf("joint %q is out of order", j.Name)
			}
			seen[j.Child] = true
			for _, v := range []float64{j.Origin.XYZ.X, j.Origin.RPY.Z, j.Axis.X, j.Velocity, j.Effort} {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("joint %q holds %v", j.Name, v)
				}
			}
		}
	})
}
