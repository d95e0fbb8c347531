// Command gen writes the Go packages of the ROS messages from the definitions in ros/msg/defs. It is run by go generate
// in ros/msg and knows no network and no ROS installation.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1) //nolint:forbidigo // the end of a command
	}
}

// run generates below dir, which is ros/msg, and removes what was generated before and no longer is.
func run(dir string) error {
	defs, err := load(os.DirFS(filepath.Join(dir, "defs")))
	if err != nil {
		return err
	}
	files, err := generate(defs)
	if err != nil {
		return err
	}
	old, err := generated(dir)
	if err != nil {
		return err
	}
	for _, p := range old {
		if _, still := files[p]; !still {
			if err := os.Remove(filepath.Join(dir, p)); err != nil {
				return err
			}
		}
	}
	for p, src := range files {
		full := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, src, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generated are the files below dir that say that they were generated here.
func generated(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(string(b), header) {
			out = append(out, filepath.ToSlash(rel))
		}
	}
	return out, nil
}
