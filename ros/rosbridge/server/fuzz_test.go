package server

import (
	"context"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/msg/all"
	"viad/ros/msg/control_msgs"
	"viad/ros/msg/std_srvs"
	"viad/ros/rosbridge/local"
)

// FuzzOperation feeds the server anything that a client may send: nothing panics, and the client can be ended.
func FuzzOperation(f *testing.F) {
	for _, s := range []string{
		`{"op":"advertise","topic":"/t","type":"std_msgs/msg/String"}`, `{"op":"publish","topic":"/t","msg":{"data":"x"}}`,
		`{"op":"subscribe","id":"1","topic":"/t","type":"std_msgs/String","compression":"cbor","queue_length":-5,"fragment_size":-1}`,
		`{"op":"unsubscribe","topic":"/t"}`, `{"op":"call_service","service":"/set","args":{"data":true}}`, `{"op":"call_service","service":"rosapi/topics","args":[]}`,
		`{"op":"send_action_goal","id":7,"action":"/arm","action_type":"control_msgs/action/FollowJointTrajectory","args":{},"feedback":true}`,
		`{"op":"cancel_action_goal","id":7,"action":"/arm"}`, `{"op":"advertise_action","action":"/mine","type":"control_msgs/action/FollowJointTrajectory"}`,
		`{"op":"advertise_service","service":"/mine","type":"std_srvs/srv/SetBool"}`, `{"op":"service_response","service":"/mine","id":"x","values":{}}`,
		`{"op":"action_result","action":"/mine","id":"x","status":4,"result":true}`, `{"op":"status"}`, `{`, `[1]`, `{"op":"publish","topic":"/t","msg":{"header":null}}`,
		`{"op":"advertise","topic":"/pose","type":"geometry_msgs/msg/PoseStamped"}`,
	} {
		f.Add([]byte(s), []byte(s))
	}
	g := local.NewGraph()
	n := g.Node("/robot")
	_, err := n.Serve(ros.ServiceOf[std_srvs.SetBool_Request, std_srvs.SetBool_Response]("/set"), func(context.Context, msg.Message) (msg.Message, error) {
		return new(std_srvs.SetBool_Response), nil
	})
	if err != nil {
		f.Fatal(err)
	}
	_, err = n.ServeAction(
		ros.ActionOf[control_msgs.FollowJointTrajectory_Goal, control_msgs.FollowJointTrajectory_Result, control_msgs.FollowJointTrajectory_Feedback]("/arm"),
		ros.ActionHandler{Run: func(context.Context, ros.GoalID, msg.Message, func(msg.Message)) (msg.Message, ros.GoalStatus) {
			return new(control_msgs.FollowJointTrajectory_Result), ros.GoalSucceeded
		}},
	)
	if err != nil {
		f.Fatal(err)
	}
	bridge := g.Node("/bridge")
	srv, err := NewServer(Options{Node: bridge, Types: all.New, Distro: cdr.Jazzy, Caveats: Caveats{FillStamps: true, StatusWords: true}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { shut(bridge); shut(n) })
	f.Fuzz(func(t *testing.T, one, two []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		c := newClient(srv, nil, cancel)
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			for {
				select {
				case <-c.out:
				case <-ctx.Done():
					return
				}
			}
		}()
		c.incoming(ctx, one)
		c.incoming(ctx, two)
		cancel()
		c.finish()
		c.wg.Wait()
		<-drained
	})
}
