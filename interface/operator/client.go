package operator

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Find is the socket to speak to: the one named, or $VIAD_SOCKET, or the only one below ./var and /run/viad.
func Find(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if env := os.Getenv("VIAD_SOCKET"); env != "" {
		return env, nil
	}
	var found []string
	for _, pattern := range []string{"var/" + SocketName, "var/*/" + SocketName, "/run/viad/" + SocketName, "/run/viad/*/" + SocketName} {
		m, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		for _, path := range m {
			if answers(path) {
				found = append(found, path)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", errors.New("no running viad found below ./var or /run/viad: give its socket with --socket or VIAD_SOCKET (viad prints it when it starts)")
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("more than one viad runs here (%s): choose one with --socket", strings.Join(found, ", "))
}

// Ask sends one request to the socket and waits for its answer. A refusal is an error that wraps ErrRefused.
func Ask(ctx context.Context, socket string, op Op) (Answer, error) {
	return Send(ctx, socket, Request{Op: op})
}

// Send is Ask for a request that says more than its operation; version and id are filled in.
func Send(ctx context.Context, socket string, r Request) (Answer, error) {
	r.V, r.ID = Version, 1
	op := r.Op
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return Answer{}, fmt.Errorf("viad does not answer at %s: %s%s", socket, whyNot(err), byHand(op))
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // ends the read below
	defer stop()
	a, err := exchange(c, r)
	if err = errors.Join(err, c.Close()); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return a, &lateError{fmt.Sprintf("no answer to %s from viad at %s in the time given: it is frozen or overloaded%s", op, socket, byHand(op))}
		}
		return a, fmt.Errorf("no answer to %s from viad at %s: %w%s", op, socket, errors.Join(ctx.Err(), err), byHand(op))
	}
	if !a.OK {
		return a, fmt.Errorf("%s %w: %s", op, ErrRefused, a.Error)
	}
	return a, nil
}

// lateError is a daemon that gave no answer in time.
type lateError struct{ text string }

func (e *lateError) Error() string { return e.text }
func (e *lateError) Unwrap() error { return context.DeadlineExceeded }

// whyNot is why a socket cannot be reached, in words.
func whyNot(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such socket; viad prints its own when it starts"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "no viad listens there any more; start it again, or name another socket"
	case errors.Is(err, fs.ErrPermission):
		return "it belongs to another user; run viactl as the user that runs viad"
	}
	return err.Error()
}

// byHand is what else stops a robot.
func byHand(op Op) string {
	if op == OpStop || op == OpEStop || op == OpDisarm {
		return ". If the robot moves, use its own e-stop"
	}
	return ""
}

func exchange(c net.Conn, r Request) (Answer, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return Answer{}, err
	}
	if _, err := c.Write(append(line, '\n')); err != nil {
		return Answer{}, err
	}
	in := bufio.NewScanner(c)
	in.Buffer(make([]byte, 4096), maxLine)
	for in.Scan() {
		var a Answer
		if err := json.Unmarshal(in.Bytes(), &a); err != nil {
			return Answer{}, fmt.Errorf("not an answer: %w", err)
		}
		if a.V != Version {
			return Answer{}, errVersion(a.V)
		}
		if a.ID == r.ID {
			return a, nil
		}
	}
	if err := in.Err(); err != nil {
		return Answer{}, err
	}
	return Answer{}, errors.New("the connection was closed")
}
