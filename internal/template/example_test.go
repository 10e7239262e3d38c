package template_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"

	"toolctl.dev/toolctl/internal/template"
)

func ExampleParseJSON() {
	t, err := template.ParseJSON("mock_template", `{"greeting": "hello {{.name}}", "age": {{.age}}, "units": "{{default "metric" .units}}"}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := t.Render(context.Background(), map[string]any{"name": `", "admin": true, "x": "`, "age": 36})
	fmt.Println(string(out), err)
	_, err = t.Render(context.Background(), map[string]any{"name": "Ada"})
	fmt.Println(err)
	// Output:
	// {"greeting": "hello \", \"admin\": true, \"x\": \"", "age": 36, "units": "metric"} <nil>
	// mock_template: line 1: .age: argument "age" is missing: pass it, or use default or if in the template
}

func ExampleParseText() {
	t, err := template.ParseText("url", "https://example.com/cities/{{.city}}?q={{.q}}", template.Options{
		Escape: func(out []byte, value string) (string, error) {
			if bytes.IndexByte(out, '?') >= 0 {
				return url.QueryEscape(value), nil
			}
			return url.PathEscape(value), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := t.Render(context.Background(), map[string]any{"city": "a/b?", "q": "x&y"})
	fmt.Println(out, err, t.Fields())
	// Output:
	// https://example.com/cities/a%2Fb%3F?q=x%26y <nil> [city q]
}
