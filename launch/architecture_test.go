package launch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is the house's import table: a room, and the rooms of ours that its code may name. A room that
// is not listed fails. The files are parsed here: a test that asks the go command is served from the cache.
var mayImport = map[string][]string{
	"cmd/viad":     {"launch"},
	"cmd/viactl":   {"interface/operator"},
	"launch":       {"*"},
	"launch/bench": {"*"},
	"launch/e2e":   {"*"},
	"launch/field": {"*"},
	"launch/kill":  {"*"},
	"launch/soak":  {"*"},

	".ci/conformance/authproxy": {},

	"interface/tool":      {"interface/view", "interface/stage", "interface/tool/door", "interface/operator", "safety", "perception", "drivers/robot", "drivers/sensor", "drivers/geom"},
	"interface/tool/door": {},
	"interface/web":       {"interface/view", "interface/operator"},
	"interface/record":    {"interface/view", "interface/operator", "interface/stage", "safety", "perception", "drivers/robot", "drivers/sensor", "drivers/geom"},
	"interface/operator":  {},
	"interface/view":      {"interface/stage", "safety", "perception", "drivers/robot", "drivers/sensor", "drivers/geom"},
	"interface/stage":     {"safety", "perception", "drivers/robot", "drivers/sensor", "drivers/geom"},

	"safety":     {"perception", "drivers/robot", "drivers/sensor", "drivers/geom"},
	"perception": {"drivers/robot", "drivers/sensor", "drivers/geom"},

	"drivers/geom":            {},
	"drivers/urdf":            {},
	"drivers/robot":           {"drivers/geom"},
	"drivers/robot/robottest": {"drivers/robot", "drivers/geom"},
	"drivers/sensor":          {"drivers/geom"},
	"drivers/control":         {"drivers/robot", "drivers/geom", "drivers/urdf"},
	"sim":                     {"sim/mj", "sim/model", "drivers/robot", "drivers/sensor", "drivers/geom", "drivers/urdf"},
	"sim/mj":                  {},
	"sim/wire":                {"sim", "drivers/robot", "drivers/sensor", "drivers/geom", "drivers/urdf", "ros", "ros/cdr", "ros/msg", "ros/msg/*", "ros/dds", "ros/rosbridge", "ros/ros1", "ros/tf"},

	"drivers/serial":         {},
	"drivers/feetech":        {"drivers/serial"},
	"drivers/hello":          {"drivers/serial"},
	"drivers/camera":         {"drivers/robot", "drivers/sensor", "drivers/geom", "ros", "ros/msg", "ros/msg/*", "ros/tf"},
	"drivers/lidar":          {"drivers/robot", "drivers/sensor", "drivers/geom", "ros", "ros/msg", "ros/msg/*", "ros/tf"},
	"drivers/franka":         {"drivers/robot", "drivers/sensor", "drivers/geom", "drivers/urdf", "ros", "ros/msg", "ros/msg/*", "ros/tf"},
	"drivers/stretch":        {"drivers/robot", "drivers/sensor", "drivers/geom", "drivers/urdf", "drivers/serial", "drivers/feetech", "drivers/hello", "drivers/stretch/course", "ros", "ros/msg", "ros/msg/*", "ros/tf"},
	"drivers/stretch/bus":    {"drivers/robot", "drivers/sensor", "drivers/geom", "drivers/urdf", "drivers/serial", "drivers/feetech", "drivers/hello", "drivers/stretch", "drivers/stretch/course"},
	"drivers/stretch/course": {"drivers/robot", "drivers/geom"},

	"ros":             {"ros/msg", "ros/msg/*", "ros/cdr"},
	"ros/cdr":         {},
	"ros/msg":         {"ros/cdr"},
	"ros/msg/*":       {"ros/msg", "ros/msg/*", "ros/cdr"},
	"ros/rtps":        {},
	"ros/rtps/*":      {"*"},
	"ros/dds":         {"ros", "ros/rtps", "ros/msg", "ros/msg/*", "ros/cdr"},
	"ros/rosbridge":   {"ros", "ros/msg", "ros/msg/*", "ros/cdr"},
	"ros/rosbridge/*": {"ros", "ros/rosbridge", "ros/msg", "ros/msg/*", "ros/cdr"},
	"ros/ros1":        {"ros", "ros/msg", "ros/msg/*", "ros/cdr"},
	"ros/tf":          {"ros", "ros/msg", "ros/msg/*"},
	"ros/rostest":     {"ros", "ros/msg", "ros/msg/*"},
	"ros/interop":     {"*"},
	"ros/interop/*":   {"*"},
	"sim/model":       {"drivers/geom", "drivers/urdf", "drivers/robot", "drivers/sensor"},
}

// rooms are the entries of the table for a room; one that ends in /* stands for every room directly below.
func rooms(of string) (allowed []string, listed bool) {
	if a, ok := mayImport[of]; ok {
		return a, true
	}
	a, ok := mayImport[parentRoom(of)+"/*"]
	return a, ok
}

func everything(room string) bool {
	allowed, _ := rooms(room)
	return slices.Contains(allowed, "*")
}

func parentRoom(room string) string { return room[:max(0, strings.LastIndex(room, "/"))] }

// onlyIn says which foreign module only these rooms may name; their parts may too.
var onlyIn = map[string]string{
	"gocv.io/x/gocv":                  "perception/cv",
	"github.com/mark3labs/mcp-go":     "interface/tool",
	"github.com/goccy/go-yaml":        "launch",
	"github.com/alecthomas/kong":      "launch",
	"github.com/coder/websocket":      "interface/web ros/rosbridge sim/wire",
	"github.com/bluenviron/goroslib":  "ros/ros1",
	"github.com/fxamacker/cbor":       "ros/rosbridge",
	"github.com/tarm/serial":          "drivers/serial",
	"github.com/modelcontextprotocol": "tests only",
	"github.com/google/go-cmp":        "tests only",
	"go.uber.org/goleak":              "tests only",
}

// virtual are the rooms whose time is the robot.Clock: a twin at sixteen times real time must keep every
// age, cap and rate true there.
var virtual = []string{"drivers/control", "safety", "interface/stage", "perception"}

const root = ".."

type source struct {
	room, path string
	test       bool
	file       *ast.File
}

// sources parses every Go file of the module.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if n := e.Name(); path != root && (strings.HasPrefix(n, ".") && n != ".ci" || n == "node_modules" || n == "testdata" || n == "tmp" || n == "var") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		out = append(out, source{filepath.ToSlash(filepath.Dir(rel)), filepath.ToSlash(rel), strings.HasSuffix(path, "_test.go"), f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 50 {
		t.Fatalf("only %d Go files found below %s: the test looks in the wrong place", len(out), root)
	}
	return out
}

func imports(t *testing.T, s source) []string {
	t.Helper()
	var out []string
	for _, i := range s.file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func TestRoomsImportOnlyWhatTheyMay(t *testing.T) {
	for _, s := range sources(t) {
		allowed, listed := rooms(s.room)
		if !listed {
			t.Errorf("%s: the room %s is not in the import table of this test", s.path, s.room)
			continue
		}
		for _, p := range imports(t, s) {
			ours, is := strings.CutPrefix(p, "viad/")
			if !is || s.test || ours == s.room || slices.Contains(allowed, "*") {
				continue
			}
			if !slices.Contains(allowed, ours) && !slices.Contains(allowed, parentRoom(ours)+"/*") {
				t.Errorf("%s: %s may not import %s", s.path, s.room, ours)
			}
		}
	}
}

// Tests may reach wider than their rooms, for fakes; but an agent-facing room must not know twin from real
// even there, and no room's tests may lean on the composition room.
func TestTestsKeepTheirHousehold(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test || everything(s.room) {
			continue
		}
		for _, p := range imports(t, s) {
			if p == "viad/launch" || strings.HasPrefix(p, "viad/cmd/") {
				t.Errorf("%s: a test outside launch may not import %s", s.path, p)
			}
			if strings.HasPrefix(s.room, "interface/") && (p == "viad/drivers/franka" || p == "viad/drivers/stretch") {
				t.Errorf("%s: an agent-facing room may not know a named robot", s.path)
			}
		}
	}
}

func TestForeignModulesStayInTheirRooms(t *testing.T) {
	for _, s := range sources(t) {
		for _, p := range imports(t, s) {
			for module, room := range onlyIn {
				// The benchmark is an agent, as the end-to-end tests are: it speaks through a client.
				if s.room == "launch/bench" && module == "github.com/mark3labs/mcp-go" {
					continue
				}
				if !strings.HasPrefix(p, module) || s.test || within(s.room, strings.Fields(room)) {
					continue
				}
				t.Errorf("%s imports %s, which belongs in %s", s.path, p, room)
			}
		}
	}
}

func within(room string, rooms []string) bool {
	return slices.ContainsFunc(rooms, func(r string) bool { return room == r || strings.HasPrefix(room, r+"/") })
}

func TestVirtualTime(t *testing.T) {
	banned := []string{"Now", "After", "AfterFunc", "Sleep", "Since", "Until", "Tick", "NewTicker", "NewTimer"}
	for _, s := range sources(t) {
		if s.test || !slices.Contains(virtual, s.room) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(banned, sel.Sel.Name) {
				t.Errorf("%s: time.%s is banned in %s: take the robot.Clock", s.path, sel.Sel.Name, s.room)
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "context" && (sel.Sel.Name == "WithTimeout" || sel.Sel.Name == "WithDeadline") {
				t.Errorf("%s: context.%s counts wall time and is banned in %s: take robot.WithTimeout", s.path, sel.Sel.Name, s.room)
			}
			return true
		})
	}
}

func TestNoSideDoors(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: init() is not used in this house: construct in launch", s.path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			m, ok := n.(*ast.MapType)
			if !ok {
				return true
			}
			if k, ok := m.Key.(*ast.Ident); ok && k.Name == "string" {
				_, empty := m.Value.(*ast.InterfaceType)
				v, isAny := m.Value.(*ast.Ident)
				// mcp-go's own notification type leaves no choice in one file.
				if (empty || isAny && v.Name == "any") && s.room != "interface/tool" {
					t.Errorf("%s: map[string]any is an untyped side door", s.path)
				}
			}
			return true
		})
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	said := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test || s.file.Doc != nil {
			said[s.room] = said[s.room] || s.file.Doc != nil && len(s.file.Doc.Text()) > 40
		}
	}
	for room, ok := range said {
		if !ok {
			t.Errorf("%s: no file says what the package is for", room)
		}
	}
}

func TestFilesStaySmall(t *testing.T) {
	for _, s := range sources(t) {
		b, err := os.ReadFile(filepath.Join(root, s.path))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); n > 600 {
			t.Errorf("%s has %d lines: it has two reasons to change", s.path, n)
		}
	}
}
