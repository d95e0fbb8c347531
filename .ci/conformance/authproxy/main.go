// Command authproxy stands on a loopback port before a bearer-protected server and adds the token: the
// conformance suites cannot send one. Host and Origin pass as they were sent, which the suites test.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"time"
)

func main() {
	target := flag.String("target", "", "http://host:port of the server")
	tokenFile := flag.String("token-file", "", "file that holds the token")
	flag.Parse()
	if err := serve(*target, *tokenFile); err != nil {
		fmt.Fprintln(os.Stderr, "authproxy:", err)
		os.Exit(1)
	}
}

func serve(target, tokenFile string) error {
	to, err := url.Parse(target)
	if err != nil || to.Host == "" {
		return fmt.Errorf("--target %q is not http://host:port", target)
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return err
	}
	bearer := "Bearer " + strings.TrimSpace(string(token))
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, // progress passes as it comes
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host
			if r.Out.Header.Get("Authorization") == "" {
				r.Out.Header.Set("Authorization", bearer)
			}
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	s := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
