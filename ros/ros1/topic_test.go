package ros1

import (
	"fmt"
	"strings"
	"testing"

	"viad/ros"
)

func TestTopicsWithRostopic(t *testing.T) {
	c := startCore(t)
	needs(t, "rostopic")
	n := c.node(t, "viad")

	got, sub := hear(t, n, "/theirs", ros.Default())
	c.run(t, "rostopic", "pub", "-r", "20", "/theirs", "std_msgs/String", "data: 'grüß Gott'")
	if s := take(t, got, "what rostopic pub says"); s != "grüß Gott" {
		t.Errorf("heard %q", s)
	}
	if sub.Publishers() != 1 {
		t.Errorf("%d publishers, want rostopic", sub.Publishers())
	}

	ours := advertise(t, n, "/ours", ros.Default())
	echo := c.run(t, "rostopic", "echo", "/ours")
	if err := ours.Ready(ready(t), 1); err != nil {
		t.Fatal(err)
	}
	say(t, ours, "good day")
	echo.wants(t, `data: "good day"`)

	latched := advertise(t, n, "/latched", ros.Latched())
	say(t, latched, "old")
	say(t, latched, "new")
	c.run(t, "rostopic", "echo", "-n", "1", "/latched").wants(t, `data: "new"`)
	c.run(t, "rostopic", "info", "/ours").wants(t, "Type: std_msgs/String")
}

// A publisher that is killed is noticed, and its successor is heard.
func TestPeerKilled(t *testing.T) {
	c := startCore(t)
	needs(t, "rostopic")
	n := c.node(t, "viad")
	got, sub := hear(t, n, "/theirs", ros.QoS{Depth: 1})
	for i := range 3 {
		word := fmt.Sprint("number", i)
		p := c.run(t, "rostopic", "pub", "-r", "50", "/theirs", "std_msgs/String", word)
		for take(t, got, word) != word {
		}
		p.kill()
		gone := sub.(*subscription)
		for change := gone.f.changes(); sub.Publishers() != 0; change = gone.f.changes() {
			take(t, change, "the killed publisher to be gone")
		}
	}
	g, err := n.Graph(ready(t))
	if err != nil {
		t.Fatal(err)
	}
	if p := strings.Join(g.Problems, "\n"); !strings.Contains(p, "/theirs") {
		t.Errorf("the master still lists the killed publishers, and the graph's problems do not: %q", p)
	}
}

// Two types under one name are a sentence for both sides.
func TestOtherType(t *testing.T) {
	c := startCore(t)
	needs(t, "rostopic")
	n := c.node(t, "viad")
	_, sub := hear(t, n, "/theirs", ros.Default())
	c.run(t, "rostopic", "pub", "-r", "20", "/theirs", "std_msgs/Int32", "7")
	f := sub.(*subscription).f
	for change := f.changes(); len(f.troubles()) == 0; change = f.changes() {
		take(t, change, "the mismatch")
	}
	if s := f.troubles()[0]; !strings.Contains(s, "Int32") && !strings.Contains(s, "checksum") && !strings.Contains(s, "md5") {
		t.Errorf("the mismatch reads %q", s)
	}
}
