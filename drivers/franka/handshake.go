package franka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"viad/drivers/robot"
	"viad/ros"
	"viad/ros/msg/controller_manager_msgs"
)

// Names of the facts.
const (
	factLink        = "link"
	factJoints      = "joint states"
	factState       = "robot state"
	factModel       = "model"
	factController  = "controller"
	factAction      = "trajectory action"
	factRecovery    = "error recovery"
	factHand        = "gripper"
	factHomed       = "gripper homed"
	factClock       = "clock offset"
	factRate        = "command success rate"
	factStill       = "at rest"
	factGraph       = "graph"
	offsetWarn      = 50 * time.Millisecond
	rateWarn        = 0.95
	rateBad         = 0.8
	handshakeEvery  = time.Second
	watchEvery      = 100 * time.Millisecond
	controllerEvery = 2 * time.Second
)

// facts are what the handshake found.
type facts struct {
	list     []robot.Fact // never written to in place
	complete bool
	active   bool   // the controller says so
	bad      string // words of the first bad fact
}

func looking() facts {
	return facts{list: []robot.Fact{{Name: factLink, Value: "looking for the robot"}}}
}

func (f *facts) words() string {
	if f.bad != "" {
		return f.bad
	}
	return "the robot is being looked at: wait until its facts are complete"
}

// set replaces or adds one fact.
func (f *facts) set(n robot.Fact) {
	f.list = slices.Clone(f.list)
	if i := slices.IndexFunc(f.list, func(o robot.Fact) bool { return o.Name == n.Name }); i >= 0 {
		f.list[i] = n
	} else {
		f.list = append(f.list, n)
	}
	f.bad = ""
	for _, o := range f.list {
		if o.Bad != "" {
			f.bad = o.Bad
			return
		}
	}
}

// Facts are what the last handshake found out, in its order.
func (r *Robot) Facts() []robot.Fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.facts.list)
	for i := range list {
		if list[i].Name == factJoints && r.joints.lack != "" {
			list[i].Bad = lackWords(r.joints.lack)
		}
	}
	return list
}

// Run lives with the robot: it looks for it, shakes hands, watches, and begins anew whenever it was lost.
func (r *Robot) Run(ctx context.Context) error {
	news := make(chan struct{}, 1)
	stop := r.config.Node.Links(func(l ros.Link) {
		r.mu.Lock()
		r.link, r.linked = l, r.linked || l.Up
		r.mu.Unlock()
		select {
		case news <- struct{}{}:
		default:
		}
	})
	defer stop()
	for ctx.Err() == nil {
		f := r.handshake(ctx)
		if ctx.Err() != nil {
			break
		}
		r.adopt(f)
		if f.bad == "" {
			r.watch(ctx)
			continue
		}
		r.recoverOnce(ctx)
		select {
		case <-r.clock.After(handshakeEvery):
		case <-news:
		case <-ctx.Done():
		}
	}
	return nil
}

// adopt makes f what is known, and tells what is new.
func (r *Robot) adopt(f facts) {
	r.mu.Lock()
	was := r.facts
	r.facts = f
	r.mu.Unlock()
	switch {
	case f.bad != was.bad && f.bad != "":
		r.log.Warn("the robot may not move", "why", f.bad)
	case f.bad == "" && (was.bad != "" || !was.complete):
		r.log.Info("the robot is known and may move")
	}
}

// watch looks after a known robot and returns when it has to be looked at anew.
func (r *Robot) watch(ctx context.Context) {
	asked, deaf, missed := r.clock.Now(), false, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.clock.After(watchEvery):
		}
		now := r.clock.Now()
		j, _, s := r.snapshot()
		silent := max(now.Sub(j.received), now.Sub(s.received))
		switch {
		case silent > lostAfter || r.linkFact().Bad != "":
			f := looking()
			f.set(robot.Fact{Name: factLink, Value: "lost", Bad: r.lostWords(silent)})
			r.adopt(f)
			return
		case s.mode == modeReflex:
			r.recoverOnce(ctx)
		}
		if now.Sub(asked) >= controllerEvery {
			asked = now
			c, err := r.controllers(ctx)
			if deaf = err != nil && !deaf; !deaf { // once may be a busy machine; topics that live and services that do not are a fault
				r.note(c, err)
			}
			r.watchRate(s)
			f := r.serverFact(ctx, factAction, r.names.trajectory, r.trajectory, true)
			if missed = f.Bad != "" && !missed; !missed {
				r.mu.Lock()
				r.facts.set(f)
				r.mu.Unlock()
			}
		}
		r.mu.Lock()
		bad := r.facts.bad != ""
		r.mu.Unlock()
		if bad && ctx.Err() == nil {
			return
		}
	}
}

// lostWords say that nothing is heard of the robot, and what the wire knows of why.
func (r *Robot) lostWords(silent time.Duration) string {
	if bad := r.linkFact().Bad; bad != "" {
		return bad
	}
	return deadNode(fmt.Sprintf("the robot was lost: nothing for %v", silent.Round(100*time.Millisecond))).Error()
}

func (r *Robot) linkFact() robot.Fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := robot.Fact{Name: factLink, Value: r.config.Node.Wire()}
	if c := r.linkDown(); c != nil {
		f.Value, f.Bad = f.Value+", down", c.Error()
	}
	return f
}

// linkDown is the condition of a wire that was up and says it is down; nil when it does not. It needs mu.
func (r *Robot) linkDown() *Condition {
	if r.link.Up || !r.linked {
		return nil
	}
	return &Condition{
		Trouble: TroubleLink, What: "the link to the robot is down: " + r.link.Why,
		Next: "look at the network, and whether the robot's bring-up (ros2_control_node, franka_control) still runs and restart it by hand; nothing moves by itself after that",
	}
}

func (r *Robot) note(c controllers, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.active = c.active
	r.facts.set(r.controllerFact(c, err))
}

func (r *Robot) watchRate(s status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts.set(rateFact(s))
}

// handshake finds out everything, in order; it takes a few seconds at most.
func (r *Robot) handshake(ctx context.Context) facts {
	f := facts{complete: true}
	r.until(ctx, lostAfter, r.heard)
	f.set(r.linkFact())
	f.set(r.topicFact(factJoints, r.names.measured, r.names.merged))
	f.set(r.topicFact(factState, r.names.state))
	if f.bad != "" {
		f.complete = false
		return f
	}
	f.set(r.modelFact(ctx))
	c, err := r.controllers(ctx)
	f.active = c.active
	f.set(r.controllerFact(c, err))
	f.set(r.serverFact(ctx, factAction, r.names.trajectory, r.trajectory, true))
	f.set(r.serverFact(ctx, factRecovery, r.names.recovery, r.recovery, false))
	f.set(r.handFact(ctx))
	f.set(r.homedFact())
	f.set(r.clockFact())
	_, _, s := r.snapshot()
	f.set(rateFact(s))
	f.set(r.stillFact(ctx))
	f.set(r.graphFact(ctx))
	return f
}

func (r *Robot) heard() bool {
	j, h, s := r.snapshot()
	now := r.clock.Now()
	return j.q != nil && h.known && now.Sub(j.received) < staleState && now.Sub(s.received) < staleState
}

// topicFact says whether the first of the topics that speaks is heard, and if none is, whether somebody publishes it.
func (r *Robot) topicFact(name string, topics ...string) robot.Fact {
	j, _, s := r.snapshot()
	at, whole := j.received, j.q != nil
	if name == factState {
		at, whole = s.received, true
	}
	heard, publishers, counted := "", 0, true
	for _, t := range topics {
		sub := r.subs[t]
		if sub.Stats().Received > 0 && heard == "" {
			heard = t
		}
		n := sub.Publishers() // -1 where the wire cannot tell
		publishers, counted = publishers+max(0, n), counted && n >= 0
	}
	f := robot.Fact{Name: name, Value: heard}
	switch fresh := !at.IsZero() && r.clock.Now().Sub(at) < staleState; {
	case fresh && whole:
	case fresh:
		f.Bad = fmt.Sprintf("%s does not tell all of %s (%s): check the arm's prefix in the launch file", heard, strings.Join(r.names.joints, ", "), j.lack)
	case heard == "" && publishers == 0 && counted:
		f.Value, f.Bad = "nobody publishes "+topics[0], deadNode("nobody publishes "+strings.Join(topics, " nor ")).Error()
	case heard == "" && !counted:
		f.Bad = deadNode(fmt.Sprintf("nothing came on %s for %v", strings.Join(topics, " nor "), lostAfter)).Error()
	case heard == "":
		f.Bad = fmt.Sprintf("%s has %d publishers and nothing came for %v: their QoS or their type does not fit, or their node hangs; see the fact %q", topics[0], publishers, lostAfter, factGraph)
	case at.IsZero():
		f.Bad = fmt.Sprintf("%s is heard, and has none of %s: check the arm's prefix in the launch file", heard, strings.Join(r.names.joints, ", "))
	default:
		f.Bad = deadNode(fmt.Sprintf("%s fell silent %v ago", heard, r.clock.Now().Sub(at).Round(100*time.Millisecond))).Error()
	}
	return f
}

// controllers is what the controller manager says.
type controllers struct {
	names  []string
	there  bool
	state  string
	active bool
	rivals []string // other controllers that are active and claim the arm's joints
}

func (r *Robot) controllers(ctx context.Context) (controllers, error) {
	var c controllers
	var a controller_manager_msgs.ListControllers_Response
	ctx, cancel := r.within(ctx, callTime)
	defer cancel()
	if err := r.list.Call(ctx, new(controller_manager_msgs.ListControllers_Request), &a); err != nil {
		return c, fmt.Errorf("list controllers: %w", err)
	}
	for _, o := range a.Controller {
		c.names = append(c.names, o.Name)
		active := o.State == "active" || o.State == "running" // ROS 1's word
		switch {
		case o.Name == r.config.Controller:
			c.there, c.state, c.active = true, o.State, active
		case active && r.claims(o.ClaimedInterfaces):
			c.rivals = append(c.rivals, o.Name)
		}
	}
	return c, nil
}

// claims says that one of the claimed interfaces ("fr3_joint1/effort", on ROS 1 "panda_joint1") is of the arm.
func (r *Robot) claims(interfaces []string) bool {
	return slices.ContainsFunc(interfaces, func(i string) bool {
		for _, part := range strings.FieldsFunc(i, func(c rune) bool { return c == '/' || c == ' ' || c == ',' }) {
			if slices.Contains(r.names.joints, part) || part == r.config.Prefix {
				return true
			}
		}
		return false
	})
}

func inactiveWords(name, state string) string {
	return fmt.Sprintf("%s is %s: an operator runs the task %s (after a reflex or a user stop: %s)", name, state, taskActivate, taskRecover)
}

func (r *Robot) controllerFact(c controllers, err error) robot.Fact {
	f := robot.Fact{Name: factController, Value: fmt.Sprintf("%s is %s", r.config.Controller, c.state)}
	switch {
	case err != nil:
		f.Value, f.Bad = "the controller manager does not answer", deadNode(err.Error()).Error()
	case len(c.rivals) > 0:
		f.Bad = fmt.Sprintf("%s has the arm's joints: stop what uses it, then an operator runs the task %s; nothing is taken by force", strings.Join(c.rivals, ", "), taskActivate)
	case !c.there:
		f.Value = "there is no " + r.config.Controller
		f.Bad = fmt.Sprintf("the controller manager knows no %s (it has %s): load it, or name another in the launch file", r.config.Controller, strings.Join(c.names, ", "))
	case !c.active:
		f.Bad = inactiveWords(r.config.Controller, c.state)
	}
	return f
}

func (r *Robot) serverFact(ctx context.Context, name, action string, g ros.Goaler, needed bool) robot.Fact {
	ctx, cancel := r.within(ctx, readyTime)
	defer cancel()
	f := robot.Fact{Name: name, Value: action}
	if err := g.Ready(ctx); err != nil {
		f.Value = "nobody serves " + action
		if needed {
			f.Bad = fmt.Sprintf("nobody serves %s: look whether the controller is loaded, and at the namespace in the launch file (%v)", action, errors.Unwrap(err))
		} else {
			f.Value += ": a fault then needs a restart of the robot's bring-up"
		}
	}
	return f
}

func (r *Robot) handFact(ctx context.Context) robot.Fact {
	f := robot.Fact{Name: factHand, Value: "homing, move and grasp are served"}
	_, h, _ := r.snapshot()
	for _, s := range []struct {
		name string
		g    ros.Goaler
	}{{r.names.homing, r.homing}, {r.names.move, r.move}, {r.names.grasp, r.grasp}} {
		if o := r.serverFact(ctx, factHand, s.name, s.g, true); o.Bad != "" {
			f.Value, f.Bad = o.Value, "nobody serves "+s.name+": start franka_gripper, and look whether the hand is connected in Desk"
			return f
		}
	}
	if !h.known || r.clock.Now().Sub(h.received) > staleHand {
		f.Value, f.Bad = "no width", "nothing is heard of the hand on "+r.names.handJoints+": look whether franka_gripper reads it"
	}
	return f
}

func (r *Robot) homedFact() robot.Fact {
	_, h, _ := r.snapshot()
	if h.homed {
		return robot.Fact{Name: factHomed, Value: "yes"}
	}
	return robot.Fact{Name: factHomed, Value: "not known, the width reads 0.0 mm: before it is used, an operator runs the task " + taskHome}
}

// clockFact is a warning only: nothing that is sent has a stamp.
func (r *Robot) clockFact() robot.Fact {
	r.mu.Lock()
	o := r.offset
	r.offset = offset{} // the next handshake measures anew
	r.mu.Unlock()
	f := robot.Fact{Name: factClock, Value: "not known"}
	if !o.known {
		return f
	}
	f.Value = fmt.Sprintf("%.1f ms", float64(o.least)/1e6)
	if o.least.Abs() > offsetWarn {
		f.Value += fmt.Sprintf(" (more than %v: set both computers' clocks by chrony; commands carry no stamps and are not affected)", offsetWarn)
	}
	return f
}

// rateFact judges the share of the commands that arrive; it is 0 while no controller sends any.
func rateFact(s status) robot.Fact {
	f := robot.Fact{Name: factRate, Value: fmt.Sprintf("%.2f", s.rate)}
	switch {
	case s.mode != modeMove || s.rate == 0:
		f.Value = "not known without motion"
	case s.rate < rateBad:
		f.Bad = fmt.Sprintf("only %.0f %% of the commands arrive at the robot, %.0f %% are needed: check the real-time kernel, the network between the robot and its computer, and power saving", 100*s.rate, 100*rateBad)
	case s.rate < rateWarn:
		f.Value += fmt.Sprintf(" (below %.2f: cameras and this daemon off the robot's network card)", rateWarn)
	}
	return f
}

// stillFact looks whether the arm rests, for a moment: whoever moves it is not us.
func (r *Robot) stillFact(ctx context.Context) robot.Fact {
	f := robot.Fact{Name: factStill, Value: "yes"}
	r.mu.Lock()
	ours := r.run != nil || r.tending || r.clock.Now().Sub(r.ended) < ownAfter
	r.mu.Unlock()
	if ours {
		return f
	}
	most := 0.0
	r.until(ctx, strangeAfter, func() bool {
		j, _, _ := r.snapshot()
		most = math.Max(most, fastest(j.qd))
		return most > strangeSpeed
	})
	if most > strangeSpeed {
		f.Value, f.Bad = fmt.Sprintf("moves at %.2f rad/s", most), strangeWords
	}
	return f
}

// graphFact tells what of the graph concerns these topics: QoS that does not fit, and who else commands the arm.
func (r *Robot) graphFact(ctx context.Context) robot.Fact {
	f := robot.Fact{Name: factGraph, Value: "nothing stands out"}
	ctx, cancel := r.within(ctx, readyTime)
	defer cancel()
	g, err := r.config.Node.Graph(ctx)
	if err != nil {
		f.Value = "not known: " + err.Error()
		return f
	}
	var say []string
	for _, p := range g.Problems {
		if slices.ContainsFunc([]string{r.names.measured, r.names.merged, r.names.state, r.names.handJoints, r.names.description, r.names.trajectory}, func(t string) bool { return strings.Contains(p, t) }) {
			say = append(say, p)
		}
	}
	for _, t := range g.Topics {
		if t.Name == r.names.commands && len(t.Publishers) > 0 {
			say = append(say, fmt.Sprintf("%s is published by %s: it can command the arm beside this daemon", t.Name, publisher(t.Publishers[0])))
		}
	}
	if len(say) > 0 {
		f.Value = strings.Join(say, "; ")
	}
	return f
}

func publisher(e ros.EndpointInfo) string {
	if e.Node != "" {
		return e.Node
	}
	return "somebody"
}
