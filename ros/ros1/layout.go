package ros1

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/bluenviron/goroslib/v2/pkg/actionproc"
	rosmsg "github.com/bluenviron/goroslib/v2/pkg/msg"
	"github.com/bluenviron/goroslib/v2/pkg/msgproc"
	"github.com/bluenviron/goroslib/v2/pkg/serviceproc"

	"viad/ros"
	"viad/ros/msg"
)

// signature is what a connection is checked against: the type's ROS 1 name, its checksum and its text.
type signature struct{ name, md5, definition string }

// part is a message, or a half of a service, or a part of an action: the struct of its layout and what it belongs to.
type part struct {
	layout reflect.Type
	whole  reflect.Type // the service or the action; the layout itself for a message
}

// types knows every ROS 1 type by its ROS 2 name and keeps the codecs that were compiled.
type types struct {
	parts map[string]part

	mu     sync.Mutex
	codecs map[codecKey]codec
}

type codecKey struct{ one, two reflect.Type }

func newTypes() *types {
	t := &types{parts: make(map[string]part), codecs: make(map[codecKey]codec)}
	for _, m := range messages() {
		t.parts[modern(rosName(m), "msg")] = part{m, m}
	}
	for _, s := range services() {
		name := modern(rosName(s), "srv")
		for i, f := range fields(s) {
			t.parts[name+[]string{"_Request", "_Response"}[i]] = part{f.Type, s}
		}
	}
	for _, a := range actions() {
		name := modern(strings.TrimSuffix(rosName(a), "Action"), "action")
		for i, f := range fields(a) {
			t.parts[name+[]string{"_Goal", "_Result", "_Feedback"}[i]] = part{f.Type, a}
		}
	}
	return t
}

// of finds the part that m is and the codec between the two.
func (t *types) of(m msg.Message) (part, codec, error) {
	name := m.TypeName()
	p, ok := t.parts[name]
	if !ok {
		instead := "add its layout to ros/ros1/definitions.go"
		if strings.HasPrefix(name, "rcl_interfaces/") {
			instead = "ROS 1 keeps parameters at its master: use the node's Param"
		}
		return part{}, codec{}, &ros.Unsupported{Wire: wire, What: "the type " + name, Instead: instead}
	}
	v := reflect.TypeOf(m)
	if v.Kind() != reflect.Pointer {
		return part{}, codec{}, fmt.Errorf("a message of %s has to be a pointer, this is %s", name, v)
	}
	key := codecKey{p.layout, v.Elem()}
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.codecs[key]
	if !ok {
		var err error
		if c, err = compile(key.one, key.two, name); err != nil {
			return part{}, codec{}, err
		}
		t.codecs[key] = c
	}
	return p, c, nil
}

// encode appends m to b.
func (t *types) encode(b []byte, m msg.Message) ([]byte, error) {
	_, c, err := t.of(m)
	if err != nil {
		return b, err
	}
	return c.write(b, reflect.ValueOf(m).Elem())
}

// decode reads all of b into m.
func (t *types) decode(b []byte, m msg.Message, share bool) error {
	_, c, err := t.of(m)
	if err != nil {
		return err
	}
	r := &reader{b: b, share: share}
	c.read(r, reflect.ValueOf(m).Elem())
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes are left over behind the last field", len(r.b))
	}
	if r.err != nil {
		return fmt.Errorf("reading %s: %w", m.TypeName(), r.err)
	}
	return nil
}

func (p part) message() (signature, error) {
	return sign(rosName(p.whole), reflect.Zero(p.whole).Interface())
}

func (p part) service() (signature, error) {
	md5, err := serviceproc.MD5(reflect.Zero(p.whole).Interface())
	return signature{name: rosName(p.whole), md5: md5}, err
}

// action has the signatures of the goal, the result and the feedback topic.
func (p part) action() (goal, result, feedback signature, err error) {
	g, r, f, err := actionproc.Messages(reflect.Zero(p.whole).Interface())
	if err != nil {
		return goal, result, feedback, err
	}
	name := rosName(p.whole)
	if goal, err = sign(name+"Goal", g); err != nil {
		return goal, result, feedback, err
	}
	if result, err = sign(name+"Result", r); err != nil {
		return goal, result, feedback, err
	}
	feedback, err = sign(name+"Feedback", f)
	return goal, result, feedback, err
}

func sign(name string, zero any) (signature, error) {
	md5, err := msgproc.MD5(zero)
	if err != nil {
		return signature{}, err
	}
	definition, err := msgproc.Definition(zero)
	return signature{name, md5, definition}, err
}

// fields of a layout, without goroslib's marks.
func fields(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		switch f.Type {
		case reflect.TypeFor[rosmsg.Package](), reflect.TypeFor[rosmsg.Name](), reflect.TypeFor[rosmsg.Definitions]():
		default:
			out = append(out, f)
		}
	}
	return out
}

func rosPackage(t reflect.Type) string {
	f, _ := t.FieldByName("Package")
	return f.Tag.Get("ros")
}

func typeName(t reflect.Type) string {
	if f, ok := t.FieldByName("Name"); ok && f.Type == reflect.TypeFor[rosmsg.Name]() {
		return f.Tag.Get("ros")
	}
	return t.Name()
}

// rosName is the name in ROS 1: "sensor_msgs/JointState".
func rosName(t reflect.Type) string {
	if t.Kind() != reflect.Struct || rosPackage(t) == "" {
		return ""
	}
	return rosPackage(t) + "/" + typeName(t)
}

// modern is ROS 2's name for a ROS 1 type: kind is msg, srv or action, and an action comes without its "Action".
func modern(name, kind string) string {
	old := name
	if kind == "action" {
		old += "Action"
	}
	if other, ok := moved()[old]; ok {
		return other
	}
	pkg, base, ok := strings.Cut(name, "/")
	if !ok {
		return name
	}
	return pkg + "/" + kind + "/" + base
}
