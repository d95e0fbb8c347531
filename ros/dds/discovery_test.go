package dds

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"viad/ros/rtps"
)

func guid(n byte) (g rtps.GUID) {
	for i := range g {
		g[i] = n + byte(i)
	}
	return g
}

func someNodes() entities {
	return entities{participant: guid(1), nodes: []nodeEntities{
		{namespace: "/", name: "viad", readers: []rtps.GUID{guid(2), guid(3)}},
		{namespace: "/lab", name: "robot", writers: []rtps.GUID{guid(4)}},
	}}
}

// The bytes of one node without endpoints, put down by hand from the message's definition.
func TestNodesOnTheWire(t *testing.T) {
	e := entities{participant: guid(0), nodes: []nodeEntities{{namespace: "/", name: "go"}}}
	const gid = "000102030405060708090a0b0c0d0e0f"
	rest := "01000000" + "02000000" + "2f00" + "0000" + "03000000" + "676f00" + "00" + "00000000" + "00000000"
	for length, want := range map[int]string{gidIron: "00010000" + gid + rest, gidHumble: "00010000" + gid + "0000000000000000" + rest} {
		if got := hex.EncodeToString(e.marshal(length)); got != want {
			t.Errorf("gids of %d bytes:\n got %s\nwant %s", length, got, want)
		}
	}
}

func TestLayoutIsLearnt(t *testing.T) {
	for _, e := range []entities{someNodes(), {participant: guid(1)}} {
		for _, length := range []int{gidHumble, gidIron} {
			b := e.marshal(length)
			got, learnt, err := parseEntities(b)
			if err != nil || learnt != length || got.participant != e.participant || len(got.nodes) != len(e.nodes) {
				t.Fatalf("gids of %d bytes are read as %d: %+v, %v", length, learnt, got, err)
			}
			for i, n := range got.nodes {
				if w := e.nodes[i]; n.full() != w.full() || !slices.Equal(n.readers, w.readers) || !slices.Equal(n.writers, w.writers) {
					t.Errorf("node %d is %+v, want %+v", i, n, w)
				}
			}
			for cut := range len(b) {
				if _, learnt, err := parseEntities(b[:cut]); err == nil && learnt == length {
					t.Errorf("%d of %d bytes were believed", cut, len(b))
				}
			}
			if _, _, err := parseEntities(append(bytes.Clone(b), 0, 0, 0, 0)); err == nil {
				t.Error("bytes that were left over were believed")
			}
		}
	}
}

func TestNames(t *testing.T) {
	for ros, dds := range map[string]string{"sensor_msgs/msg/Image": "sensor_msgs::msg::dds_::Image_", "std_srvs/srv/Trigger_Request": "std_srvs::srv::dds_::Trigger_Request_"} {
		if got, err := ddsType(ros); err != nil || got != dds || rosType(got) != ros {
			t.Errorf("%s is %s, %v; back %s", ros, got, err, rosType(got))
		}
	}
	for _, bad := range []string{"", "x", "/", "/a/", "/a//b", "/1a", "/a b", "/ä", "/a/-"} {
		if checkName(bad) == nil {
			t.Errorf("%q is taken for a name", bad)
		}
	}
	for _, good := range []string{"/a", "/a_1/B2", "/_hidden/x"} {
		if err := checkName(good); err != nil {
			t.Error(err)
		}
	}
	if got := userData([]byte("serviceid=1.2.ff;typehash=RIHS01_00;\x00"), "typehash"); got != "RIHS01_00" {
		t.Errorf("user data: %q", got)
	}
	if got := dotted([16]byte{0, 1, 0xab}); got != "0.1.ab.0.0.0.0.0.0.0.0.0.0.0.0.0" {
		t.Errorf("an id is written %s", got)
	}
	if name, ok := half("rq/a/bRequest", "rq", "Request"); !ok || name != "/a/b" {
		t.Errorf("half: %s %v", name, ok)
	}
}

func FuzzEntities(f *testing.F) {
	e := someNodes()
	f.Add(e.marshal(gidHumble))
	f.Add(e.marshal(gidIron))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, length, err := parseEntities(b)
		if err != nil || length == 0 || b[1] != 1 {
			return
		}
		if again, _, err := parseEntities(e.marshal(length)); err != nil || len(again.nodes) != len(e.nodes) {
			t.Errorf("what was read is not read again: %+v, %v", e, err)
		}
	})
}
