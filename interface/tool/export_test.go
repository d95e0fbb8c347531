package tool

import (
	"context"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"viad/interface/tool/door"
)

// MCP is the library's server, for in-process clients.
func (s *Server) MCP() *server.MCPServer { return s.mcp }

// Instructions and Prompt are what the face's clients are told.
func (s *Server) Instructions() string { return instructions(s.o.Face) }

// Fuzz makes one call without a transport.
func (s *Server) Fuzz(who door.Principal, name string, raw []byte) (bad bool, text string) {
	for _, d := range s.defs {
		if d.name == name {
			ctx := door.With(context.Background(), who)
			c := &call{s: s, def: d, raw: raw, at: s.o.Clock.Now(), began: time.Now()}
			r := c.answer(ctx)
			s.finish(ctx, c, r)
			return r.bad, strings.Join(r.texts(), "\n")
		}
	}
	return true, "no such tool"
}

// Waiting is how many calls wait for a motion.
func (s *Server) Waiting() int {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	n := 0
	for _, r := range s.runs.kept {
		if !r.finished() {
			n += r.carriers
		}
	}
	return n
}

// Holder is who has the seat.
func (s *Server) Holder() string {
	name, _, _ := s.o.Seat.Holder()
	return name
}

// Holding is how many kept executions hold on to the scene that their pictures were drawn from.
func (s *Server) Holding() int {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	n := 0
	for _, r := range s.runs.kept {
		if r.reply != nil && r.reply.shown != nil {
			n++
		}
	}
	return n
}
