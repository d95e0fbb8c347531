package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"viad/drivers/robot"
	"viad/interface/stage"
	"viad/safety"
)

const (
	// progressEvery is the period of progress notifications. Clients give up when nothing comes for 60 s.
	progressEvery = time.Second
	// progressGap is the least time between the last notification and the result; a notification that is
	// closer is lost in the transport.
	progressGap = 10 * time.Millisecond
	// callCap bounds a call on the robot's clock: 30 s of motion, then stop, verification and pictures.
	callCap = 40 * time.Second
	// wallCap bounds a call on the wall clock, under the 300 s after which clients give up whatever comes.
	wallCap = 240 * time.Second
	// stopTime is how long the stop tool waits for a confirmed standstill, wall clock.
	stopTime = 15 * time.Second
)

// execute runs the staged waypoint, or gives the stored result of the run that this call repeats.
func (s *Server) execute(ctx context.Context, c *call) (*reply, error) {
	r, runCtx, old := s.runs.claim(context.WithoutCancel(ctx), c)
	c.run = r
	if old == fresh {
		go s.work(runCtx, c, r)
	}
	rep := s.await(ctx, c, r)
	if old != fresh && r.finished() {
		rep = repeated(rep, r, old)
	}
	return rep, nil
}

// repeated marks a stored result as one. A run that was refused has no number: the next one takes it.
func repeated(rep *reply, r *run, old why) *reply {
	if r.moved() {
		return rep.before(fmt.Sprintf("repeated: %s. This is the stored result of waypoint %d; nothing moved now, and what is staged stays staged.", old, r.id))
	}
	c := *rep
	c.blocks = []block{{text: oneLine(fmt.Sprintf("repeated: %s, and this is its stored answer; a call with a request id of its own is judged anew. %s", old, rep.blocks[0].text))}}
	return &c
}

// work drives the stage and stores what came of it, whether or not anybody still waits.
func (s *Server) work(ctx context.Context, c *call, r *run) {
	var rep *reply
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic in an execute", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			rep = &reply{bad: true, blocks: []block{{text: "execute_waypoint failed: an internal fault, which is in the daemon's log. If the robot moves, call stop; then look again."}}}
		}
		s.runs.end(r, rep)
	}()
	report, err := s.o.Stage.Execute(ctx, c.at, r.id)
	if report == nil {
		if err == nil {
			err = errors.New("the stage gave no report")
		}
		if errors.Is(context.Cause(ctx), errStopped) {
			err = &safety.Refused{Rule: "stopped", Value: "a stop before the motion began", Next: "What was staged is still staged: look again, then execute."}
		}
		rep = failure(c.def, err)
		return
	}
	if err != nil && report.Message == "" {
		with := *report
		with.Message = err.Error()
		report = &with
	}
	rep, err = s.executed(c, report)
	if err != nil {
		rep = message(fmt.Sprintf("%s. No picture could be made: %v.", outcomeText(report), err))
		rep.report = report
	}
}

// await sends progress until the run is done, the request ends or the call has taken too long.
func (s *Server) await(ctx context.Context, c *call, r *run) *reply {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	if !r.finished() {
		c.progress(ctx, "execute_waypoint: checking and moving")
	}
	for {
		select {
		case <-r.done:
			c.settle()
			return r.reply
		case <-ctx.Done():
			return message("The request ended before the motion did; observe or screenshot shows its result.")
		case <-tick.C:
			took := s.o.Clock.Now().Sub(c.at)
			if took >= callCap || time.Since(c.began) >= wallCap {
				return s.overdue(ctx, c, took)
			}
			c.progress(ctx, fmt.Sprintf("execute_waypoint: running, %.1f s", took.Seconds()))
		}
	}
}

// overdue stops the robot when a call has outlived its cap.
func (s *Server) overdue(ctx context.Context, c *call, took time.Duration) *reply {
	s.log.Error("call cap", "tool", c.def.name, "took", took)
	ctx, cancel := context.WithTimeout(robot.By(context.WithoutCancel(ctx), "the cap on calls"), stopTime)
	defer cancel()
	stopped := robot.StopConfirmed.String()
	if err := s.o.Stage.Stop(ctx); err != nil {
		stopped = fmt.Sprintf("%s (%v)", robot.StopNotConfirmed, err)
	}
	c.settle()
	return &reply{bad: true, blocks: []block{{text: oneLine(fmt.Sprintf(
		"execute_waypoint failed: the call took %s, limit %s. Robot: %s. Look again: the result is shown there when it is ready.",
		seconds(took.Seconds()), seconds(callCap.Seconds()), stopped,
	))}}}
}

// progress tells the client that the call is alive, when it asked for that.
func (c *call) progress(ctx context.Context, msg string) {
	if c.token == nil {
		return
	}
	c.steps++
	n := mcp.NewProgressNotification(c.token, c.steps, nil, &msg)
	if err := c.s.notify(ctx, n); err != nil {
		c.s.log.Debug("progress not sent", "tool", c.def.name, "err", err)
	}
	c.lastProgress = time.Now()
}

// settle waits until the last progress notification is far enough away.
func (c *call) settle() {
	if c.lastProgress.IsZero() {
		return
	}
	if left := progressGap - time.Since(c.lastProgress); left > 0 {
		time.Sleep(left)
	}
}

// withLost adds the result of the caller's last motion when its own reply never arrived.
func (s *Server) withLost(c *call, r *reply) *reply {
	if r.bad {
		return r
	}
	old := s.runs.result(c.who.Name)
	if old == nil {
		return r
	}
	c.tells = old
	text := fmt.Sprintf("result of execute_waypoint %d, whose reply was not delivered:", old.id)
	for _, t := range old.reply.texts() {
		text += "\n" + t
	}
	return r.before(text)
}

// delivered settles, once the fate of a reply is known, what the client has been told.
func (s *Server) delivered(c *call, ok bool) {
	if c.run != nil {
		told := ok && c.run.finished()
		if told && c.run.moved() {
			s.o.Stage.MarkDelivered(c.run.id)
		}
		if alone := s.runs.leave(c.run, told); alone && !ok {
			s.hangup(c.run)
		}
	}
	if c.tells != nil && ok {
		s.runs.tell(c.tells)
		s.o.Stage.MarkDelivered(c.tells.id)
	}
}

// hangup ends the context of a motion that nobody waits for any more; the stage then stops it or lets it
// finish, as the operator chose.
func (s *Server) hangup(r *run) {
	s.log.Warn("request of a motion ended early", "waypoint", r.id, "principal", r.who)
	r.cancel(fmt.Errorf("%w: %s has gone or cancelled it", errHangup, r.who))
}

// halt stops the robot for anybody, whatever runs.
func (s *Server) halt(ctx context.Context, c *call) (*reply, error) {
	ran := s.o.Stage.Snapshot().Moving
	// An execute that is still being checked must not begin after this.
	s.runs.abort(errStopped, func() bool { return s.o.Stage.Snapshot().Moving })
	ctx, cancel := context.WithTimeout(robot.By(context.WithoutCancel(ctx), "the stop tool of "+c.who.Name), stopTime)
	defer cancel()
	if err := s.o.Stage.Stop(ctx); err != nil {
		return &reply{bad: true, blocks: []block{{text: notStopped(err)}}}, nil
	}
	next := "What was staged is still staged; look again before the next execute_waypoint."
	if ran && s.o.Face == stage.Face2D { // after a motion, also one cut short, the target rests on the real gripper
		next = "The waypoint that ran is no longer staged: look where the robot is, then stage what is still missing."
	}
	return message("stop: " + robot.StopConfirmed.String() + ". " + next), nil
}

// notStopped says that a stop was not confirmed, and why: one sentence of what may be several lines.
func notStopped(err error) string {
	why := strings.TrimPrefix(err.Error(), robot.StopNotConfirmed.String())
	if why == "" {
		return "stop: " + robot.StopNotConfirmed.String() + "."
	}
	return oneLine(fmt.Sprintf("stop: %s; %s.", robot.StopNotConfirmed, strings.ReplaceAll(strings.Trim(why, " :;"), "\n", "; ")))
}

// alive sends progress at once and every second until stop is called, which waits for the last one.
func (c *call) alive(ctx context.Context, msg string) (stop func()) {
	c.progress(ctx, msg)
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.progress(ctx, msg)
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-gone
		c.settle()
	}
}

// endEpisode saves and ends the episode, and frees the seat.
func (s *Server) endEpisode(ctx context.Context, c *call) (Verdict, error) {
	stop := c.alive(ctx, "end_episode: saving")
	defer stop()
	var v Verdict
	err := s.o.Stage.EndEpisode(context.WithoutCancel(ctx), func(ctx context.Context) error {
		if s.o.Episode == nil {
			return nil
		}
		var err error
		v, err = s.o.Episode.End(ctx)
		return err
	})
	if err == nil && s.o.Seat != nil {
		s.o.Seat.Free(c.who.Name)
	}
	return v, err
}

// verdictText is what may be said of an episode that ended.
func verdictText(v Verdict) string {
	t := "episode ended"
	if v.Saved != "" {
		t += " and saved as " + v.Saved
	}
	t += "."
	if v.Judged {
		if v.Succeeded {
			t += " Task: succeeded."
		} else {
			t += " Task: not succeeded."
		}
	}
	if v.Reset {
		t += " The world was reset; a new episode begins."
	}
	if v.Note != "" {
		t += " " + sentence(v.Note)
	}
	return t
}

// outcomeText is how a motion ended, in one line.
func outcomeText(r *stage.Report) string {
	t := fmt.Sprintf("executed waypoint %d: %s; %s; took %s (planned %s)",
		r.ID, r.Outcome.Result, r.Outcome.Stop, seconds(r.Outcome.Took.Seconds()), seconds(r.Outcome.Planned.Seconds()))
	if r.Message != "" {
		t += "; " + oneLine(r.Message)
	} else if r.Outcome.Why != "" {
		t += "; " + oneLine(r.Outcome.Why)
	}
	return t
}

const succeeded = "TASK SUCCEEDED. The episode is done and this session will be closed: stop here and call no further tool."
