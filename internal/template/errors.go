package template

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"toolctl.dev/toolctl/internal/clip"
)

// Error is a violation of a template or of one rendering of it.
type Error struct {
	// Name is the name that was given to the parser.
	Name string
	// Line is the line in the source, from 1; 0 for an error without a line.
	Line int
	// Message describes the error. It may quote the source, but never an argument.
	Message string
	// Missing is the name of the missing argument if the template prints one.
	Missing string
	// Output is the output if it is not valid JSON. It contains arguments.
	Output []byte
	// Err is the cause: an error of the context or of [Options.Escape]; nil for other errors.
	Err error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Name + ": " + e.Message
	}
	return fmt.Sprintf("%s: line %d: %s", e.Name, e.Line, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

func checkSource(name, src string) error {
	if len(src) > MaxSource {
		return &Error{Name: name, Message: fmt.Sprintf("the template has %d bytes: the limit is %d bytes", len(src), MaxSource)}
	}
	line := 0
	for text := range strings.Lines(src) {
		if line++; !utf8.ValidString(text) {
			return &Error{Name: name, Line: line, Message: "the template is not UTF-8"}
		}
	}
	return nil
}

var (
	parsePlace = regexp.MustCompile(`(?s)^template: :(\d+):(?:\d+:)? (.*)$`)
	execPlace  = regexp.MustCompile(`(?s)^template: :(\d+):\d+: executing "(?:[^"\\]|\\.)*" at <(.*?)>: (.*)$`)
	otherLine  = regexp.MustCompile(`(^| ):(\d+)\b`)
	noField    = regexp.MustCompile(`can't evaluate field (\S+) in type .*`)
	noFunction = regexp.MustCompile(`^function "(\w+)" not defined$`)
	calling    = regexp.MustCompile(`^error calling \w+: `)
	iterating  = regexp.MustCompile(`(?s)range can't iterate over .*`)
)

// parseError turns an error of the text/template parser into an *[Error].
func parseError(name string, err error) error {
	e := &Error{Name: name, Message: err.Error()}
	if m := parsePlace.FindStringSubmatch(e.Message); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Message = m[2]
	}
	e.Message = otherLine.ReplaceAllString(line(e.Message, 300), "${1}line $2")
	if m := noFunction.FindStringSubmatch(e.Message); m != nil {
		e.Message += fmt.Sprintf("; an argument is written {{.%s}}", m[1])
	}
	return e
}

// execError turns an execution error into an *[Error], without the context of
// text/template, Go types and arguments.
func (t *tree) execError(err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	e := &Error{Name: t.name, Message: err.Error()}
	m := execPlace.FindStringSubmatch(e.Message)
	if m == nil { // the writer returned an error of the context
		e.Err = err
		return e
	}
	e.Line, _ = strconv.Atoi(m[1])
	msg := calling.ReplaceAllString(m[3], "")
	msg = iterating.ReplaceAllString(msg, "range needs a list, an object or a whole number")
	msg = noField.ReplaceAllString(msg, `no field "$1": it is not an object`)
	src, _, _ := strings.Cut(m[2], " | "+escapeFunc)
	e.Message = line(src, maxShown) + ": " + msg
	return e
}

// maxShown limits the part of a template in a message, in bytes.
const maxShown = 80

// line returns a text for a message: on one line of at most limit bytes.
func line(s string, limit int) string {
	return clip.Bytes(strings.Join(strings.Fields(s), " "), limit)
}
