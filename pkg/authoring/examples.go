package authoring

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/manifests"
	"toolctl.dev/toolctl/pkg/manifest"
)

// example is one file in manifests/.
type example struct {
	Name  string   `json:"name"`
	Kinds []string `json:"kinds"`
	About string   `json:"about,omitempty"`
	Text  string   `json:"text,omitempty" description:"the whole file, unless the example is only listed"`
	Needs []string `json:"needs,omitempty" description:"names of the examples that have the tools it uses"`

	tools []string
}

type shown struct {
	Examples []example `json:"examples"`
	Others   []example `json:"others,omitempty" description:"all examples, when no topic was given; ask for one by its name"`
}

func examples(ctx context.Context, in struct {
	Topic string `json:"topic,omitempty" description:"a kind (tool, prompt, mcpserver, toolpolicy, toolset, scenario), the name of an example, or a word such as http, approval or template"`
}) (shown, error) {
	all, err := loadExamples(ctx)
	if err != nil {
		return shown{}, err
	}
	out := shown{Examples: choose(all, strings.ToLower(strings.TrimSpace(in.Topic)))}
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
		if e.Text = ""; in.Topic == "" {
			out.Others = append(out.Others, e)
		}
	}
	if len(out.Examples) == 0 && in.Topic != "" {
		return shown{}, fmt.Errorf("no example is about %q: use a kind, another word, or one of the names %s", in.Topic, strings.Join(names, ", "))
	}
	return out, nil
}

func (e example) is(other example) bool { return e.Name == other.Name }

// choose returns the examples for a topic, the shortest first, and the other examples that these use.
func choose(all []example, topic string) []example {
	chosen := []example{}
	if topic == "" {
		return chosen
	}
	kind, _ := v1.ParseKind(topic)
	for _, fits := range []func(example) bool{
		func(e example) bool { return e.Name == topic || strings.TrimSuffix(e.Name, path.Ext(e.Name)) == topic },
		func(e example) bool { return slices.Contains(e.Kinds, kind) },
		func(e example) bool { return strings.Contains(strings.ToLower(e.Name+e.Text), topic) },
	} {
		for _, e := range all {
			if fits(e) {
				chosen = append(chosen, e)
			}
		}
		if len(chosen) > 0 {
			break
		}
	}
	slices.SortStableFunc(chosen, func(a, b example) int { return len(a.Text) - len(b.Text) })
	chosen = chosen[:min(len(chosen), maxExamples)]
	for _, e := range all {
		needed := func(x example) bool { return slices.Contains(x.Needs, e.Name) }
		if slices.ContainsFunc(chosen, needed) && !slices.ContainsFunc(chosen, e.is) {
			chosen = append(chosen, e)
		}
	}
	return chosen
}

// loadExamples reads manifests/. It skips PromptKit manifests, and manifests with data files, because an agent would
// not have those files.
func loadExamples(ctx context.Context) ([]example, error) {
	set, err := manifest.LoadFS(ctx, manifests.FS, manifest.Options{})
	if err != nil {
		return nil, err
	}
	var all []example
	left := map[string]bool{}
	for _, obj := range set.Objects {
		h := obj.Head()
		file := h.Source.File
		left[file] = left[file] || len(h.Files) > 0 || h.FromPromptKit()
		if len(all) == 0 || all[len(all)-1].Name != file {
			text, err := fs.ReadFile(manifests.FS, file)
			if err != nil {
				return nil, err
			}
			all = append(all, example{Name: file, About: about(string(text)), Text: string(text)})
		}
		e := &all[len(all)-1]
		if !slices.Contains(e.Kinds, h.Kind) {
			e.Kinds = append(e.Kinds, h.Kind)
		}
		if h.Kind == v1.KindTool {
			e.tools = append(e.tools, regexp.QuoteMeta(h.Metadata.Name))
		}
	}
	all = slices.DeleteFunc(all, func(e example) bool { return left[e.Name] })
	for _, of := range all {
		if len(of.tools) == 0 {
			continue
		}
		uses := regexp.MustCompile(`[\[ ](` + strings.Join(of.tools, "|") + `)[,\]\s]`) // in a list, or as a value
		for i, e := range all {
			named := slices.ContainsFunc(e.Kinds, func(k string) bool { return k == v1.KindPrompt || k == v1.KindToolset || k == v1.KindScenario })
			if named && !e.is(of) && uses.MatchString(e.Text) {
				all[i].Needs = append(all[i].Needs, of.Name)
			}
		}
	}
	return all, nil
}

// about returns the comment at the top of a file, or the first description.
func about(text string) string {
	var comment []string
	for line := range strings.Lines(text) {
		said, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		comment = append(comment, strings.TrimSpace(said))
	}
	if len(comment) > 0 {
		return strings.Join(comment, " ")
	}
	_, rest, _ := strings.Cut(text, "description: ")
	first, _, _ := strings.Cut(rest, "\n")
	return first
}
