package stage

import (
	"fmt"
	"math"
	"time"

	"viad/drivers/geom"
	"viad/perception"
	"viad/safety"
)

// seen is what the seat knew when it last looked. A preview lives as long as this is still true.
type seen struct {
	ok      bool // it was shown, with a complete state, and has not died since
	rev     uint64
	from    live
	scene   uint64
	movable bool // the geometry was not refused
	near    perception.Hit
	at      time.Time
}

// Show is what the seat is shown now. It pins the scene and viewport that clicks resolve in, and renews the
// preview. It does not wait for a motion.
func (s *Stage) Show() *Snapshot {
	s.renew()
	l, sc, ready := s.live(), s.o.Scenes.Scene(), s.o.Checker.Ready()
	s.mu.Lock()
	defer s.mu.Unlock()
	sn := s.snapshot(l, sc, ready)
	s.pinned = sn
	v := &s.verdict
	s.seen = seen{
		ok: l.ok, rev: s.rev, from: l, scene: v.scene,
		movable: v.check.Staged && v.check.Refused == nil, near: v.near, at: sn.Now,
	}
	if s.last != nil && s.activity == idle {
		// The first look after an execute is its own reply, unless that has been delivered already.
		s.shows++
		s.looked = s.looked || s.delivered || s.shows > 1
	}
	return sn
}

// Pinned is what the seat was last shown.
func (s *Stage) Pinned() *Snapshot {
	s.mu.Lock()
	sn := s.pinned
	s.mu.Unlock()
	if sn == nil {
		return s.Show()
	}
	return sn
}

// renew judges the staged target again when the scene or the robot has changed since it was judged. When an
// edit or an execute is being planned it leaves that to them.
func (s *Stage) renew() {
	if !s.work.TryLock() {
		return
	}
	defer s.work.Unlock()
	s.mu.Lock()
	w, v, act, stale, rev := s.staged, s.verdict, s.activity, s.stale, s.rev
	s.mu.Unlock()
	if act != idle || w == (staged{}) {
		return
	}
	l, sc := s.live(), s.o.Scenes.Scene()
	if !l.ok {
		return
	}
	// A fifth of what kills a preview: nearer than that the old plan is as good.
	dist, turn := s.apart(v.from, l)
	switch {
	case stale || dist > s.o.MovedDist/5 || turn > s.o.MovedTurn/5 || v.from.real.Open != l.real.Open:
		v = s.judge(w, l, sc)
	case v.check.Plan != nil && sc != nil && sc.Seq != v.scene:
		s.inScene(&v, sc)
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rev == rev { // a new driver waits for no judgement
		s.verdict, s.stale = v, false
	}
}

// apart is how far the robot's tool, its base or any joint moved between two instants: metres and radians. An elbow
// can be pushed aside and leave the tool where it is.
func (s *Stage) apart(a, b live) (dist, turn float64) {
	base := a.state.Base.Inv().Mul(b.state.Base)
	if !a.ok || !b.ok {
		return math.Inf(1), math.Inf(1) // nothing is known of one of them
	}
	dist = max(a.real.Pose.Dist(b.real.Pose), base.Norm())
	turn = max(a.real.Pose.Angle(b.real.Pose), math.Abs(geom.WrapAngle(base.Yaw)))
	for i, j := range s.model.Joints {
		if by := math.Abs(b.state.Q[i] - a.state.Q[i]); j.Prismatic {
			dist = max(dist, by)
		} else {
			turn = max(turn, by)
		}
	}
	return dist, turn
}

// preview says whether what the seat was last shown is still true of the robot; needs mu.
func (s *Stage) preview(l live) *safety.Refused {
	look := "Look at the target again (any view of it renews the preview), then execute."
	switch {
	case !s.seen.ok:
		return refuse(RuleLookAgain, "the staged target has not been seen since the robot or the scene changed", "a look after every change", look)
	case s.seen.rev != s.rev:
		return refuse(RuleLookAgain, "the staged target changed after the last look", "a look after every change", look)
	}
	if age := s.o.Clock.Now().Sub(s.seen.at); !(age >= 0 && age <= s.o.PreviewAge) { // a clock that went back says nothing of age
		r := refuse(RuleLookAgain, "last look "+seconds(age)+" ago", seconds(s.o.PreviewAge), look)
		r.Numbers = []safety.Number{{Name: "age", Value: age.Seconds()}}
		return r
	}
	if dist, turn := s.apart(s.seen.from, l); !(dist <= s.o.MovedDist && turn <= s.o.MovedTurn) {
		r := refuse(RuleLookAgain, fmt.Sprintf("the robot moved %s and %s since the last look", meters.of(dist), degrees.of(turn)),
			meters.of(s.o.MovedDist)+" and "+degrees.of(s.o.MovedTurn), look)
		r.Numbers = []safety.Number{{Name: "moved", Value: dist}, {Name: "turned", Value: turn}}
		return r
	}
	return nil
}

// flipped says whether v refuses what the seat was shown as movable, by more than sensor noise explains.
func (s *Stage) flipped(sn seen, v verdict) bool {
	if !sn.movable || v.check.Refused == nil {
		return false
	}
	noise := v.near.Found && sn.near.Found && v.near.Dist > sn.near.Dist-s.o.SceneNoise
	return !noise
}
