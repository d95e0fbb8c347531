package launch

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
)

// docs/walkthrough.md is a run of the shipped twin: its calls are made again, in its order, and answer in its words,
// numbers aside; the cube lies on the plate at the end. Its pictures are small.
func TestWalkthroughIsTrue(t *testing.T) {
	doc := text(t, "docs/walkthrough.md")
	d := start(t, "twin-franka.yaml", nil)
	a := connect(t, d.MCP(), d.Token())
	number := regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?`)
	// words are a line without its numbers, up to where details begin that noise may change.
	words := func(line string) string {
		line, _, _ = strings.Cut(line, "; took")
		for _, cut := range []string{" from what is seen", " and saved as"} {
			line, _, _ = strings.Cut(line, cut)
		}
		return number.ReplaceAllString(line, "#")
	}
	calls := 0
	for _, block := range regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(doc, -1) {
		for _, one := range strings.Split("\n"+block[1], "\n> ")[1:] {
			lines := strings.Split(strings.TrimSpace(one), "\n")
			tool, raw, _ := strings.Cut(lines[0], " ")
			args := map[string]any{}
			if raw != "" {
				if err := json.Unmarshal([]byte(raw), &args); err != nil {
					t.Fatalf("%s: %v", lines[0], err)
				}
			}
			if tool == "end_episode" {
				cube, plate := d.Twin().Truth().Objects["red_cube"].P, d.Twin().Truth().Objects["plate"].P
				if off := math.Hypot(cube.X-plate.X, cube.Y-plate.Y); off > 0.07 || cube.Z < 0.02 {
					t.Errorf("the cube is at %v and the plate at %v", cube, plate)
				}
			}
			said, pictures, refused := a.call(tool, args)
			said = strings.TrimSpace(said)
			first, _, _ := strings.Cut(said, "\n")
			if words(first) != words(lines[1]) || refused != strings.Contains(lines[1], " refused: ") || (pictures == 0) != refused {
				t.Errorf("%s answers with %d pictures:\n%s\nand the page says:\n%s", lines[0], pictures, first, lines[1])
			}
			for _, l := range lines[1:] { // what the page shows of a kind of line is a kind that comes
				if key, _, ok := strings.Cut(l, ": "); ok && !refused && !strings.Contains(said, key+": ") {
					t.Errorf("%s: the page shows %q, and there is no such line in\n%s", lines[0], l, said)
				}
			}
			calls++
		}
	}
	if calls < 20 {
		t.Errorf("only %d calls were found", calls)
	}
	pictures := regexp.MustCompile(`!\[[^\]]+\]\(([^)]+)\)`).FindAllStringSubmatch(doc, -1)
	for _, m := range pictures {
		if b := text(t, "docs/"+m[1]); len(b) > 150<<10 || !strings.HasPrefix(b, "\xff\xd8") {
			t.Errorf("%s: %d bytes", m[1], len(b))
		}
	}
	if len(pictures) < 2 {
		t.Errorf("%d pictures", len(pictures))
	}
}
