package lint

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/parallel"
	"toolctl.dev/toolctl/pkg/schema"
)

// maxDescription is OpenAI's maximum length of a function description, in characters.
const maxDescription = 1024

func secrets(s *surface, found func(Finding)) { s.inspect(inspect.Secrets, found) }

// inspect checks the objects in parallel.
func (s *surface) inspect(look func(v1.Object) []v1.Violation, found func(Finding)) {
	seen := make([][]v1.Violation, len(s.objects))
	parallel.Each(len(s.objects), func(i int) { seen[i] = look(s.objects[i]) })
	for i, o := range s.objects {
		for _, v := range seen[i] {
			found(at(o.Head(), v.Path, "%s", v.Message))
		}
	}
}

func hiddenText(s *surface, found func(Finding)) {
	s.inspect(inspect.Object, found)
	for _, t := range s.tools {
		if t.manifest == nil {
			for _, v := range inspect.Text("", t.description) {
				found(t.at("", "%s", v.Message))
			}
		}
	}
}

func missingDescriptions(s *surface, found func(Finding)) {
	for _, t := range s.tools {
		if strings.TrimSpace(t.description) == "" {
			found(t.at("/spec/description", "it has no description"))
		}
	}
	for _, o := range s.objects {
		if p, ok := o.(*v1.Prompt); ok && strings.TrimSpace(p.Spec.Description) == "" {
			found(at(p.Head(), "/spec/description", "it has no description"))
		}
	}
}

func missingArgumentDescriptions(s *surface, found func(Finding)) {
	for _, t := range s.declared {
		properties := t.properties()
		var silent []string
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			var p map[string]any
			if json.Unmarshal(properties[name], &p) == nil && !slices.ContainsFunc([]string{"description", "title", schema.Ref}, func(k string) bool { return p[k] != nil && p[k] != "" }) {
				silent = append(silent, name)
			}
		}
		if len(silent) > 0 {
			found(t.at("/spec/input_schema/properties", "no description of %s", list(silent)))
		}
	}
}

func longDescriptions(s *surface, found func(Finding)) {
	for _, t := range s.tools {
		if n := utf8.RuneCountInString(t.description); n > maxDescription {
			found(t.at("/spec/description", "the description has %d characters; OpenAI allows at most %d", n, maxDescription))
		}
	}
}

func sameDescriptions(s *surface, found func(Finding)) {
	first := map[string]*tool{}
	for _, t := range s.tools {
		text := plain(t.description)
		if text == "" {
			continue
		}
		if other := first[text]; other != nil {
			f := t.at("/spec/description", "%s has the same description", other.name)
			f.also = other.head
			found(f)
		} else {
			first[text] = t
		}
	}
}

// plain returns a text without case and punctuation.
func plain(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), isBreak), " ")
}

// list names at most four things.
func list(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and others"
}
