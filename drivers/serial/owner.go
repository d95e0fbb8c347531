package serial

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// claim takes the lock that says who has the port. The file must be kept open as long as the port is.
func claim(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		if who := owner(path, os.Getpid()); who != "" { // one that has it open and does not lock
			err = &InUse{Path: path, Owner: who}
		}
	} else if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &InUse{Path: path, Owner: owner(path, 0)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// owner names a process that has the device open, other than the one with the id except; empty when none is seen.
func owner(path string, except int) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	fds, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		if err != nil || to != real {
			continue
		}
		id := strings.Split(fd, "/")[2]
		if pid, err := strconv.Atoi(id); err != nil || pid == except {
			continue
		}
		name, err := os.ReadFile("/proc/" + id + "/comm")
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), id)
	}
	return ""
}

// node identifies what a path leads to.
type node struct{ dev, ino, rdev uint64 }

func nodeOf(path string) (node, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return node{}, err
	}
	return node{st.Dev, st.Ino, st.Rdev}, nil
}
