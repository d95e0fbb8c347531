package ros1

import (
	"context"
	"strings"
	"testing"
	"time"

	"viad/ros"
)

// The master is killed and started again, empty: our node comes back with all it has, and connections never broke.
func TestMasterRestart(t *testing.T) {
	c := startCore(t)
	needs(t, "rostopic", "rosservice")
	n, other := c.node(t, "viad"), c.node(t, "other")
	link := linkOf(t, n)
	link(true)
	got, _ := hear(t, n, "/words", ros.Default())
	o := advertise(t, other, "/words", ros.Default())
	if err := o.Ready(ready(t), 1); err != nil {
		t.Fatal(err)
	}
	say(t, o, "before")
	take(t, got, "before")

	c.kill()
	if l := link(false); l.Why == "" {
		t.Error("the link is down without a reason")
	}
	say(t, o, "while it is away")
	if s := take(t, got, "a message without a master"); s != "while it is away" {
		t.Errorf("heard %q", s)
	}
	late := advertise(t, n, "/made/meanwhile", ros.Latched()) // registered when the master is back
	say(t, late, "hello")

	c.start(t)
	link(true)
	c.run(t, "rostopic", "echo", "-n", "1", "/made/meanwhile").wants(t, "hello")
	c.run(t, "rostopic", "pub", "-1", "/words", "std_msgs/String", "from a newcomer")
	for take(t, got, "a newcomer") != "from a newcomer" {
	}
}

// A second node of our name: the master sends the first away, which says so and stays away.
func TestNameTaken(t *testing.T) {
	c := startCore(t)
	first := c.node(t, "viad")
	link := linkOf(t, first)
	link(true)
	second := c.node(t, "viad")
	if l := link(false); l.Why == "" {
		t.Error("no reason")
	}
	time.Sleep(300 * time.Millisecond) // several looks of the first
	if l := second.links.state(); !l.Up {
		t.Errorf("the second node is sent away in turn: %s", l.Why)
	}
}

func TestParam(t *testing.T) {
	c := startCore(t)
	n, err := Dial(ready(t), Config{Master: "http://" + c.addr() + "/", Name: "viad", Log: quiet()}) // its address is found out
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if v, err := n.Param(ready(t), "/rosdistro"); err == nil || v != "" {
		t.Logf("rosdistro is %q, %v", v, err) // roscore writes it, in its own time
	}
	if _, err := n.ParamFloat(ready(t), "/nothing"); err == nil || !strings.Contains(err.Error(), "not set") {
		t.Errorf("a parameter that is not there: %v", err)
	}
}

func TestNoMaster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for _, host := range []string{"", "127.0.0.1"} {
		if n, err := Dial(ctx, Config{Master: "127.0.0.1:9", Name: "/viad", Host: host, Log: quiet()}); err == nil {
			_ = n.Close()
			t.Error("dialled nothing")
		}
	}
	for _, bad := range []Config{{Master: "nonsense", Name: "/viad"}, {Name: "/a b"}, {Name: "/a&b"}, {Name: "/"}} {
		if n, err := Dial(ctx, bad); err == nil {
			_ = n.Close()
			t.Errorf("dialled %+v", bad)
		}
	}
}
