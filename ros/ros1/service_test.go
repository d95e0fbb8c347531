package ros1

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/msg"
)

type (
	setReq struct {
		bare
		Data bool
	}
	setRes struct {
		bare
		Success bool
		Message string
	}
)

func (*setReq) TypeName() string { return "std_srvs/srv/SetBool_Request" }
func (*setRes) TypeName() string { return "std_srvs/srv/SetBool_Response" }

func setBool(name string) ros.Service { return ros.ServiceOf[setReq, setRes](name) }

// theirService is one of rospy's: it says yes, and fails on false.
const theirService = `
import rospy
from std_srvs.srv import SetBool, SetBoolResponse
def f(q):
    if not q.data:
        raise rospy.ServiceException('the brakes are closed')
    return SetBoolResponse(True, 'opened')
rospy.init_node('their_service')
rospy.Service('/theirs', SetBool, f)
print('serving')
rospy.spin()
`

func TestServicesWithRospy(t *testing.T) {
	c := startCore(t)
	needs(t, "rosservice", "python3")
	n := c.node(t, "viad")

	p := c.run(t, "python3", "-c", theirService)
	p.wants(t, "serving")
	call, err := n.Client(setBool("/theirs"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := ready(t)
	for range 2 {
		var a setRes
		if err := call.Call(ctx, &setReq{Data: true}, &a); err != nil || !a.Success || a.Message != "opened" {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if err := call.Call(ctx, &setReq{}, &setRes{}); err == nil || !strings.Contains(err.Error(), "the brakes are closed") {
		t.Errorf("a service that fails: %v, want its words", err)
	}
	p.kill()
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := call.Call(short, &setReq{}, &setRes{}); !errors.As(err, new(*ros.Absent)) || !strings.Contains(err.Error(), "nobody answers there") {
		t.Errorf("the master still lists the killed server: %v, want a *ros.Absent that says so", err)
	}

	_, err = n.Serve(setBool("/ours"), func(_ context.Context, q msg.Message) (msg.Message, error) {
		if !q.(*setReq).Data {
			return nil, errors.New("not while it moves")
		}
		return &setRes{Success: true, Message: "moved"}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.run(t, "rosservice", "call", "/ours", "true").wants(t, `message: "moved"`)
	c.run(t, "rosservice", "call", "/ours", "false").wants(t, "not while it moves")
	c.run(t, "rosservice", "type", "/ours").wants(t, "std_srvs/SetBool")
}

// A request is never sent twice: the server that dies in its middle was asked once.
func TestAskedOnce(t *testing.T) {
	c := startCore(t)
	n, other := c.node(t, "viad"), c.node(t, "other")
	asked := make(chan struct{}, 9)
	_, err := other.Serve(setBool("/once"), func(ctx context.Context, _ msg.Message) (msg.Message, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	call, err := n.Client(setBool("/once"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- call.Call(ready(t), &setReq{}, &setRes{}) }()
	take(t, asked, "the request")
	_ = other.Close()
	if err := take(t, done, "the end of the call"); !errors.As(err, new(*ros.Gone)) {
		t.Errorf("%v, want a *ros.Gone", err)
	}
	if len(asked) > 0 {
		t.Error("the server was asked again")
	}
}
