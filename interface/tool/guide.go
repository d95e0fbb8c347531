package tool

import (
	"context"
	_ "embed" // the guides are files

	"github.com/mark3labs/mcp-go/mcp"

	"viad/interface/stage"
)

//go:embed guide/instructions3d.txt
var instructions3D string

//go:embed guide/instructions2d.txt
var instructions2D string

//go:embed guide/prompt3d.md
var prompt3D string

//go:embed guide/prompt2d.md
var prompt2D string

// instructions are what every client is told on connecting; some cut them at 4,096 characters.
func instructions(f stage.Face) string {
	if f == stage.Face2D {
		return instructions2D
	}
	return instructions3D
}

// addPrompt serves the longer guide of the face.
func (s *Server) addPrompt() {
	name, title, body := "drive_arm", "How to drive the arm", prompt3D
	if s.o.Face == stage.Face2D {
		name, title, body = "drive_mobile_robot", "How to drive the mobile robot", prompt2D
	}
	p := mcp.NewPrompt(name, mcp.WithPromptDescription(title+": frames, units, workflow and usual mistakes."))
	p.Title = title
	s.mcp.AddPrompt(p, func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult(title, []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(body))}), nil
	})
}
