package all_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"viad/ros/cdr"
	"viad/ros/msg"
	"viad/ros/msg/all"
)

// layouter builds testdata/fastcdr.cpp. In CI it must build; elsewhere Fast CDR may be missing.
func layouter(t *testing.T) string {
	t.Helper()
	missing := t.Fatalf
	if os.Getenv("VIAD_CI") == "" {
		missing = t.Skipf
	}
	if _, err := os.Stat("/usr/include/fastcdr/Cdr.h"); err != nil {
		missing("Fast CDR is not installed (apt-get install g++ libfastcdr-dev): %v", err)
	}
	bin := filepath.Join(t.TempDir(), "fastcdr")
	if out, err := exec.CommandContext(t.Context(), "g++", "-O1", "-o", bin, "testdata/fastcdr.cpp", "-lfastcdr").CombinedOutput(); err != nil {
		missing("g++: %v\n%s", err, out)
	}
	return bin
}

// Every message is laid out byte for byte as Fast CDR lays out its fields, and read in either byte order.
func TestLayoutIsThatOfFastCDR(t *testing.T) {
	bin := layouter(t)
	rnd := rand.New(rand.NewPCG(9, 10))
	var messages []msg.Message
	var in strings.Builder
	for _, n := range all.Names() {
		for range 8 {
			m := make1(t, n)
			w := cdr.NewWriter(nil, cdr.DistroUnknown)
			fill(rnd, structOf(m))
			if m.MarshalCDR(w); w.Err() != nil {
				break // several layouts: TestGolden has them
			}
			var s strings.Builder
			script(&s, structOf(m))
			in.WriteString("le" + s.String() + "\nbe" + s.String() + "\n")
			messages = append(messages, m)
		}
	}
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 2*len(messages) || len(messages) < 1500 {
		t.Fatalf("%d payloads for %d messages", len(lines), len(messages))
	}
	for i, m := range messages {
		little, err := hex.DecodeString(lines[2*i])
		if err != nil {
			t.Fatal(err)
		}
		big, err := hex.DecodeString(lines[2*i+1])
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(t, m, cdr.DistroUnknown); !bytes.Equal(got, little) {
			t.Fatalf("%s\n     got %x\nFast CDR %x", m.TypeName(), got, little)
		}
		back := make1(t, m.TypeName())
		r := cdr.NewReader(big, cdr.DistroUnknown)
		if back.UnmarshalCDR(r); r.Err() != nil || !bytes.Equal(encode(t, back, cdr.DistroUnknown), little) {
			t.Fatalf("%s in big endian: %v", m.TypeName(), r.Err())
		}
	}
}
