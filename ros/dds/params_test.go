package dds_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/dds"
	"viad/ros/msg/rcl_interfaces"
)

func TestParameters(t *testing.T) {
	there, here := open(t, dds.Config{Node: "arm", Domain: 42, Distro: cdr.Jazzy}), open(t, dds.Config{Node: "cli", Domain: 42})
	ranged := rcl_interfaces.ParameterDescriptor{Description: "m/s", FloatingPointRange: []rcl_interfaces.FloatingPointRange{{FromValue: 0, ToValue: 0.5}}}
	var asked []string
	server, err := ros.ServeParams(there, []ros.Declared{
		{Param: ros.P("speed", 0.25), Descriptor: ranged},
		{Param: ros.P("gains.p", []float64{1, 2})},
		{Param: ros.P("gains.i.windup", int64(3))},
		{Param: ros.P("model", "fr3"), Descriptor: rcl_interfaces.ParameterDescriptor{ReadOnly: true}},
		{Param: ros.P("names", []string{"a", "b"})},
	}, func(p []ros.Param) error {
		for _, x := range p {
			asked = append(asked, x.Name)
			if x.Name == "gains.i.windup" && x.Value.IntegerValue == 13 {
				return errors.New("thirteen brings bad luck")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	events := make(chan *rcl_interfaces.ParameterEvent, 8)
	if _, err := ros.Subscribe(here, "/parameter_events", ros.Default(), func(m *rcl_interfaces.ParameterEvent, _ ros.Info) { events <- m }); err != nil {
		t.Fatal(err)
	}
	c, err := ros.NewParamClient(here, "/arm")
	if err != nil {
		t.Fatal(err)
	}
	names, err := c.List(ctx, "")
	if want := []string{"gains.i.windup", "gains.p", "model", "names", "speed"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("list: %q, %v; want %q", names, err, want)
	}
	if names, err = c.List(ctx, "gains"); err != nil || !slices.Equal(names, []string{"gains.i.windup", "gains.p"}) {
		t.Errorf("list of gains: %q, %v", names, err)
	}
	got, err := c.Get(ctx, "speed", "gains.p", "names")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := ros.As[float64](got[0]); err != nil || v != 0.25 {
		t.Errorf("speed is %v, %v", v, err)
	}
	if v, err := ros.As[[]float64](got[1]); err != nil || !slices.Equal(v, []float64{1, 2}) {
		t.Errorf("gains.p is %v, %v", v, err)
	}
	if _, err := ros.As[int64](got[0]); err == nil {
		t.Error("a float is taken for an integer")
	}
	if _, err := c.Get(ctx, "speeed"); err == nil || !strings.Contains(err.Error(), "speeed") {
		t.Errorf("getting what is not there: %v", err)
	}
	if d, err := c.Describe(ctx, "speed"); err != nil || d[0].FloatingPointRange[0].ToValue != 0.5 || d[0].Type != rcl_interfaces.ParameterType_PARAMETER_DOUBLE || d[0].Name != "speed" {
		t.Errorf("describe: %+v, %v", d, err)
	}
	for _, bad := range []struct {
		p    ros.Param
		want string
	}{
		{ros.P("speed", 0.75), "outside"},
		{ros.P("speed", math.NaN()), "outside"},
		{ros.P("speed", "fast"), "double"},
		{ros.P("model", "panda"), "read-only"},
		{ros.P("speeed", 0.1), "no parameter"},
		{ros.P("gains.i.windup", int64(13)), "bad luck"},
	} {
		if err := c.Set(ctx, bad.p); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("set %s = %s: %v, want %q", bad.p.Name, bad.p, err, bad.want)
		}
	}
	if err := c.Set(ctx, ros.P("speed", 0.5), ros.P("gains.i.windup", int64(5))); err != nil {
		t.Fatal(err)
	}
	if err := c.SetAtomically(ctx, ros.P("speed", 0.125), ros.P("model", "panda")); err == nil {
		t.Error("a read-only parameter was set among others")
	}
	if p, _ := server.Get("speed"); p.Value.DoubleValue != 0.5 {
		t.Errorf("speed is %s after a refused set of several, want 0.5", p)
	}
	select {
	case e := <-events:
		if e.Node != "/arm" || e.ChangedParameters[0].Name != "speed" || e.ChangedParameters[0].Value.DoubleValue != 0.5 {
			t.Errorf("event %+v", e)
		}
	case <-ctx.Done():
		t.Error("no event of a changed parameter")
	}
	if want := []string{"gains.i.windup", "speed", "gains.i.windup"}; !slices.Equal(asked, want) {
		t.Errorf("the owner was asked for %q, want %q", asked, want)
	}
}

func TestParamText(t *testing.T) {
	for _, s := range []string{"true", "3", "-7", "0.5", "1.0", "text", `"3"`, "[1, 2]", "[1.0, 2.5]", "[true, false]", `["a, b", "c"]`, "[]", "a b"} {
		if got := ros.ParseParam("x", s); got.String() != s {
			t.Errorf("%s reads as %s (%s)", s, got, ros.ParamTypeName(got.Value.Type))
		}
	}
	if p := ros.ParseParam("x", "[1, 2.5]"); !slices.Equal(p.Value.DoubleArrayValue, []float64{1, 2.5}) {
		t.Errorf("a list of both kinds of numbers: %+v", p)
	}
}
