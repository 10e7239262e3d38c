package overlay

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// value is a text with its place.
type value struct {
	text string
	node *yaml.Node
}

func (v *value) UnmarshalYAML(n *yaml.Node) error {
	v.node = n
	return n.Decode(&v.text)
}

// kustomization is the subset of kustomize's file that is read.
type kustomization struct {
	APIVersion         string            `yaml:"apiVersion"`
	Kind               string            `yaml:"kind"`
	Metadata           map[string]any    `yaml:"metadata"`
	Resources          []value           `yaml:"resources"`
	Namespace          value             `yaml:"namespace"`
	NamePrefix         string            `yaml:"namePrefix"`
	NameSuffix         string            `yaml:"nameSuffix"`
	Labels             []labelSet        `yaml:"labels"`
	CommonLabels       map[string]string `yaml:"commonLabels"`
	CommonAnnotations  map[string]string `yaml:"commonAnnotations"`
	Patches            []patch           `yaml:"patches"`
	ConfigMapGenerator []generator       `yaml:"configMapGenerator"`
	Replacements       []replacement     `yaml:"replacements"`
}

type labelSet struct {
	Pairs            map[string]string `yaml:"pairs"`
	IncludeSelectors bool              `yaml:"includeSelectors"`
	IncludeTemplates bool              `yaml:"includeTemplates"`
}

type patch struct {
	Path    value    `yaml:"path"`
	Patch   value    `yaml:"patch"`
	Target  *target  `yaml:"target"`
	Options struct { // what a patch with a target may change
		AllowNameChange bool `yaml:"allowNameChange"`
		AllowKindChange bool `yaml:"allowKindChange"`
	} `yaml:"options"`

	node *yaml.Node
}

// UnmarshalYAML keeps the place.
func (p *patch) UnmarshalYAML(n *yaml.Node) error {
	type bare patch
	err := n.Decode((*bare)(p))
	p.node = n
	return err
}

// target chooses objects. Group, version, kind, namespace and name are regular
// expressions that fit the whole.
type target struct {
	Group              string `yaml:"group"`
	Version            string `yaml:"version"`
	Kind               string `yaml:"kind"`
	Name               string `yaml:"name"`
	Namespace          string `yaml:"namespace"`
	LabelSelector      string `yaml:"labelSelector"`
	AnnotationSelector string `yaml:"annotationSelector"`
}

// generator makes configuration values that replacements read.
type generator struct {
	Name      string   `yaml:"name"`
	Namespace string   `yaml:"namespace"`
	Literals  []string `yaml:"literals"`
	Envs      []value  `yaml:"envs"`
	Files     []value  `yaml:"files"`

	node *yaml.Node
}

// UnmarshalYAML keeps the place.
func (g *generator) UnmarshalYAML(n *yaml.Node) error {
	type bare generator
	err := n.Decode((*bare)(g))
	g.node = n
	return err
}

// others are kustomize's fields that are not read.
var others = []string{
	"bases", "buildMetadata", "components", "configurations", "crds", "generatorOptions", "generators", "helmCharts", "helmGlobals",
	"imageTags", "images", "inventory", "openapi", "patchesJson6902", "patchesStrategicMerge", "replicas", "secretGenerator",
	"sortOptions", "transformers", "validators", "vars",
}

// instead says what to write in the place of a field that kustomize gave up, or that has
// another form here.
var instead = map[string]string{
	"bases":                 "write the folders into resources",
	"patchesStrategicMerge": "write them into patches, each as path",
	"patchesJson6902":       "write them into patches, each with its target",
	"vars":                  "use replacements",
	"secretGenerator":       "secrets are environment variables, ${NAME}",
}

func (l *layer) parse(data []byte) bool {
	before := len(l.violations)
	nodes, violations := manifest.Trees(l.file, data)
	l.violations = append(l.violations, violations...)
	if len(violations) > 0 {
		return false
	}
	if len(nodes) != 1 {
		l.fail(v1.Source{File: l.file, Line: 1, Column: 1}, "expected one document with resources, got %d", len(nodes))
		return false
	}
	l.known(nodes[0], reflect.TypeFor[kustomization](), "")
	if len(l.violations) > before {
		return false
	}
	if err := nodes[0].Decode(&l.spec); err != nil {
		l.fail(at(l.file, nodes[0]), "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return false
	}
	if k := l.spec.Kind; k != "" && k != "Kustomization" {
		l.fail(at(l.file, nodes[0]), "kind %q is not read: expected Kustomization", k)
	}
	if ns := l.spec.Namespace; ns.text != "" && !v1.IsName(ns.text) {
		l.fail(at(l.file, ns.node), "namespace: %q is not a legal name: expected lower-case letters, digits, '-' and '_'", ns.text)
	}
	return len(l.violations) == before
}

// known refuses fields that are not read, and values of another form.
func (l *layer) known(n *yaml.Node, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[value]() {
		if n.Kind != yaml.ScalarNode {
			l.fail(at(l.file, n), "%s: expected text", path)
		}
		return
	}
	switch t.Kind() {
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			l.fail(at(l.file, n), "%s: expected a list", path)
			return
		}
		for i, item := range n.Content {
			l.known(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			l.fail(at(l.file, n), "%s: expected an object", path)
		}
	case reflect.Struct:
		if n.Kind != yaml.MappingNode {
			l.fail(at(l.file, n), "%s: expected an object", path)
			return
		}
		fields := map[string]reflect.Type{}
		var all []string
		for _, f := range reflect.VisibleFields(t) {
			if name := f.Tag.Get("yaml"); name != "" {
				fields[name], all = f.Type, append(all, name)
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			field := strings.TrimPrefix(path+"."+name, ".")
			if of, ok := fields[name]; ok {
				if n.Content[i+1].Tag != "!!null" {
					l.known(n.Content[i+1], of, field)
				}
				continue
			}
			l.fail(at(l.file, n.Content[i]), "%s", unknown(path, field, name, all))
		}
	}
}

func unknown(path, field, name string, all []string) string {
	if path == "" && slices.Contains(others, name) {
		msg := fmt.Sprintf("%s is a field of kustomize that is not supported here", field)
		if do := instead[name]; do != "" {
			msg += ": " + do
		}
		return msg
	}
	msg := fmt.Sprintf("unknown field %q: expected one of %s", field, strings.Join(all, ", "))
	msg += v1.DidYouMean(name, all)
	return msg
}
