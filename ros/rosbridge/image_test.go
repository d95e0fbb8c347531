package rosbridge_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"viad/ros"
	"viad/ros/cdr"
	"viad/ros/msg/all"
	"viad/ros/msg/sensor_msgs"
	"viad/ros/rosbridge"
	"viad/ros/rosbridge/local"
	"viad/ros/rosbridge/server"
)

// picture is 1 MB.
func picture() *sensor_msgs.Image {
	m := &sensor_msgs.Image{Height: 480, Width: 728, Encoding: "bgr8", Step: 728 * 3, Data: make([]byte, 480*728*3)}
	for i := range m.Data {
		m.Data[i] = byte(i * 7 >> 3)
	}
	return m
}

// film publishes n pictures one after the other, each when the one before has come, and returns how long each took from
// publishing to being decoded.
func film(tb testing.TB, e rosbridge.Encoding, n int) []time.Duration {
	tb.Helper()
	g := local.NewGraph()
	robot, bridge := g.Node("/robot"), g.Node("/bridge")
	srv, err := server.NewServer(server.Options{Node: bridge, Types: all.New, Distro: cdr.Jazzy})
	if err != nil {
		tb.Fatal(err)
	}
	h := httptest.NewServer(srv)
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	node, err := rosbridge.Dial(ctx, rosbridge.Config{
		URL: "ws" + strings.TrimPrefix(h.URL, "http"), Distro: cdr.Jazzy, Encodings: map[string]rosbridge.Encoding{"/image": e},
	})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() {
		for _, c := range []ros.Closer{node, robot, bridge} {
			if err := c.Close(); err != nil {
				tb.Error(err)
			}
		}
		srv.Close()
		h.Close()
	}()
	want := picture()
	came := make(chan bool, 1)
	_, err = ros.SubscribeInto(node, "/image", ros.Default(), func(m *sensor_msgs.Image, _ ros.Info) {
		came <- m.Height == want.Height && bytes.Equal(m.Data, want.Data)
	})
	if err != nil {
		tb.Fatal(err)
	}
	p, err := ros.Advertise[sensor_msgs.Image](robot, "/image", ros.Default())
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.Ready(ctx, 1); err != nil {
		tb.Fatal(err)
	}
	took := make([]time.Duration, 0, n)
	for range n {
		from := time.Now()
		if err := p.Send(ctx, want); err != nil {
			tb.Fatal(err)
		}
		select {
		case same := <-came:
			if !same {
				tb.Fatal("another picture came")
			}
		case <-ctx.Done():
			tb.Fatal("a picture did not come")
		}
		took = append(took, time.Since(from))
	}
	return took
}

// A picture of 1 MB comes as it was in every encoding. The times are of both ends in this process and are only told: the
// wire is the loopback, and the server's own encoding is in them.
func TestPictures(t *testing.T) {
	for _, e := range []rosbridge.Encoding{rosbridge.CBORRaw, rosbridge.CBOR, rosbridge.JSON} {
		took := film(t, e, 10)
		slices.Sort(took)
		t.Logf("%s: p50 %v, longest %v", e, took[len(took)/2].Round(10*time.Microsecond), took[len(took)-1].Round(10*time.Microsecond))
	}
}

func BenchmarkPicture(b *testing.B) {
	for _, e := range []rosbridge.Encoding{rosbridge.CBORRaw, rosbridge.CBOR, rosbridge.JSON} {
		b.Run(e.String(), func(b *testing.B) {
			b.SetBytes(int64(len(picture().Data)))
			film(b, e, b.N)
		})
	}
}
