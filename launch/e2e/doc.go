// Package e2e proves the main job through real MCP clients against the twin: scripted agents that decide
// from returned pictures, hover and readouts alone. Ground truth is asked only by assertions.
package e2e
