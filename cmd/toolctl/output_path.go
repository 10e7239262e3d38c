package main

import (
	"strings"

	"toolctl.dev/toolctl/internal/jsonpath"
	"toolctl.dev/toolctl/pkg/manifest"
)

// The output formats that print parts of objects, as kubectl's do.
const (
	jsonPathFormat = "jsonpath="
	columnsFormat  = "custom-columns="
)

// checkTemplate refuses a template that cannot be read, before anything is done.
func checkTemplate(format string) error {
	if text, ok := strings.CutPrefix(format, jsonPathFormat); ok {
		if _, err := jsonpath.Parse(text); err != nil {
			return usagef("-o jsonpath: %w", err)
		}
	}
	if spec, ok := strings.CutPrefix(format, columnsFormat); ok {
		_, err := parseColumns(spec)
		return err
	}
	return nil
}

// printJSONPath prints a value by the template of -o jsonpath=TEMPLATE, and as kubectl no
// newline that the template does not have.
func (a *app) printJSONPath(format string, v any) error {
	t, err := jsonpath.Parse(strings.TrimPrefix(format, jsonPathFormat))
	if err != nil {
		return usagef("-o jsonpath: %w", err)
	}
	doc, err := manifest.MarshalJSON(v)
	if err != nil {
		return err
	}
	return t.Execute(a.out, doc)
}

// column is one of -o custom-columns=TITLE:PATH,...
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

// printColumns prints a table of what the paths find in each value.
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
