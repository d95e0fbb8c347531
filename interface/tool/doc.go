// Package tool is the agents' room: the MCP tools of both faces over a stage and a painter. It alone
// imports mcp-go. It parses arguments, knows who asks and what each role may do, words every refusal, and
// keeps an execution to exactly once; it computes no pose and draws no pixel.
//
// Lengths in tool arguments and readouts are metres and angles degrees; inside they are radians.
// Readouts carry 4 decimals for metres and unit vectors and 2 for degrees, never an exponent, -0 or NaN.
//
// A tool that returns a picture returns content blocks alone: no structuredContent and no outputSchema.
// isError marks refusals and faults, which are text only; a motion that was cut short is neither.
package tool
