package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

//go:embed peers
var sources embed.FS

// Vendor is whose DDS a peer is built on.
type Vendor string

// The vendors.
const (
	FastDDS Vendor = "fastdds"
	Cyclone Vendor = "cyclone"
)

// Vendors are all of them.
var Vendors = [...]Vendor{FastDDS, Cyclone}

// Missing says that a peer cannot be built because the machine lacks something.
type Missing struct {
	Vendor Vendor
	What   string
}

func (e *Missing) Error() string {
	return fmt.Sprintf("the %s peer cannot be built: %s is missing; `.ci/packages ci` installs it", e.Vendor, e.What)
}

// A step is one command of a build, run in the folder of the sources.
type step []string

func commands(v Vendor) (tools []string, parallel, then []step) {
	if v == Cyclone {
		return []string{"idlc", "gcc"}, nil, []step{
			{"idlc", "-D", "CORRELATED", "-t", "-x", "final", "ros.idl"},
			{"gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-I.", "main.c", "topics.c", "rpc.c", "ros.c", "-lddsc", "-lpthread", "-o", "peer"},
		}
	}
	compile := func(file, level string) step {
		return step{"g++", "-std=c++17", level, "-I.", "-c", file, "-o", file + ".o"}
	}
	return []string{"fastddsgen", "g++"}, []step{
		compile("ros.cxx", "-O1"), compile("rosPubSubTypes.cxx", "-O1"),
		compile("main.cpp", "-O2"), compile("topics.cpp", "-O2"), compile("rpc.cpp", "-O2"),
	}, []step{{"g++", "ros.cxx.o", "rosPubSubTypes.cxx.o", "main.cpp.o", "topics.cpp.o", "rpc.cpp.o", "-lfastrtps", "-lfastcdr", "-o", "peer"}}
}

// Build makes the peer of a vendor and returns the path of the program. It is built once for each state of its sources and
// kept in the user's cache; several processes may ask at once.
func Build(ctx context.Context, v Vendor) (string, error) {
	files, err := sourcesOf(v)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to keep the %s peer: %w", v, err)
	}
	dir := filepath.Join(cache, "viad", "interop", string(v)+"-"+hash(files))
	program := filepath.Join(dir, "peer")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }() // moved away when all went well
	if err := build(ctx, v, work, files); err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return program, os.Rename(work, dir)
}

func build(ctx context.Context, v Vendor, work string, files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(work, path.Base(name)), content, 0o644); err != nil {
			return err
		}
	}
	tools, parallel, then := commands(v)
	for _, t := range tools {
		if _, err := exec.LookPath(t); err != nil {
			return &Missing{v, t}
		}
	}
	if v == FastDDS {
		if err := run(ctx, v, work, step{"fastddsgen", "-replace", "-cs", "ros.idl"}); err != nil {
			return err
		}
	}
	results := make(chan error, len(parallel))
	for _, s := range parallel {
		go func() { results <- run(ctx, v, work, s) }()
	}
	var all error
	for range parallel {
		all = errors.Join(all, <-results)
	}
	for _, s := range then {
		if all == nil {
			all = run(ctx, v, work, s)
		}
	}
	return all
}

func run(ctx context.Context, v Vendor, dir string, s step) error {
	cmd := exec.CommandContext(ctx, s[0], s[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case bytes.Contains(out, []byte("No such file or directory")) && bytes.Contains(out, []byte("fatal error")):
		return &Missing{v, "a header (" + string(bytes.TrimSpace(out[:min(len(out), 200)])) + ")"}
	default:
		return fmt.Errorf("building the %s peer: %s: %w\n%s", v, strings.Join(s, " "), err, out[:min(len(out), 4000)])
	}
}

func sourcesOf(v Vendor) (map[string][]byte, error) {
	files := map[string][]byte{}
	read := func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := sources.ReadFile(p)
		files[p] = b
		return err
	}
	if err := fs.WalkDir(sources, path.Join("peers", string(v)), read); err != nil {
		return nil, err
	}
	idl, err := sources.ReadFile("peers/ros.idl")
	files["peers/ros.idl"] = idl
	return files, err
}

func hash(files map[string][]byte) string {
	h := sha256.New()
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		_, _ = fmt.Fprintf(h, "%s %d\n%s", n, len(files[n]), files[n]) // a hash takes all
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// lock holds a file for this process alone.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close() // the first error says more
		return nil, fmt.Errorf("locking %s: %w", name, err)
	}
	return func() { _ = f.Close() }, nil // which unlocks
}
