package launch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/safety.md says where each rule is kept and which test proves it: both exist, and no rule of the guard is
// missing.
func TestSafetyDocumentIsTrue(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs", "safety.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	tests, funcs, rules := map[string]bool{}, map[string]bool{}, []string{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if s.test {
					tests[s.room+"/"+d.Name.Name] = true
				} else {
					funcs[s.path+":"+d.Name.Name] = true
				}
			case *ast.GenDecl:
				if s.room == "safety" && !s.test {
					rules = append(rules, rulesOf(t, d)...)
				}
			}
		}
	}
	named := regexp.MustCompile(`([a-z0-9_/]+)/((?:Test|Fuzz)\w+)`).FindAllStringSubmatch(text, -1)
	for _, m := range named {
		if !tests[m[1]+"/"+m[2]] {
			t.Errorf("there is no test %s in %s", m[2], m[1])
		}
	}
	kept := regexp.MustCompile(`([a-z0-9_/]+\.go):(\w+)`).FindAllStringSubmatch(text, -1)
	for _, m := range kept {
		if !funcs[m[1]+":"+m[2]] {
			t.Errorf("there is no function %s in %s", m[2], m[1])
		}
	}
	for _, r := range rules {
		if !strings.Contains(text, "`"+r+"`") {
			t.Errorf("the rule %q is not in docs/safety.md", r)
		}
	}
	if len(named) < 60 || len(kept) < 40 || len(rules) < 15 {
		t.Errorf("%d tests, %d functions, %d rules were found: this test looks in the wrong place", len(named), len(kept), len(rules))
	}
	for _, row := range strings.Split(text, "\n") {
		cells := strings.Split(row, " | ")
		if strings.HasPrefix(row, "| ") && !strings.HasPrefix(row, "| ---") && !strings.HasPrefix(row, "| rule") &&
			(len(cells) != 3 || !strings.Contains(cells[1], ".go:") || !strings.Contains(cells[2], "/Test")) {
			t.Errorf("a rule without its place or its proof: %s", row)
		}
	}
}

// rulesOf are the words of the constants named Rule.
func rulesOf(t *testing.T, d *ast.GenDecl) (out []string) {
	t.Helper()
	if d.Tok != token.CONST {
		return nil
	}
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "Rule") || len(v.Values) != 1 {
			continue
		}
		if lit, ok := v.Values[0].(*ast.BasicLit); ok {
			word, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, word)
		}
	}
	return out
}
