package e2e

import (
	"bytes"
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestStackOverStdio: the same job by a client that starts its own server, `viad stdio FILE`. Nothing of the
// process can be looked into, so the agent's own eyes judge: red lies as high as green and red together.
func TestStackOverStdio(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "viad")
	if out, err := exec.Command("go", "build", "-o", bin, "viad/cmd/viad").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	file, err := os.ReadFile("../twin-franka.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{
		{"state_dir: var/twin-franka", "state_dir: " + filepath.Join(dir, "state")},
		{"pace: real ", "pace: fast "},
		{"rate: 5 Hz", "rate: 0 Hz"},
	} {
		if !bytes.Contains(file, []byte(edit[0])) {
			t.Fatalf("twin-franka.yaml has no %q", edit[0])
		}
		file = bytes.Replace(file, []byte(edit[0]), []byte(edit[1]), 1)
	}
	launch := filepath.Join(dir, "twin.yaml")
	if err := os.WriteFile(launch, file, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := dialStdio(ctx, bin, "stdio", launch)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	a := &tabletop{agent{t: t, ctx: ctx, c: c}}
	a.stack(red, green)
	up, _, _ := a.measure(red)
	t.Logf("the red cube's top is seen at %v", up.at)
	if math.Abs(up.at[2]-0.095) > 0.006 {
		t.Errorf("the red cube's top is at %.3f m, want 0.095: the cubes are 4.5 and 5 cm high", up.at[2])
	}
	a.do("end_episode", none{})
}
