package launch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// shellLines are the commands in the sh blocks of README.md.
func shellLines(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text(t, "README.md"), -1) {
		out = append(out, strings.Split(strings.TrimSpace(m[1]), "\n")...)
	}
	if len(out) < 10 {
		t.Fatalf("only %d commands found in README.md", len(out))
	}
	return out
}

// Every command that the README shows is run by CI, word for word, or is one of those that are made to be
// run by hand.
func TestReadmeCommandsAreRun(t *testing.T) {
	ci := text(t, ".ci/run") + text(t, ".ci/commands")
	for _, c := range shellLines(t) {
		if c != ".ci/run" && !strings.Contains(ci, c+"\n") && !strings.Contains(ci, c+" <") {
			t.Errorf("README.md shows %q, which neither .ci/run nor .ci/commands runs", c)
		}
	}
}

func TestReadmeNamesWhatThereIs(t *testing.T) {
	readme, makefile := text(t, "README.md"), text(t, "Makefile")
	for _, m := range regexp.MustCompile("`?make ([a-z-]+)").FindAllStringSubmatch(readme, -1) {
		if !strings.Contains(makefile, "\n"+m[1]+":") {
			t.Errorf("README.md names make %s, which the Makefile does not have", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(readme, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("README.md links to %s: %v", m[1], err)
		}
	}
	for _, bad := range []string{"/work/", "/root/", "/home/"} {
		if strings.Contains(readme, bad) {
			t.Errorf("README.md holds a path of some machine: %s", bad)
		}
	}
}

// The README's lists of tools are the lists that the daemon serves.
func TestReadmeNamesEveryTool(t *testing.T) {
	readme := text(t, "README.md")
	for _, file := range []string{"twin-franka.yaml", "twin-stretch4.yaml"} {
		d := start(t, file, nil)
		names := connect(t, d.MCP(), d.Token()).tools()
		for _, n := range names {
			if !strings.Contains(readme, "`"+n+"`") {
				t.Errorf("README.md does not name the tool %s of %s", n, file)
			}
		}
		if want := map[string]int{"3d": 19, "2d": 14}[d.cfg.Face]; len(names) != want || !slices.Contains(names, "stop") {
			t.Errorf("%s has %d tools, want %d", file, len(names), want)
		}
	}
}

// The lines that a start prints are those that the README shows.
func TestBannerIsWhatTheReadmeShows(t *testing.T) {
	c := testConfig(t, "twin-franka.yaml", func(c *Config) { c.Listen.Address = "127.0.0.1:8787" })
	var b strings.Builder
	if err := c.banner(&b, c.Listen.Address, "viad_...", "x", certificate{}); err != nil {
		t.Fatal(err)
	}
	readme := strings.ReplaceAll(text(t, "README.md"), "\n", "\n  ")
	for _, block := range []string{"claude mcp add", "[mcp_servers.viad]"} {
		at := strings.Index(b.String(), block)
		if at < 0 {
			t.Fatalf("the banner lacks %s", block)
		}
		shown, _, _ := strings.Cut(b.String()[at:], "\n\n")
		if !strings.Contains(readme, strings.TrimSpace(shown)) {
			t.Errorf("README.md does not show what a start prints:\n%s", shown)
		}
	}
}

// What the README shows for another machine is a launch file that works, and the lines are those that its start prints.
func TestReadmeForAnotherMachine(t *testing.T) {
	readme := text(t, "README.md")
	_, block, _ := strings.Cut(readme, "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	for n := 0; strings.Contains(block, "sha256:..."); n++ {
		block = strings.Replace(block, "sha256:...", HashToken(strings.Repeat("x", n)), 1)
	}
	c, err := Parse("README.md", []byte(block))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(c.trustLines("0.0.0.0:8787", certificate{path: "x", finger: "y", own: true}), "\n") {
		if strings.HasPrefix(line, "  ") && line != "  y" && !strings.Contains(readme, "\n"+strings.TrimSpace(line)+"\n") {
			t.Errorf("README.md does not show what a start prints: %s", line)
		}
	}
}
