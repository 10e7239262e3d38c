package report

import (
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// Annotation returns a violation as an annotation of a GitHub workflow.
func Annotation(f v1.Violation) string {
	level := "error"
	if f.IsWarning() {
		level = "warning"
	}
	text := f.Message
	if f.Path != "" {
		text = v1.FieldPath(f.Path) + ": " + text
	}
	return WorkflowCommand(level, f.Source, text)
}

// WorkflowCommand returns an annotation of a place in a GitHub workflow. It drops terminal escapes, which the log would interpret
// (https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
func WorkflowCommand(level string, at v1.Source, text string) string {
	prop := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = clip.Line(lines[i])
	}
	return fmt.Sprintf("::%s file=%s,line=%d,col=%d::%s", level, prop.Replace(at.File), max(at.Line, 1), max(at.Column, 1), data.Replace(strings.Join(lines, "\n")))
}
