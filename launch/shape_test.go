package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"viad/interface/tool/door"
)

// TestMistakesAreToldInWords: no mistake is taken for something else, and none is told in Go's types.
func TestMistakesAreToldInWords(t *testing.T) {
	text := shipped(t, "twin-franka.yaml")
	hash := HashToken("the same for both")
	for _, c := range []struct{ old, new, says, at string }{
		{"  seed: 1  ", "  seed: 1.5  ", "a whole number", "seed: 1.5"},
		{"  seed: 1  ", "  seed: [1]  ", "a whole number", "seed: [1]"},
		{"  seed: 1  ", "  seed: one  ", "a whole number", "seed: one"},
		{"  seed: 1  ", "  seed: true  ", "a whole number", "seed: true"},
		{"  steps: 50  ", "  steps: 5.5  ", "a whole number", "steps: 5.5"},
		{"  enabled: true", "  enabled: 1", "true or false", "enabled: 1"},
		{"  enabled: true", "  enabled: [true]", "true or false", "enabled: [true]"},
		{"name: twin-franka", "name: [a]", "a word or a text", "name: [a]"},
		{"name: twin-franka", "name: {a: b}", "a word or a text", "name: {a: b}"},
		{"  hosts: []", "  hosts: robot.lab", "a list", "hosts: robot.lab"},
		{"  hosts: []", "  hosts: [[a]]", "a word or a text", "[[a]]"},
		{"face: 3d", "face:", "has no value", "face:"},
		{"  seed: 1  ", "  sead: 1  ", `no key "sead" here: seed is probably meant`, "sead: 1"},
		{"name: twin-franka", "nama: twin-franka", `no key "nama" here: name is probably meant`, "nama:"},
		{"name: twin-franka", "zzz: twin-franka", `no key "zzz" here: the keys are name, state_dir, robot`, "zzz:"},
		{"tokens: generate", "tokens: [alice]", "a block of keys", "[alice]"},
		{"tokens: generate", "tokens:\n  - {name: a, role: driver, hsah: x}", "hash is probably meant", "hsah"},
		{"tokens: generate", fmt.Sprintf("tokens:\n  - {name: a, role: watcher, hash: %q}\n  - {name: b, role: operator, hash: %q}", hash, hash), `"b" has the token of "a"`, "name: b"},
	} {
		if strings.Count(text, c.old) != 1 {
			t.Errorf("%q stands %d times in the manual", c.old, strings.Count(text, c.old))
			continue
		}
		_, err := Parse("x.yaml", []byte(strings.Replace(text, c.old, c.new, 1)))
		if err == nil {
			t.Errorf("%q was accepted", c.new)
			continue
		}
		msg := err.Error()
		if !strings.Contains(msg, c.says) || !strings.HasPrefix(msg, "x.yaml:") {
			t.Errorf("%q: want %q, got\n%s", c.new, c.says, msg)
		}
		if _, at, _ := strings.Cut(msg, "\n>"); !strings.Contains(strings.SplitN(at, "\n", 2)[0], c.at) {
			t.Errorf("%q: the line shown is not that of %q:\n%s", c.new, c.at, msg)
		}
		for _, foreign := range []string{"unmarshal", "interface {}", "struct", "int64"} {
			if strings.Contains(msg, foreign) {
				t.Errorf("%q: speaks of %q:\n%s", c.new, foreign, msg)
			}
		}
	}
}

func TestWhatIsNoLaunchFileIsToldAtOnce(t *testing.T) {
	for text, says := range map[string]string{
		"a: " + strings.Repeat("[", 100000):            "nested more than 64 deep",
		"a: " + strings.Repeat("[\n", 100000):          "nested more than 64 deep",
		strings.Repeat("- ", 3000):                     "longer than 4096",
		strings.Repeat("name: x # and so on\n", 60000): "at most 1048576",
		"hello": "a block of keys",
		"[1]":   "a block of keys",
		"":      "the file is empty",
	} {
		if _, err := Parse("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: got %v, want %q", text, err, says)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"seed", "seed", 0}, {"sead", "seed", 1}, {"nama", "name", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"zone", "nozze", 3}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("%q to %q takes %d, got %d", c.a, c.b, c.want, got)
		}
	}
}

// TestTokenLineTakesAnyName: a name with signs that mean something in YAML can add no role to itself.
func TestTokenLineTakesAnyName(t *testing.T) {
	for _, name := range []string{"alice", "Jörg", "a b", "name: {x", "x, role: operator", "#", "'", "5", "-"} {
		line := fmt.Sprintf("tokens:\n  - {name: %s, role: watcher, hash: %q}\n", word(name), HashToken("t"))
		c, err := Parse("x.yaml", []byte(line))
		if err != nil || len(c.Tokens.List) != 1 || c.Tokens.List[0].Name != name || c.Tokens.List[0].Role != door.Watcher.String() {
			t.Errorf("%q: %v\n%s", name, err, line)
		}
	}
}

func TestTheCommandLineIsBlamedForWhatItSays(t *testing.T) {
	o := overrides{Listen: "0.0.0.0:1"}
	_, err := o.read("twin-franka.yaml")
	if err == nil || !strings.Contains(err.Error(), "with what the command line says") || strings.Contains(err.Error(), "127.0.0.1:8787") || strings.Contains(err.Error(), "^") {
		t.Errorf("got %v", err)
	}
}

// TestOneDaemonPerRecordFolder: two would count each other's running episode against the quota and remove it.
func TestOneDaemonPerRecordFolder(t *testing.T) {
	a, err := openStateDir(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := openStateDir(filepath.Join(t.TempDir(), "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	folder := t.TempDir()
	if err := a.holdRecord(folder); err != nil {
		t.Fatal(err)
	}
	if err := b.holdRecord(folder); err == nil || !strings.Contains(err.Error(), "another viad records into "+folder) {
		t.Errorf("got %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.holdRecord(folder); err != nil {
		t.Errorf("after the other has ended: %v", err)
	}
	if err := b.holdRecord(filepath.Join(folder, "nowhere")); err == nil || !strings.Contains(err.Error(), "record.folder") {
		t.Errorf("got %v", err)
	}
}

func TestRubbishInTheStateFolderIsAStartFailure(t *testing.T) {
	state := t.TempDir()
	if err := os.MkdirAll(filepath.Join(state, "viad.sock", "something"), 0o700); err != nil {
		t.Fatal(err)
	}
	ends(t, viad(t, "run", "twin-franka.yaml", "--listen", "127.0.0.1:0", "--state-dir", state), ExitStart, "cannot start", "operator socket")
	for _, rubbish := range []string{"short", strings.Repeat("\x00\xff", 50), strings.Repeat("a", 40) + "\nb", strings.Repeat("a", 100000)} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(rubbish), 0o600); err != nil {
			t.Fatal(err)
		}
		if token, err := development(path); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%.20q: got %.20q, %v", rubbish, token, err)
		}
	}
}
