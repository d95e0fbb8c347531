package launch

import (
	"strings"
	"testing"
	"time"

	"viad/interface/operator"
)

// people gives a launch file one token per name; the role is the name's first word.
func people(t *testing.T, names ...string) (func(*Config), map[string]string) {
	t.Helper()
	tokens := map[string]string{}
	var list []Token
	for _, n := range names {
		token, hash, err := NewToken()
		if err != nil {
			t.Fatal(err)
		}
		tokens[n] = token
		list = append(list, Token{Name: n, Role: strings.Fields(n)[0], Hash: hash})
	}
	return func(c *Config) { c.Tokens = Tokens{List: list} }, tokens
}

// One driver at a time; watchers look on, anybody stops, and an operator takes the seat away.
func TestSeat(t *testing.T) {
	change, tokens := people(t, "driver ann", "driver ben", "operator olga", "watcher will", "watcher wendy")
	d := start(t, "twin-franka.yaml", change)
	who := map[string]*agent{}
	for n, token := range tokens {
		who[n] = connect(t, d.MCP(), token)
	}
	holds := func(name string) {
		t.Helper()
		if got := d.ask(operator.OpStatus).Status.Seat; got != name {
			t.Fatalf("%q has the seat, want %q", got, name)
		}
	}
	down := map[string]any{"d_z": -0.05}
	who["driver ann"].must("gripper_translate", down)
	holds("driver ann")
	who["driver ben"].refused(`"driver ann" is driving`, "gripper_translate", down)
	for _, n := range []string{"watcher will", "watcher wendy", "driver ben"} {
		who[n].must("screenshot", nil)
		who[n].must("stop", nil)
	}
	holds("driver ann")

	// From the operator's tool: nobody drives until the seat is freed, or whom the operator names.
	if a := d.ask(operator.OpTakeOver); !a.OK || !strings.Contains(a.Note, "taken from driver ann; stopped, confirmed") {
		t.Fatalf("%+v", a)
	}
	for _, n := range []string{"driver ann", "driver ben", "operator olga"} {
		who[n].refused(`"(operator)" is driving`, "gripper_translate", down)
	}
	if a := d.ask(operator.OpFree); !a.OK || !strings.Contains(a.Note, "(operator) had it") {
		t.Fatalf("%+v", a)
	}
	who["driver ben"].must("screenshot", nil) // looking takes nothing
	holds("")
	if a := d.send(operator.Request{Op: operator.OpTakeOver, Name: "driver ben"}); !a.OK {
		t.Fatalf("%+v", a)
	}
	// What ann has staged is not ben's to execute.
	who["driver ben"].refused("nothing to do", "execute_waypoint", nil)
	who["driver ben"].must("gripper_translate", down)
	who["driver ann"].refused(`"driver ben" is driving`, "execute_waypoint", nil)
	for _, n := range []string{"watcher will", "nobody", "(operator)"} {
		if a := d.send(operator.Request{Op: operator.OpTakeOver, Name: n}); a.OK || !strings.Contains(a.Error, "no driver is called") || !strings.Contains(a.Error, "driver ann") {
			t.Errorf("%s: %+v", n, a)
		}
	}
	holds("driver ben")
	who["driver ben"].must("end_episode", nil)
	holds("")
	who["driver ann"].must("gripper_translate", down)
	holds("driver ann")
}

// The seat is freed by the silence that the launch file sets; looking on keeps it.
func TestSilenceFreesTheSeat(t *testing.T) {
	change, tokens := people(t, "driver ann", "driver ben")
	d := start(t, "twin-franka.yaml", func(c *Config) {
		change(c)
		c.SeatSilence = Duration(20 * time.Second)
	})
	wait := func(s time.Duration) { // on the twin's clock, which runs while somebody waits
		tick := d.rig.clock.Ticker(100 * time.Millisecond)
		defer tick.Stop()
		for end := d.rig.clock.Now().Add(s); d.rig.clock.Now().Before(end); {
			<-tick.C()
		}
	}
	ann, ben := connect(t, d.MCP(), tokens["driver ann"]), connect(t, d.MCP(), tokens["driver ben"])
	down := map[string]any{"d_z": -0.02}
	ann.must("gripper_translate", down)
	for range 2 {
		wait(15 * time.Second)
		ann.must("gripper_get_pose", nil)
	}
	ben.refused(`"driver ann" is driving`, "gripper_translate", down)
	wait(21 * time.Second)
	if s := d.ask(operator.OpStatus).Status; s.Seat != "" {
		t.Fatalf("%q has the seat", s.Seat)
	}
	ben.refused("nothing to do", "execute_waypoint", nil) // what ann left is not ben's
	ben.must("gripper_translate", down)
	ann.refused(`"driver ben" is driving`, "gripper_translate", down)
}

// A take-over in the middle of a motion stops it, and the new driver finds nothing staged.
func TestTakeOverStopsAMotion(t *testing.T) {
	change, tokens := people(t, "driver ann", "operator olga")
	d := start(t, "twin-franka.yaml", func(c *Config) {
		change(c)
		c.Robot.Pace = "real"
	})
	ann := connect(t, d.MCP(), tokens["driver ann"])
	far(ann)
	told := make(chan string, 1)
	go func() {
		text, _, _ := ann.call("execute_waypoint", nil)
		told <- text
	}()
	d.untilMoving()
	p := d.page(tokens["operator olga"])
	if a := p.act("takeover"); !a.OK || !strings.Contains(a.Note, "operator olga has the seat, taken from driver ann; stopped, confirmed") {
		t.Errorf("%+v", a)
	}
	if text := <-told; !strings.Contains(text, "stopped, confirmed") || strings.Contains(text, ": reached") {
		t.Errorf("ann was told: %s", text)
	}
	ann.refused(`"operator olga" is driving`, "execute_waypoint", nil)
	connect(t, d.MCP(), tokens["operator olga"]).refused("nothing to do", "execute_waypoint", nil)
}
