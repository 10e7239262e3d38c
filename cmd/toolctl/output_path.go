package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"text/template"

	"toolctl.dev/toolctl/internal/jsonpath"
	"toolctl.dev/toolctl/pkg/manifest"
)

// Output formats that print parts of objects, as in kubectl.
const (
	jsonPathFormat   = "jsonpath="
	goTemplateFormat = "go-template="
	columnsFormat    = "custom-columns="
)

// checkTemplate refuses an invalid template before the command does anything.
func checkTemplate(format string) error {
	if spec, ok := strings.CutPrefix(format, columnsFormat); ok {
		_, err := parseColumns(spec)
		return err
	}
	_, err := parseTemplate(format)
	return err
}

// parseTemplate returns a function that prints a document with the template of -o jsonpath=TEMPLATE or
// go-template=TEMPLATE. It returns nil for formats without a template.
func parseTemplate(format string) (func(w io.Writer, doc json.RawMessage) error, error) {
	if text, ok := strings.CutPrefix(format, jsonPathFormat); ok {
		t, err := jsonpath.Parse(text)
		if err != nil {
			return nil, usagef("-o jsonpath: %w", err)
		}
		return t.Execute, nil
	}
	text, ok := strings.CutPrefix(format, goTemplateFormat)
	if !ok {
		return nil, nil
	}
	t, err := template.New("-o go-template").Parse(text)
	if err != nil {
		return nil, usageError{err}
	}
	return func(w io.Writer, doc json.RawMessage) error {
		v, err := jsonpath.Decode(doc)
		if err != nil {
			return err
		}
		var b bytes.Buffer // buffered, so that a template that fails halfway prints nothing
		if err := t.Execute(&b, v); err != nil {
			return usageError{err}
		}
		_, err = w.Write(b.Bytes())
		return err
	}, nil
}

// printTemplate prints a value with a template. As in kubectl, it adds no newline.
func (a *app) printTemplate(format string, v any) error {
	execute, err := parseTemplate(format)
	if err != nil {
		return err
	}
	doc, err := manifest.MarshalJSON(v)
	if err != nil {
		return err
	}
	return execute(a.out, doc)
}

// column is one column of -o custom-columns=TITLE:PATH,...
type column struct {
	title string
	path  *jsonpath.Path
}

func parseColumns(spec string) ([]column, error) {
	var columns []column
	for part := range strings.SplitSeq(spec, ",") {
		title, path, ok := strings.Cut(part, ":")
		if !ok || title == "" || path == "" {
			return nil, usagef("-o custom-columns: %q: expected TITLE:PATH, as in NAME:.metadata.name,MODE:.spec.mode", part)
		}
		p, err := jsonpath.ParsePath(path)
		if err != nil {
			return nil, usagef("-o custom-columns: %w", err)
		}
		columns = append(columns, column{title, p})
	}
	return columns, nil
}

// printColumns prints a table with the values of the paths in each object.
func printColumns[T any](a *app, format string, values []T, headless bool) error {
	columns, err := parseColumns(strings.TrimPrefix(format, columnsFormat))
	if err != nil {
		return err
	}
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.title
	}
	if headless {
		cells = nil
	}
	t := newTable(a.out, cells...)
	cells = make([]string, len(columns))
	for _, v := range values {
		raw, err := manifest.MarshalJSON(v)
		if err != nil {
			return err
		}
		doc, err := jsonpath.Decode(raw)
		if err != nil {
			return err
		}
		for i, c := range columns {
			cells[i] = "<none>"
			if found := c.path.Find(doc, doc); len(found) > 0 {
				cells[i] = jsonpath.Text(found)
			}
		}
		t.row(cells...)
	}
	return t.Flush()
}
