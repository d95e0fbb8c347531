package record

import "strings"

// What an agent sent stands in the story as text: it can make no link, no picture that is fetched from
// elsewhere and no HTML there, whatever shows the file.

// said is a line of foreign text.
func said(line string) string {
	line = strings.NewReplacer("<", `\<`, "](", `]\(`, "][", `]\[`).Replace(line)
	if strings.HasPrefix(strings.TrimSpace(line), "[") {
		return `\` + strings.TrimSpace(line) // else it might define where other links lead
	}
	return line
}

// code is foreign text as code on one line.
func code(s string) string {
	s = oneLine(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		s = " " + s + " "
	}
	return fence + s + fence
}
