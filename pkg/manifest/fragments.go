package manifest

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
)

// readFragments replaces each {{name}} in the templates of a prompt by the text of the PromptKit
// fragment. A fragment is at its path, or by default at fragments/NAME.yaml; a YAML file holds the
// text in content. Variables of a fragment become variables of the prompt.
func (r *reader) readFragments(d *document, obj v1.Object) {
	p, ok := obj.(*v1.Prompt)
	if !ok || !d.promptKit {
		return
	}
	in := &fileReader{reader: r, doc: d, head: obj.Head()}
	_, spec := d.child(d.root, "spec")
	if spec == nil {
		return
	}
	_, list := d.child(spec, "fragments")
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	for i, item := range list.Content {
		if item.Kind != yaml.MappingNode {
			continue
		}
		_, name := member(item, "name")
		_, file := member(item, "path")
		if name == "" {
			continue
		}
		file = cmp.Or(file, "fragments/"+name+".yaml")
		data, ok := in.open(v1.Pointer("/spec/fragments", strconv.Itoa(i), "path"), file, "")
		if !ok {
			continue
		}
		text, ok := in.fragment(v1.Pointer("/spec/fragments", strconv.Itoa(i), "path"), file, data)
		if !ok {
			continue
		}
		for _, t := range []*string{&p.Spec.SystemPrompt, &p.Spec.Template} {
			if len(*t)+strings.Count(*t, "{{"+name+"}}")*len(text) <= maxFragments {
				*t = strings.ReplaceAll(*t, "{{"+name+"}}", text)
			}
		}
	}
}

// maxFragments is the maximum size of a template with its fragments. A longer template would not be
// read anyway.
const maxFragments = 1 << 20

// fragment returns the text of a fragment: the field content of a YAML file, at its root or under
// spec, else the whole file.
func (in *fileReader) fragment(pointer, file string, data []byte) (text string, ok bool) {
	text = string(data)
	if strings.HasSuffix(file, ".yaml") || strings.HasSuffix(file, ".yml") {
		raw, violations := ToJSON(file, data)
		if errs := v1.Errors(violations); len(errs) > 0 {
			errs[0].Path = pointer
			in.doc.soft(in.doc.root, errs[0])
			return "", false
		}
		var f struct {
			Content string `json:"content"`
			Spec    struct {
				Content string `json:"content"`
			} `json:"spec"`
		}
		if json.Unmarshal(raw, &f) == nil && f.Content+f.Spec.Content != "" {
			text = f.Content + f.Spec.Content
		}
	}
	return strings.TrimRight(text, "\r\n"), true
}
