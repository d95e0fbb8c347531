package tool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/interface/tool"
	"viad/interface/tool/door"
)

// inProcess is a server and a client in one bubble of virtual time.
func inProcess(t *testing.T, face stage.Face) (*rig, *agent) {
	t.Helper()
	at := down
	if face == stage.Face2D {
		at = forward
	}
	r := &rig{w: newWorld(at), p: &painter{}, e: &episode{}, r: &records{}}
	r.st = stage.New(stage.Options{Face: face, Kin: r.w, Clock: robot.WallClock{}, Planner: r.w, Mover: r.w, Checker: r.w, Scenes: r.w, Home: home})
	var err error
	r.s, err = tool.New(tool.Options{Face: face, Stage: r.st, Painter: r.p, Episode: r.e, Record: r.r, Clock: robot.WallClock{}, WristDepth: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewInProcessClient(r.s.MCP())
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, c: c, progress: make(chan mcp.JSONRPCNotification, 1000)}
	a.start()
	return r, a
}

type beat struct {
	at   time.Duration
	n    float64
	text string
}

// during runs an execute whose motion is released after d, and returns its progress and when it was answered.
func during(t *testing.T, d time.Duration) (reply, []beat, time.Duration, *rig) {
	t.Helper()
	r, a := inProcess(t, stage.Face3D)
	defer func() {
		if err := a.c.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := door.With(context.Background(), door.Principal{Name: "drive", Role: door.Driver})
	call := func(name, args string) reply {
		got, err := a.try(ctx, name, args)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	call("gripper_translate", `{"d_x":0.1}`)
	start := time.Now()
	var beats []beat
	a.c.OnNotification(func(n mcp.JSONRPCNotification) {
		f := n.Params.AdditionalFields
		if f["progressToken"] != "execute_waypoint" {
			t.Errorf("progress for %v", f["progressToken"])
		}
		v, err := number(f["progress"])
		if err != nil {
			t.Error(err)
		}
		beats = append(beats, beat{time.Since(start), v, fmt.Sprint(f["message"])})
	})
	release := r.held()
	if d > 0 {
		timer := time.AfterFunc(d, release)
		defer timer.Stop()
	}
	got := call("execute_waypoint", `{}`)
	took := time.Since(start)
	synctest.Wait()
	if err := r.s.Close(); err != nil {
		t.Error(err)
	}
	return got, beats, took, r
}

func number(v any) (float64, error) {
	f, ok := v.(float64)
	if !ok {
		return 0, fmt.Errorf("progress is %T", v)
	}
	return f, nil
}

func TestProgressAtOnceAndEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, beats, took, _ := during(t, 5*time.Second+5*time.Millisecond)
		if got.bad || len(beats) != 6 {
			t.Fatalf("%s, %d notifications: %+v", got.text(), len(beats), beats)
		}
		for i, b := range beats {
			if b.at != time.Duration(i)*time.Second || b.n != float64(i+1) {
				t.Errorf("notification %d: %+v", i, b)
			}
		}
		if gap := took - beats[5].at; gap < 10*time.Millisecond || gap > 20*time.Millisecond {
			t.Errorf("the result came %v after the last notification, want 10 ms or a little more", gap)
		}
	})
}

func TestAQuickMotionStillKeepsTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, beats, took, _ := during(t, time.Millisecond)
		if len(beats) != 1 || took < 10*time.Millisecond || took > 20*time.Millisecond {
			t.Errorf("%+v, answered after %v", beats, took)
		}
	})
}

func TestTheCallEndsAt40Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, beats, took, r := during(t, 0) // never released: a mover that ignores its deadline
		if !got.bad || !strings.Contains(got.text(), "limit 40.00 s") || !strings.Contains(got.text(), "stopped, confirmed") {
			t.Errorf("got %s", got.text())
		}
		if took < 40*time.Second || took > 40*time.Second+50*time.Millisecond || len(beats) != 40 {
			t.Errorf("answered after %v, %d notifications", took, len(beats))
		}
		if last := r.st.Snapshot().Last; last == nil || last.Outcome.Why != "stopped on request" {
			t.Errorf("last %+v", last)
		}
	})
}

func TestFirstByteComesAtOnce(t *testing.T) {
	r := newRig(t, stage.Face3D)
	a := r.agent(t, "drive")
	a.good("gripper_translate", `{"d_x":0.1}`)
	release := r.held()
	got := make(chan reply, 1)
	start := time.Now()
	go func() { got <- a.do("execute_waypoint", `{}`) }()
	select {
	case <-a.progress:
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("first notification after %v; clients give up after 60 s", d)
		}
	case <-time.After(10 * time.Second):
		t.Error("no notification while the robot moves")
	}
	release()
	if res := <-got; res.bad {
		t.Errorf("execute: %s", res.text())
	}
}
