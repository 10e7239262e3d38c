package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// parseYAML calls yield with each document of a YAML stream until it returns false. It returns the syntax error that
// ended the stream, or nil. Documents before the error have been yielded.
func parseYAML(file string, data []byte, yield func(*yaml.Node) bool) *v1.Violation {
	if !hasUTF16BOM(data) { // yaml reads UTF-16 by itself
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
		if f := invalidUTF8(file, data); f != nil {
			return f
		}
	}
	err := yamlDocuments(data, yield)
	if err == nil {
		return nil
	}
	if line := conflictMarker(data); line > 0 {
		return conflicted(file, line)
	}
	src := yamlErrorPlace(file, data, err)
	problem := yamlProblem(err)
	if indentedByTab(data, src.Line) {
		problem += ": the line is indented with a tab, but YAML allows only spaces"
	} else if strings.Contains(problem, "mapping values are not allowed") {
		problem += ": the line is indented too far, or a value with ': ' in it has no quotes"
	} else if strings.HasSuffix(problem, "did not find expected key") {
		problem += ": the line is indented differently from the lines around it, or text follows a closing quote"
	} else if strings.HasSuffix(problem, "found unexpected end of stream") {
		problem += ": a quote is not closed"
	} else if strings.Contains(problem, "alphabetic or numeric character") || strings.HasPrefix(problem, "unknown anchor") {
		problem += `: a value that begins with * or & needs quotes, as in "*"`
	}
	return &v1.Violation{Expected: "YAML", Got: "a syntax error", Message: "not YAML: " + problem, Source: src}
}

// conflictMarker returns the line of the first unresolved merge conflict, or 0 if there is no conflict: lines that
// start with Git's three markers, in order.
func conflictMarker(data []byte) (first int) {
	markers := []string{"<<<<<<< ", "=======", ">>>>>>> "}
	next, number := 0, 0
	for line := range bytes.Lines(data) {
		number++
		if !bytes.HasPrefix(line, []byte(markers[next])) {
			continue
		}
		if next == 0 {
			first = number
		}
		if next++; next == len(markers) {
			return first
		}
	}
	return 0
}

func conflicted(file string, line int) *v1.Violation {
	return &v1.Violation{Source: v1.Source{File: file, Line: line, Column: 1}, Expected: "a merged file", Got: "a conflict of a merge",
		Message: "unresolved merge conflict: keep the part above or below =======, and remove the three marker lines"}
}

func yamlDocuments(data []byte, yield func(*yaml.Node) bool) (err error) {
	defer func() {
		// The parser panics on some broken streams instead of returning an error.
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: the parser failed: %v", p)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
			continue
		}
		root := doc.Content[0]
		root.HeadComment = joinComments(doc.HeadComment, root.HeadComment)
		root.FootComment = joinComments(root.FootComment, doc.FootComment)
		if !yield(root) {
			return nil
		}
	}
}

// yamlProblem returns the parser's message without its prefix and without the line number, which is often that of
// the surrounding block.
func yamlProblem(err error) string {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if _, problem, ok := strings.Cut(rest, ": "); ok {
			msg = problem
		}
	}
	return clip.Bytes(msg, maxShown)
}

// indentedByTab reports whether the white space before a line contains a tab, which YAML forbids (YAML 1.2.2,
// section 6.1) and which is invisible.
func indentedByTab(data []byte, line int) bool {
	for ; line > 1; line-- {
		_, after, found := bytes.Cut(data, []byte("\n"))
		if !found {
			return false
		}
		data = after
	}
	indent := data[:len(data)-len(bytes.TrimLeft(data, " \t"))]
	return bytes.IndexByte(indent, '\t') >= 0
}

// yamlErrorPlace finds the line of a syntax error: the first line up to which the stream already fails in the same
// way. The parser only reads forward, so a binary search works.
func yamlErrorPlace(file string, data []byte, want error) v1.Source {
	const largest = 1 << 20 // parsing a larger file twenty times takes too long
	src := v1.Source{File: file, Line: 1, Column: 1}
	if len(data) > largest {
		if _, err := fmt.Sscanf(want.Error(), "yaml: line %d:", &src.Line); err != nil {
			src.Line = 1
		}
		return src
	}
	ends := []int{}
	for i, c := range data {
		if c == '\n' || i == len(data)-1 {
			ends = append(ends, i+1)
		}
	}
	if len(ends) == 0 {
		return src
	}
	lo, hi := 0, len(ends)-1
	for lo < hi {
		mid := (lo + hi) / 2
		err := yamlDocuments(data[:ends[mid]], func(*yaml.Node) bool { return true })
		if err != nil && yamlProblem(err) == yamlProblem(want) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	start := 0
	if lo > 0 {
		start = ends[lo-1]
	}
	line := data[start:ends[lo]]
	src.Line = lo + 1
	src.Column = len(line) - len(bytes.TrimLeft(line, " \t")) + 1
	return src
}

func hasUTF16BOM(data []byte) bool {
	return bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})
}

func invalidUTF8(file string, data []byte) *v1.Violation {
	if utf8.Valid(data) {
		return nil
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return &v1.Violation{Expected: "UTF-8", Got: fmt.Sprintf("byte 0x%02x", data[i]), Source: placeOf(file, data, i),
				Message: fmt.Sprintf("not UTF-8: byte 0x%02x: save the file as UTF-8", data[i])}
		}
		i += size
	}
	return nil
}

// placeOf converts an offset to a line and a column in characters.
func placeOf(file string, data []byte, offset int) v1.Source {
	offset = min(max(offset, 0), len(data))
	before := data[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return v1.Source{File: file, Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(before[start:]) + 1}
}
