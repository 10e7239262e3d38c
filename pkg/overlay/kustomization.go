package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/manifest"
)

// kustomization holds the supported fields of a kustomization.yaml.
type kustomization struct {
	APIVersion         string            `json:"apiVersion"`
	Kind               string            `json:"kind"`
	Metadata           map[string]any    `json:"metadata"`
	Resources          []string          `json:"resources"`
	Namespace          string            `json:"namespace"`
	NamePrefix         string            `json:"namePrefix"`
	NameSuffix         string            `json:"nameSuffix"`
	Labels             []labelSet        `json:"labels"`
	CommonLabels       map[string]string `json:"commonLabels"`
	CommonAnnotations  map[string]string `json:"commonAnnotations"`
	Patches            []patch           `json:"patches"`
	ConfigMapGenerator []generator       `json:"configMapGenerator"`
	Replacements       []replacement     `json:"replacements"`
}

type labelSet struct {
	Pairs            map[string]string `json:"pairs"`
	IncludeSelectors bool              `json:"includeSelectors"`
	IncludeTemplates bool              `json:"includeTemplates"`
}

type patch struct {
	Path    string   `json:"path"`
	Patch   string   `json:"patch"`
	Target  *target  `json:"target"`
	Options struct { // permit a patch to change the name or kind
		AllowNameChange bool `json:"allowNameChange"`
		AllowKindChange bool `json:"allowKindChange"`
	} `json:"options"`
}

// target selects objects. Group, version, kind, namespace and name are regular expressions that must match the whole
// text.
type target struct {
	Group              string `json:"group"`
	Version            string `json:"version"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	Namespace          string `json:"namespace"`
	LabelSelector      string `json:"labelSelector"`
	AnnotationSelector string `json:"annotationSelector"`
}

// generator creates configuration values for replacements to read.
type generator struct {
	Name      string   `json:"name"`
	Namespace string   `json:"namespace"`
	Literals  []string `json:"literals"`
	Envs      []string `json:"envs"`
	Files     []string `json:"files"`
}

// others are kustomize fields that toolctl does not support.
var others = []string{
	"bases", "buildMetadata", "components", "configurations", "crds", "generatorOptions", "generators", "helmCharts", "helmGlobals",
	"imageTags", "images", "inventory", "openapi", "patchesJson6902", "patchesStrategicMerge", "replicas", "secretGenerator",
	"sortOptions", "transformers", "validators", "vars",
}

// instead names the replacement of a field that is deprecated in kustomize, or has another form here.
var instead = map[string]string{
	"bases":                 "list the folders in resources",
	"patchesStrategicMerge": "list them in patches, each with path",
	"patchesJson6902":       "list them in patches, each with its target",
	"vars":                  "use replacements",
	"secretGenerator":       "secrets are environment variables, ${NAME}",
}

// parse reads the file. It uses the YAML 1.2 types, as in manifests, so that the label "on" stays text.
func (l *layer) parse(data []byte) bool {
	before := len(l.violations)
	raw, place, violations := manifest.ToJSONPlaced(l.file, data)
	l.violations = append(l.violations, v1.Errors(violations)...)
	if place == nil {
		return false
	}
	l.place = place
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err := dec.Decode(&tree)
	tree = l.fit(tree, reflect.TypeFor[kustomization](), "")
	if len(l.violations) == before { // otherwise the field itself may be wrong, and its value is not worth a message
		l.violations = append(l.violations, l.misfits...)
	}
	if len(l.violations) > before {
		return false
	}
	if err == nil {
		err = yaml.UnmarshalStrict(jsontext.Of(tree), &l.spec)
	}
	if err != nil {
		l.fail(place(""), "%s", err.Error()[strings.LastIndex(err.Error(), "json: ")+len("json: "):])
		return false
	}
	if k := l.spec.Kind; k != "" && k != "Kustomization" {
		l.fail(place(""), "kind %q is not supported: expected Kustomization", k)
	}
	if ns := l.spec.Namespace; ns != "" && !v1.IsName(ns) {
		l.fail(place("/namespace"), "namespace: %q is not a legal name: expected lower-case letters, digits, '-' and '_'", ns)
	}
	return len(l.violations) == before
}

// fit refuses unknown fields and values of the wrong type, and returns the value. A number or a boolean becomes text
// where text is expected.
func (l *layer) fit(v any, t reflect.Type, pointer string) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	expected, ok := "", true
	switch t.Kind() {
	case reflect.Slice:
		var list []any
		list, ok = v.([]any)
		expected = "a list"
		for i := range list {
			list[i] = l.fit(list[i], t.Elem(), v1.Pointer(pointer, strconv.Itoa(i)))
		}
	case reflect.Map, reflect.Struct:
		var m map[string]any
		m, ok = v.(map[string]any)
		expected = "an object"
		for name, of := range l.fields(m, t, pointer) {
			m[name] = l.fit(m[name], of, v1.Pointer(pointer, name))
		}
	case reflect.String:
		switch v.(type) {
		case json.Number, bool:
			v = fmt.Sprint(v)
		}
		_, ok = v.(string)
		expected = "text"
	case reflect.Bool:
		_, ok = v.(bool)
		expected = "true or false"
	}
	if !ok && v != nil {
		l.misfits = append(l.misfits, v1.Violation{Source: l.place(pointer), Message: v1.FieldPath(pointer) + ": expected " + expected})
	}
	return v
}

// fields returns the types of the members of an object, and refuses unknown fields.
func (l *layer) fields(m map[string]any, t reflect.Type, pointer string) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	if t.Kind() == reflect.Map {
		for name := range m {
			types[name] = t.Elem()
		}
		return types
	}
	var all []string
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("json")
		if name == "" {
			continue
		}
		all = append(all, name)
		if _, ok := m[name]; ok {
			types[name] = f.Type
		}
	}
	for name := range m {
		if at := v1.Pointer(pointer, name); types[name] == nil {
			l.fail(l.place(at), "%s", unknown(pointer, v1.FieldPath(at), name, all))
		}
	}
	return types
}

func unknown(path, field, name string, all []string) string {
	if path == "" && slices.Contains(others, name) {
		msg := field + " is a field of kustomize that is not supported here"
		if do := instead[name]; do != "" {
			msg += ": " + do
		}
		return msg
	}
	return fmt.Sprintf("unknown field %q: expected one of %s%s", field, strings.Join(all, ", "), v1.DidYouMean(name, all))
}
