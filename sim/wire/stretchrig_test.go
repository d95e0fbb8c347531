package wire

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/interop"
	"viad/ros/msg"
	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/nav_msgs"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/msg/std_msgs"
	"viad/ros/msg/std_srvs"
	"viad/ros/msg/trajectory_msgs"
	"viad/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a Stretch on the wire, and a client of it that is another participant of the domain.
type rig struct {
	t     *testing.T
	ctx   context.Context
	twin  *sim.Twin
	face  *Stretch
	node  ros.Node
	goals ros.Goaler

	mu    sync.Mutex
	news  chan struct{} // closed at each message
	q     map[string]float64
	at    time.Time // of the joint states, by their stamp
	count int       // of them
	odom  nav_msgs.Odometry
	words map[string]string
	truth map[string]bool
}

func onTheWire(t *testing.T, gen Generation, f StretchFaults) *rig {
	t.Helper()
	return onTheWireAs(t, gen, f, "<robot/>")
}

func onTheWireAs(t *testing.T, gen Generation, f StretchFaults, description string) *rig {
	t.Helper()
	domain, release, err := interop.Domain()
	must(t, err)
	t.Cleanup(release)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, news: make(chan struct{}), q: map[string]float64{}, words: map[string]string{}, truth: map[string]bool{}}
	r.twin, err = sim.NewTwin(sim.Options{Robot: "stretch4", World: "room", Seed: 1, Light: true})
	must(t, err)
	t.Cleanup(r.twin.Close)
	open := func(name string) *dds.Node {
		n, err := dds.Open(dds.Config{Node: name, Domain: domain, Localhost: true, Distro: cdr.Jazzy})
		must(t, err)
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	r.node = open("client")
	r.face, err = NewStretch(r.twin, open("stretch_driver"), gen, description, f)
	must(t, err)
	run, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.twin.Run(run) })
	wg.Go(func() { _ = r.face.Run(run) })
	t.Cleanup(func() {
		_ = r.face.Close()
		stop()
		wg.Wait()
	})
	r.listen()
	r.goals, err = r.node.ActionClient(ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback]("/follow_joint_trajectory"))
	must(t, err)
	must(t, r.goals.Ready(ctx))
	r.until("all topics", func() bool {
		return r.count > 0 && len(r.words) == 4 && len(r.truth) == 2 && r.odom.ChildFrameId != ""
	})
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// note takes news under the lock.
func (r *rig) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.news)
	r.news = make(chan struct{})
}

func (r *rig) listen() {
	_, err := ros.Subscribe(r.node, "/joint_states", ros.SensorData(), func(m *sensor_msgs.JointState, _ ros.Info) {
		r.note(func() {
			r.count++
			r.at = time.Unix(int64(m.Header.Stamp.Sec), int64(m.Header.Stamp.Nanosec))
			for i, n := range m.Name {
				r.q[n] = m.Position[i]
			}
		})
	})
	must(r.t, err)
	_, err = ros.Subscribe(r.node, "/wheel_odom", ros.SensorData(), func(m *nav_msgs.Odometry, _ ros.Info) { r.note(func() { r.odom = *m }) })
	must(r.t, err)
	for _, n := range []string{"mode", "tool", "sensitivity", "robot_description"} {
		_, err = ros.Subscribe(r.node, "/"+n, ros.Latched(), func(m *std_msgs.String, _ ros.Info) { r.note(func() { r.words[n] = m.Data }) })
		must(r.t, err)
	}
	for _, n := range []string{"is_homed", "is_runstopped"} {
		_, err = ros.Subscribe(r.node, "/"+n, ros.Latched(), func(m *std_msgs.Bool, _ ros.Info) { r.note(func() { r.truth[n] = m.Data }) })
		must(r.t, err)
	}
}

// until waits for messages until f, which may read what they said, is true.
func (r *rig) until(what string, f func() bool) {
	r.t.Helper()
	for {
		r.mu.Lock()
		ok, news := f(), r.news
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-r.ctx.Done():
			r.t.Fatalf("%s: did not come; joints %v, words %v, %v", what, r.q, r.words, r.truth)
		}
	}
}

// pass lets the twin's time pass, by the stamps of the odometry.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	to := r.twin.Clock().Now().Add(d)
	r.until("time", func() bool {
		s := r.odom.Header.Stamp
		return !time.Unix(int64(s.Sec), int64(s.Nanosec)).Before(to)
	})
}

func (r *rig) joint(name string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.q[name]
}

func (r *rig) base() (x, y, vx float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.odom.Pose.Pose.Position.X, r.odom.Pose.Pose.Position.Y, r.odom.Twist.Twist.Linear.X
}

// report is how a goal went.
type report struct {
	status ros.GoalStatus
	code   int32
	off    []float64     // what the last feedback says is missing
	took   time.Duration // between the first and the last feedback
}

// sent is a goal on its way.
type sent struct {
	r    *rig
	goal ros.Goal
	mu   sync.Mutex
	rep  report
	from time.Time
}

// pt is a point: when, and where each of the joints.
func pt(at time.Duration, x ...float64) trajectory_msgs.JointTrajectoryPoint {
	return trajectory_msgs.JointTrajectoryPoint{Positions: x, TimeFromStart: builtin_interfaces.Duration{Sec: int32(at / time.Second), Nanosec: uint32(at % time.Second)}}
}

func (r *rig) send(joints []string, points ...trajectory_msgs.JointTrajectoryPoint) (*sent, error) {
	s := &sent{r: r}
	var err error
	s.goal, err = r.goals.Send(r.ctx, &control_msgs.FollowJointTrajectory_Goal{Trajectory: trajectory_msgs.JointTrajectory{JointNames: joints, Points: points}}, func(m msg.Message) {
		f, is := m.(*control_msgs.FollowJointTrajectory_Feedback)
		if !is {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		at := time.Unix(int64(f.Header.Stamp.Sec), int64(f.Header.Stamp.Nanosec))
		if s.from.IsZero() {
			s.from = at
		}
		s.rep.off, s.rep.took = append([]float64(nil), f.Error.Positions...), at.Sub(s.from)
	})
	return s, err
}

func (s *sent) end() report {
	s.r.t.Helper()
	var res control_msgs.FollowJointTrajectory_Result
	status, err := s.goal.Result(s.r.ctx, &res)
	must(s.r.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rep.status, s.rep.code = status, res.ErrorCode
	return s.rep
}

// do sends a goal of one point and waits for its end.
func (r *rig) do(joint string, x float64) report {
	r.t.Helper()
	s, err := r.send([]string{joint}, pt(time.Second, x))
	must(r.t, err)
	return s.end()
}

// want checks an end.
func (p report) want(t *testing.T, status ros.GoalStatus, code int32) {
	t.Helper()
	if p.status != status || p.code != code {
		t.Errorf("the goal ended with status %d and code %d, not %d and %d", p.status, p.code, status, code)
	}
}

func (r *rig) set(p ...ros.Param) error {
	r.t.Helper()
	c, err := ros.NewParamClient(r.node, "/stretch_driver")
	must(r.t, err)
	defer func() { _ = c.Close() }()
	return c.Set(r.ctx, p...)
}

func (r *rig) call(ctx context.Context, name string) (bool, error) {
	r.t.Helper()
	c, err := r.node.Client(ros.ServiceOf[std_srvs.Trigger_Request, std_srvs.Trigger_Response](name))
	must(r.t, err)
	defer func() { _ = c.Close() }()
	var a std_srvs.Trigger_Response
	err = c.Call(ctx, &std_srvs.Trigger_Request{}, &a)
	return a.Success, err
}

func (r *rig) runstop(on bool) {
	r.t.Helper()
	c, err := r.node.Client(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/runstop_the_robot"))
	must(r.t, err)
	defer func() { _ = c.Close() }()
	must(r.t, c.Call(r.ctx, &std_srvs.SetBool_Request{Data: on}, &std_srvs.SetBool_Response{}))
	r.until("runstop", func() bool { return r.truth["is_runstopped"] == on })
}

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }

func (r *rig) word(topic string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.words[topic]
}

// heard is how many joint states came.
func (r *rig) heard() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}
