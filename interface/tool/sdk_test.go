package tool_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"viad/interface/stage"
)

// The official SDK's client, as an independent second opinion.

type bearer struct {
	token string
	rt    *http.Transport
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.rt.RoundTrip(r)
}

func (r *rig) sdk(t *testing.T, token string, progress func()) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { progress() },
	})
	rt := &http.Transport{}
	s, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: r.url, HTTPClient: &http.Client{Transport: bearer{token, rt}}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		rt.CloseIdleConnections()
	})
	return s
}

func sdkCall(t *testing.T, s *sdk.ClientSession, name, args string) (bad bool, kinds, text string) {
	t.Helper()
	p := &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)}
	p.SetProgressToken(name)
	res, err := s.CallTool(context.Background(), p)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return true, "", ""
	}
	var texts []string
	for _, c := range res.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			kinds += "t"
			texts = append(texts, c.Text)
		case *sdk.ImageContent:
			kinds += "i"
		}
	}
	return res.IsError, kinds, strings.Join(texts, "\n")
}

func TestOfficialClient(t *testing.T) {
	r := newRig(t, stage.Face2D)
	beats := make(chan struct{}, 100)
	s := r.sdk(t, "drive", func() { beats <- struct{}{} })
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != len(names2D) {
		t.Fatalf("%v, %v", tools, err)
	}
	if bad, kinds, text := sdkCall(t, s, "observe", `{}`); bad || kinds != "titit" {
		t.Errorf("observe: %q %s", kinds, text)
	}
	if bad, kinds, text := sdkCall(t, s, "nav_translate", `{"dx_m":0.6}`); !bad || kinds != "t" || !strings.Contains(text, "-0.5 to 0.5 m") {
		t.Errorf("nav_translate: %q %s", kinds, text)
	}
	if bad, kinds, text := sdkCall(t, s, "nav_translate", `{"dx_m":0.3}`); bad || kinds != "titit" || !strings.Contains(text, `"staged_base_delta":{"dx_m":0.3000`) {
		t.Errorf("nav_translate: %q %s", kinds, text)
	}
	release := r.held()
	done := make(chan string, 1)
	go func() {
		_, _, text := sdkCall(t, s, "execute_waypoint", `{}`)
		done <- text
	}()
	<-beats
	r.began(t)
	if bad, _, text := sdkCall(t, s, "stop", `{}`); bad || !strings.Contains(text, "stopped, confirmed") {
		t.Errorf("stop: %s", text)
	}
	if text := <-done; !strings.Contains(text, `"result":"stopped_short"`) {
		t.Errorf("execute: %s", text)
	}
	release()
	p, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "drive_mobile_robot"})
	if err != nil || len(p.Messages) != 1 {
		t.Errorf("prompt: %+v %v", p, err)
	}
}
