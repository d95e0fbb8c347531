package stretch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"viad/drivers/robot"
	"viad/ros"
)

// Modes as the robot's driver names them.
const (
	modePosition   = "position" // A, and of a joint of B
	modeVelocity   = "velocity"
	modeNavigation = "navigation"
	modeTeleop     = "teleop"
	modeGamepad    = "gamepad"
	modeActive     = "active" // B
	modeHoming     = "homing"
	modeStowing    = "stowing"
	modeRunstopped = "runstopped"
)

const timePriority = "time_priority" // of B's trajectory server

// known is what the handshake found. It is never written to in place.
type known struct {
	complete   bool
	bad        string // why it is not complete
	generation Generation
	tool       string
	model      *robot.Model
	params     []string // of the driver
	facts      []robot.Fact
}

func (k *known) words() string {
	if k.bad != "" {
		return k.bad
	}
	return "the robot is being looked at: wait until its facts are complete"
}

// say adds a fact; the first bad one speaks for all.
func (k *known) say(name, value, bad string) bool {
	k.facts = append(k.facts, robot.Fact{Name: name, Value: value, Bad: bad})
	if bad != "" && k.bad == "" {
		k.bad = bad
	}
	return bad == ""
}

// Facts are what the last handshake found out, and what is watched since.
func (r *Robot) Facts() []robot.Fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known.facts) == 0 {
		return []robot.Fact{{Name: "link", Value: "looking for the robot", Bad: "the robot has not been found yet: wait, then look whether its driver runs and whether this machine reaches it"}}
	}
	f := slices.Clone(r.known.facts)
	if r.known.complete {
		f = append(f, r.live(r.clock.Now())...)
	}
	return f
}

// handshakeEvery is the time between two attempts.
const handshakeEvery = 500 * time.Millisecond

// Run lives with the robot: it looks for it, shakes hands, watches, and begins anew whenever it was lost.
func (r *Robot) Run(ctx context.Context) error {
	news := make(chan ros.Link, 16)
	stop := r.config.Node.Links(func(l ros.Link) {
		select {
		case news <- l:
		default:
		}
	})
	defer stop()
	tick := r.clock.Ticker(handshakeEvery / 5)
	defer tick.Stop()
	link, wait, tries := ros.Link{Up: true}, 0, 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case link = <-news:
			if !link.Up {
				r.lose("the link to the robot is down: " + link.Why)
			}
			continue
		case <-tick.C():
		}
		if r.isKnown() {
			tries = 0
			r.watch()
			continue
		}
		if wait--; wait > 0 || !link.Up {
			continue
		}
		wait = 5
		tries++
		if r.unheard(tries) {
			if err := r.listenKept(); err != nil && ctx.Err() == nil {
				r.log.Warn("the robot's latched topics cannot be listened to", "why", err)
			}
		}
		k := r.examine(ctx)
		if ctx.Err() == nil {
			r.adopt(k)
		}
	}
}

// unheardTries is after how many looks at a robot whose latched topics are silent they are subscribed to anew: some wires
// choose the subscription's quality by the publishers that there were.
const unheardTries = 10

// unheard says that latched topics are to be asked for again: the robot was lost, and what they said may be of another one
// by now, or they should have come.
func (r *Robot) unheard(tries int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, lost := &r.status, r.lost
	r.lost = false
	silent := !s.homed.known() || !s.runstopped.known() || !s.mode.known() || !s.tool.known() || !s.description.known()
	return lost || silent && tries%unheardTries == 0
}

func (r *Robot) isKnown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known.complete
}

// adopt makes k what is known, and tells what is new.
func (r *Robot) adopt(k known) {
	r.mu.Lock()
	was := r.known
	r.known = k
	if k.generation != was.generation || k.tool != was.tool {
		r.reading.q, r.reading.qd = nil, nil // of other units
		r.armMode, r.held, r.stages = modeNavigation, false, 0
	}
	r.mu.Unlock()
	switch {
	case k.bad != was.bad && k.bad != "":
		r.log.Warn("the robot may not move", "why", k.bad)
	case k.complete:
		r.log.Info("the robot is known", "generation", k.generation.String(), "tool", k.tool)
	}
}

// lose forgets the robot: a robot that went away may come back as another one, or in another place.
func (r *Robot) lose(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = known{model: r.known.model, tool: r.known.tool, bad: why, facts: []robot.Fact{{Name: "link", Value: "lost", Bad: why}}}
	r.status = status{guard: r.status.guard}
	r.lost = true
	r.offset = offset{}
	if r.running != nil {
		r.running(fmt.Errorf("%s", why))
	}
	r.log.Warn("the robot is lost", "why", why)
}

// watch looks after a known robot.
func (r *Robot) watch() {
	r.mu.Lock()
	now := r.clock.Now()
	silent := r.reading.age(now)
	calm := r.resting(now)
	r.mu.Unlock()
	if silent > lostAfter && !calm {
		r.lose(fmt.Sprintf("nothing of the robot's joints and odometry for %v; look whether its driver runs and whether the network holds; it is looked at anew when it is back", silent.Round(100*time.Millisecond)))
	}
}

// resting says that the robot's state may rest: it homes or stows, and has not done so for too long. It needs mu.
func (r *Robot) resting(now time.Time) bool {
	m := r.status.mode
	return (m.v == modeHoming || m.v == modeStowing) && now.Sub(m.at) < homingMost
}

// examine is the handshake.
func (r *Robot) examine(ctx context.Context) known {
	r.mu.Lock()
	k := known{model: r.known.model, tool: r.known.tool}
	r.mu.Unlock()
	g, err := r.config.Node.Graph(ctx)
	if err != nil {
		k.say("link", "", "the robot's ROS graph cannot be read: "+err.Error())
		return k
	}
	k.say("link", fmt.Sprintf("%s, %d nodes", r.config.Node.Wire(), len(g.Nodes)), "")
	if !r.probe(ctx, &k, g) {
		return k
	}
	ok := r.checkStreams(&k, g)
	ok = r.checkTool(&k) && ok
	ok = r.checkLimits(&k) && ok
	ok = r.checkServers(ctx, &k) && ok
	if !ok {
		return k
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.known.generation != k.generation: // readings so far are of other units: the next look takes new ones
		k.say("joints", "", "the robot has just been recognised: wait for its next reading")
	case r.reading.fast(strangeJoint, strangeSlide):
		k.say("at rest", "moving", "the robot was moving when it was found, so somebody drives it: wait until it stands still, and end the other program")
	default:
		k.say("at rest", "yes", "")
		k.complete = k.bad == ""
	}
	return k
}

// probe tells the generation.
func (r *Robot) probe(ctx context.Context, k *known, g ros.Graph) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(g.Topics, func(t ros.TopicInfo) bool { return t.Name == name && len(t.Publishers)+len(t.Subscribers) > 0 }) ||
			slices.ContainsFunc(g.Services, func(s ros.NameType) bool { return s.Name == name })
	}
	n := r.names
	switch {
	case has(n.stateThree) || has(n.modeThree):
		k.generation = GenStretch3
		return k.say("generation", GenStretch3.String(), "this is a Stretch 3, which this driver does not drive: its base, joints and modes are others; use a robot.driver for Stretch 3")
	case !has(n.joints) || !slices.Contains(g.Nodes, n.driver) && !has(n.odometry):
		return k.say("generation", GenUnknown.String(), fmt.Sprintf("no Stretch driver is seen: there is no %s with %s; start stretch_driver on the robot, and look whether ROS_DOMAIN_ID and the namespace agree", n.odometry, n.joints))
	}
	ctx, cancel := r.within(ctx, callTime)
	defer cancel()
	list, err := r.params.List(ctx, "")
	if err != nil {
		return k.say("generation", GenUnknown.String(), fmt.Sprintf("topics of %s are alive and its services are not (%v): it hangs; restart it on the robot", n.driver, err))
	}
	k.params = list
	switch {
	case has(n.positionB):
		k.generation = GenB
	case has(n.jogA) && slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(p, "joint_velocity.") }):
		k.generation = GenAPrime
	case has(n.jogA) || slices.Contains(list, "mode"):
		k.generation = GenA
	default:
		return k.say("generation", GenUnknown.String(), fmt.Sprintf("%s is no Stretch driver that is known: it has neither joint_velocity_cmd nor joint_vel nor a parameter mode", n.driver))
	}
	return k.say("generation", k.generation.String(), "")
}

// checkStreams looks whether what must come comes, and says why it may not.
func (r *Robot) checkStreams(k *known, g ros.Graph) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, s, ok := r.clock.Now(), &r.status, true
	need := func(name, topic string, at time.Time, most time.Duration) {
		if !at.IsZero() && (most == 0 || now.Sub(at) <= most) {
			ok = k.say(name, "comes", "") && ok
			return
		}
		ok = k.say(name, "silent", silentWords(g, topic)) && ok
	}
	need("joints", r.names.joints, r.reading.received, lostAfter)
	need("odometry", r.names.odometry, r.reading.odometry, lostAfter)
	need("homing state", r.names.homed, s.homed.at, 0)
	need("runstop state", r.names.runstopped, s.runstopped.at, 0)
	need("mode", r.names.mode, s.mode.at, 0)
	if !r.reading.received.IsZero() && r.reading.q == nil {
		ok = k.say("joints", "incomplete", "joint_states lack a joint of the arm or have one that is no number: look at the robot's servos, a lost one is reported so") && ok
	}
	return ok
}

func silentWords(g ros.Graph, topic string) string {
	for _, t := range g.Topics {
		if t.Name == topic && len(t.Publishers) > 0 {
			q := t.Publishers[0].QoS
			return fmt.Sprintf("%s has a publisher (reliable %v, transient local %v) and nothing comes: look at its QoS, its node, and the network", topic, q.Reliable, q.Transient)
		}
	}
	return fmt.Sprintf("nobody publishes %s: start stretch_driver on the robot", topic)
}

func (r *Robot) checkTool(k *known) bool {
	r.mu.Lock()
	tool := r.status.tool
	r.mu.Unlock()
	if !tool.known() {
		return k.say("tool", "", "the robot has not said what its tool is: wait for the topic "+r.names.tool)
	}
	t, err := toolOf(tool.v)
	if err != nil {
		return k.say("tool", tool.v, err.Error())
	}
	if want := r.config.Tool; want != "" && want != t {
		return k.say("tool", tool.v, fmt.Sprintf("the robot has the gripper %s, the launch file says %s: change one of them", t, want))
	}
	m, err := Model(t)
	if err != nil {
		return k.say("tool", tool.v, err.Error())
	}
	k.tool, k.model = t, m
	return k.say("tool", tool.v, "")
}

// checkLimits takes the smaller of our limits and those of the robot's own description.
func (r *Robot) checkLimits(k *known) bool {
	r.mu.Lock()
	d := r.status.description
	r.mu.Unlock()
	if !d.known() {
		return k.say("limits", "", "the robot's description has not come: start robot_state_publisher, which publishes "+r.names.description)
	}
	limits, err := readLimits(d.v)
	if err != nil {
		return k.say("limits", "", "the robot's description cannot be read: "+err.Error())
	}
	for i := range k.model.Joints {
		j := &k.model.Joints[i]
		lo, hi, found := limits.of(j.Name)
		if !found {
			return k.say("limits", "", fmt.Sprintf("the robot's description has no joint %s: it is of another robot; start the right one", j.Name))
		}
		j.Min, j.Max = math.Max(j.Min, lo), math.Min(j.Max, hi)
		if !(j.Min < j.Max) {
			return k.say("limits", "", fmt.Sprintf("the robot's description leaves %s no range (%g to %g)", j.Name, lo, hi))
		}
	}
	return k.say("limits", fmt.Sprintf("lift to %.2f m, arm to %.2f m", k.model.Joints[jLift].Max, k.model.Joints[jArm].Max), "")
}

func (r *Robot) checkServers(ctx context.Context, k *known) bool {
	ctx, cancel := r.within(ctx, readyTime)
	defer cancel()
	if err := r.arm.Ready(ctx); err != nil {
		return k.say("action", "", fmt.Sprintf("nobody serves %s (%v): restart stretch_driver", r.names.action, err))
	}
	k.say("action", r.names.action, "")
	if p := "trajectory_server.mode"; slices.Contains(k.params, p) { // plans are meant in time
		value := timePriority
		if err := r.params.Set(ctx, ros.P(p, timePriority)); err != nil {
			value = "not set: " + err.Error()
		}
		k.say("trajectory server", value, "")
	}
	if err := r.stop.Ready(ctx); err != nil {
		return k.say("stop", "", fmt.Sprintf("nobody serves %s (%v): the robot could not be stopped; restart stretch_driver", r.names.stop, err))
	}
	if err := r.runstop.Ready(ctx); err != nil {
		return k.say("stop", "", fmt.Sprintf("nobody serves %s (%v): the robot could not be stopped; restart stretch_driver", r.names.runstop, err))
	}
	return k.say("stop", "served", "")
}
