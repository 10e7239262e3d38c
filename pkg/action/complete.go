package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

// Items lists the objects that match a query, for completions. It starts no server, and reports no problems of the
// manifests.
func (c *Config) Items(ctx context.Context, q registry.Query) (items []registry.Item, err error) {
	err = c.silently(ctx, func(w *Workspace) error {
		p, err := w.Registry.List(q)
		items = p.Items
		return err
	})
	return items, err
}

// ArgumentWords completes an argument of a tool or a variable of a prompt: first the names with "=", and after a name
// the values of its enum.
func (c *Config) ArgumentWords(ctx context.Context, kind, name, word string) (words []string, err error) {
	key, value, behind := strings.Cut(word, "=")
	var names, values []string
	err = c.silently(ctx, func(w *Workspace) error {
		if kind == v1.KindPrompt {
			it, err := w.Registry.Get(kind, c.Namespace, name)
			if err != nil {
				return err
			}
			p, err := compilePrompt(it)
			if err != nil {
				return err
			}
			for _, arg := range p.Arguments() {
				names = append(names, arg.Name)
			}
			values, _, _ = p.Complete(key, value)
			return nil
		}
		it, err := w.Registry.Lookup(c.Namespace, name)
		if err != nil {
			return err
		}
		var schema struct {
			Properties map[string]struct {
				Enum []any `json:"enum"`
			} `json:"properties"`
		}
		err = json.Unmarshal(it.Tool().Spec.InputSchema, &schema)
		for name := range schema.Properties {
			names = append(names, name)
		}
		for _, v := range schema.Properties[key].Enum {
			values = append(values, fmt.Sprint(v))
		}
		return err
	})
	if behind {
		for _, v := range values {
			words = append(words, key+"="+v)
		}
		return words, err
	}
	for _, n := range names {
		words = append(words, n+"=")
	}
	slices.Sort(words)
	return words, err
}

func (c *Config) silently(ctx context.Context, do func(*Workspace) error) error {
	w, err := c.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(w), w.Close())
}
