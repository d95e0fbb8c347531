package stretch

import (
	"context"
	"strings"
	"testing"
	"time"

	"viad/drivers/geom"
	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg"
	"viad/ros/msg/std_srvs"
)

// What is recognised and refused.
func TestProbeRefuses(t *testing.T) {
	t.Parallel()
	t.Run("Stretch 3", func(t *testing.T) {
		t.Parallel()
		b := begin(t, GenA, with(func(d *double) {
			c, err := d.node.Serve(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response]("/switch_to_position_mode"), func(context.Context, msg.Message) (msg.Message, error) {
				return new(std_srvs.Trigger_Response), nil
			})
			d.topics = append(d.topics, must[ros.Closer](t)(c, err))
		}))
		b.blocked("this is a Stretch 3")
	})
	t.Run("nobody", func(t *testing.T) {
		t.Parallel()
		n := node(t, "viad_stretch", domain(t))
		r := must[*Robot](t)(Open(t.Context(), Config{Node: n}))
		defer func() { _ = r.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		b := &bench{Robot: r, t: t, n: n}
		b.wait("refused", func(s robot.State) bool { return s.Mode == robot.ModeFaulted })
		if s := r.State(); !strings.Contains(s.Fault, "start stretch_driver") && !strings.Contains(s.Fault, "link") {
			t.Errorf("the words are %q", s.Fault)
		}
		cancel()
		<-done
	})
	t.Run("tool", func(t *testing.T) {
		t.Parallel()
		b := begin(t, GenA, with(func(d *double) { d.tool = "eoa_wrist_dw4_tool_tablet" }))
		b.blocked("tool_tablet")
	})
	t.Run("other tool", func(t *testing.T) {
		t.Parallel()
		b := begin(t, GenA, func(c *Config, _ *double) { c.Tool = toolSG4 })
		b.blocked("the launch file says sg4")
	})
	t.Run("description", func(t *testing.T) {
		t.Parallel()
		b := begin(t, GenA, with(func(d *double) { d.urdf = `<robot name="x"><joint name="a" type="fixed"/></robot>` }))
		b.blocked("no joint lift_joint")
	})
	t.Run("narrower limits", func(t *testing.T) {
		t.Parallel()
		b := start(t, GenA, with(func(d *double) { d.urdf = description(0.05) }))
		if m := b.Model().Joints[jArm].Max; m < 0.19999 || m > 0.20001 {
			t.Errorf("the arm goes to %v, want 0.2", m)
		}
		if err := b.Follow(t.Context(), b.plan(3*time.Second, geom.SE2{}, 0, 0.15)); err == nil || !strings.Contains(err.Error(), "limits") {
			t.Errorf("a plan past the limit ends with %v", err)
		}
		if n := get(b.d, func(d *double) int { return len(d.goals) }); n != 0 {
			t.Errorf("%d goals were sent", n)
		}
	})
	t.Run("moving", func(t *testing.T) {
		t.Parallel()
		b := begin(t, GenA, with(func(d *double) { d.j[0].vel, d.j[0].target = 0.02, 1 }))
		b.blocked("somebody drives it")
	})
	t.Run("rejected goals", func(t *testing.T) {
		t.Parallel()
		b := start(t, GenB, with(func(d *double) { d.f.reject = true }))
		if err := b.Follow(t.Context(), b.plan(time.Second, geom.SE2{}, 0.05)); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("a rejected goal ends with %v", err)
		}
	})
}
