package door

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Listen opens a TCP port whose dead connections are noticed within 4 to 8 seconds: with Go's own settings a
// client whose link is cut without a FIN stays for minutes.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	lc := net.ListenConfig{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3},
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			if cerr := c.Control(func(fd uintptr) {
				// Milliseconds that sent data may stay unacknowledged; inherited by accepted connections.
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 6000)
			}); cerr != nil {
				return cerr
			}
			return err
		},
	}
	l, err := lc.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %s is in use by another program: stop it, or give another address with --listen HOST:PORT or as listen.address: %w", addr, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return &bounded{Listener: l, most: connections(), conns: map[*slotted]struct{}{}}, nil
}

// maxConnections is how many connections are open at once: the files that the process may open are also needed to
// stop the robot and to keep the record.
const maxConnections = 512

// connections is maxConnections, or half of what the process may open when that is less.
func connections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return maxConnections
	}
	return int(max(8, min(maxConnections, files.Cur/2)))
}

// shutdownTime is how long running requests get to end once their contexts are cancelled.
const shutdownTime = 5 * time.Second

// Serve answers on l with h until ctx ends, and then returns nil. Every request's context ends with ctx,
// before connections are waited for. A nil secure is plain HTTP; otherwise HTTP/1.1 and HTTP/2 are spoken.
func Serve(ctx context.Context, l net.Listener, h http.Handler, secure *tls.Config, news *slog.Logger) error {
	if news == nil {
		news = slog.New(slog.DiscardHandler)
	}
	srv := &http.Server{
		ErrorLog: log.New(&serverLog{log: news}, "", 0),
		Handler:  curt(h), ConnState: places(news), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		TLSConfig: secure, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() {
		if secure != nil {
			served <- srv.ServeTLS(l, "", "")
			return
		}
		served <- srv.Serve(l)
	}()
	select {
	case err := <-served:
		return fmt.Errorf("http server on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := srv.Shutdown(wait)
	if err != nil {
		err = errors.Join(err, srv.Close())
	}
	<-served
	return err
}
