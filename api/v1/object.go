package v1

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// API versions and defaults.
const (
	// APIVersion is the apiVersion of every manifest of this package.
	APIVersion = "toolctl.dev/v1"
	// PromptKitGroup is the API group of PromptKit manifests, which load too.
	PromptKitGroup = "promptkit.altairalabs.ai"
	// LabelGroup is the label of tools that belong together, such as all of one provider.
	LabelGroup = "toolctl.dev/group"
	// DefaultNamespace is the namespace of an object that names none.
	DefaultNamespace = "default"
)

// The kinds of manifest.
const (
	KindTool       = "Tool"
	KindPrompt     = "Prompt"
	KindMCPServer  = "MCPServer"
	KindToolPolicy = "ToolPolicy"
	KindToolset    = "Toolset"
	KindScenario   = "Scenario"
)

// Kinds lists every kind in the order in which lists and docs show them.
func Kinds() []string {
	return []string{KindTool, KindPrompt, KindMCPServer, KindToolPolicy, KindToolset, KindScenario}
}

// NewObject returns an empty object of the kind, or nil for an unknown kind.
func NewObject(kind string) Object {
	var o Object
	switch kind {
	case KindTool:
		o = new(Tool)
	case KindPrompt:
		o = new(Prompt)
	case KindMCPServer:
		o = new(MCPServer)
	case KindToolPolicy:
		o = new(ToolPolicy)
	case KindToolset:
		o = new(Toolset)
	case KindScenario:
		o = new(Scenario)
	default:
		return nil
	}
	o.Head().APIVersion, o.Head().Kind = APIVersion, kind
	return o
}

// Object is a manifest: one of *[Tool], *[Prompt], *[MCPServer], *[ToolPolicy],
// *[Toolset] and *[Scenario].
type Object interface {
	// Head returns the part that all kinds share; changing it changes the object.
	Head() *Header
	// Validate returns every violation of the object by its own rules, without
	// positions. Rules between objects belong to the registry.
	Validate() []Violation
}

// Header is the part that all kinds share.
type Header struct {
	// APIVersion is the version of the manifest's format. Required. Example: toolctl.dev/v1.
	APIVersion string `json:"apiVersion" check:"required"`
	// Kind is the kind of object. Required. Example: Tool.
	Kind string `json:"kind" check:"required"`
	// Metadata names the object. Required.
	Metadata Metadata `json:"metadata" check:"required"`

	// Source is where the manifest stands; zero for an object made in Go.
	Source Source `json:"-"`
	// Violations is what the reader of the manifest found wrong. An object with a
	// violation that is not a warning is listed and not ready.
	Violations []Violation `json:"-"`
	// Files holds the content of the files that the manifest names, by the path
	// written there. Readers fill it, so that no executor opens a file.
	Files map[string][]byte `json:"-"`
	// Fields holds the places of fields, by JSON pointer. Readers fill it for
	// policies and scenarios, whose messages name the line of a rule.
	Fields map[string]Source `json:"-"`
	// Layout is the layout that the YAML of the object keeps; nil for none. Readers fill it on request.
	Layout *Layout `json:"-"`
}

// Layout holds what people write and programs ignore: comments and the order of keys, by JSON pointer.
type Layout struct {
	Keys     map[string][]string `json:"keys,omitempty"`
	Comments map[string]Comment  `json:"comments,omitempty"`
}

// Comment holds the comments at a value, each with its "#": above, beside and below it.
type Comment struct {
	Head string `json:"head,omitempty"`
	Line string `json:"line,omitempty"`
	Foot string `json:"foot,omitempty"`
}

// Head returns the header itself.
func (h *Header) Head() *Header { return h }

// Field returns the place of a field, or of the nearest parent whose place is known.
func (h *Header) Field(pointer string) Source {
	for p := pointer; p != ""; p = p[:strings.LastIndexByte(p, '/')] {
		if s, ok := h.Fields[p]; ok {
			return s
		}
	}
	return h.Source
}

// Beside returns a path of the manifest as one of the working directory: a relative path begins at the manifest's folder.
func (h *Header) Beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(h.Source.File), path)
}

// Namespace returns the namespace, "default" when none is written.
func (h *Header) Namespace() string {
	if h.Metadata.Namespace == "" {
		return DefaultNamespace
	}
	return h.Metadata.Namespace
}

// Key identifies an object.
type Key struct{ Kind, Namespace, Name string }

// String returns "Kind namespace/name".
func (k Key) String() string { return k.Kind + " " + k.Namespace + "/" + k.Name }

// Key returns the identity of the object.
func (h *Header) Key() Key { return Key{h.Kind, h.Namespace(), h.Metadata.Name} }

// Broken reports whether a violation that is not a warning was found.
func (h *Header) Broken() bool { return len(Errors(h.Violations)) > 0 }

// FromPromptKit reports whether the manifest is one of PromptKit's.
func (h *Header) FromPromptKit() bool {
	return strings.HasPrefix(h.APIVersion, PromptKitGroup+"/")
}

// Metadata names an object and carries what is not part of its meaning.
type Metadata struct {
	// Name is the name of the object: a DNS-1123 label or subdomain (RFC 1123), in which
	// "_" is allowed too. Required. Example: get-weather.
	Name string `json:"name" check:"required"`
	// Namespace is the namespace of the object. Default: default. Example: tools.
	Namespace string `json:"namespace,omitempty"`
	// Labels are short pairs that selectors match. Example: {team: payments}.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are free pairs that nothing matches. Example: {owner: "ops@example.com"}.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// MaxName is the most characters of a name.
const MaxName = 253

// What names and values of labels match.
const (
	NamePattern       = `^[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*$`
	LabelValuePattern = `^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$`
)

var (
	namePattern  = regexp.MustCompile(NamePattern)
	labelPattern = regexp.MustCompile(LabelValuePattern)
)

func (h *Header) validate() []Violation {
	var fs []Violation
	add := func(path, got, expected, msg string) {
		fs = append(fs, Violation{Path: path, Got: got, Expected: expected, Message: msg})
	}
	if n := h.Metadata.Name; n != "" && !IsName(n) {
		add("/metadata/name", quote(n), "a DNS-1123 name", nameMessage(n))
	}
	if n := h.Metadata.Namespace; n != "" && (!IsName(n) || strings.Contains(n, ".")) {
		add("/metadata/namespace", quote(n), "a DNS-1123 label", nameMessage(n))
	}
	if h.APIVersion != APIVersion && h.APIVersion != "" && (!h.FromPromptKit() || h.Kind == KindToolPolicy) {
		add("/apiVersion", quote(h.APIVersion), APIVersion, fmt.Sprintf("unknown apiVersion %q: expected %q", h.APIVersion, APIVersion))
	}
	for k, v := range h.Metadata.Labels {
		if !isLabelKey(k) {
			add(Pointer("/metadata/labels", k), quote(k), "a label key", fmt.Sprintf("%q is not a label key: expected [prefix/]name of letters, digits, '-', '_' and '.', the name at most 63 long", k))
		}
		if !IsLabelValue(v) {
			add(Pointer("/metadata/labels", k), quote(v), "a label value", fmt.Sprintf("%q is not a label value: expected at most 63 letters, digits, '-', '_' and '.', starting and ending with a letter or digit", v))
		}
	}
	return fs
}

func nameMessage(n string) string {
	return fmt.Sprintf("%q is not a legal name: expected lower-case letters, digits, '-', '_' and '.', starting and ending with a letter or digit, at most %d long", n, MaxName)
}

// IsName reports whether s is a DNS-1123 label or subdomain (RFC 1123, section
// 2.1, as Kubernetes reads it), with "_" allowed where "-" is.
func IsName(s string) bool {
	if len(s) > MaxName {
		return false
	}
	return namePattern.MatchString(s)
}

func isLabelKey(s string) bool {
	prefix, name, ok := strings.Cut(s, "/")
	if !ok {
		prefix, name = "", s
	}
	return name != "" && IsLabelValue(name) && (!ok || IsName(prefix))
}

// IsLabelValue reports whether s can be the value of a label in Kubernetes.
func IsLabelValue(s string) bool { return labelPattern.MatchString(s) }

// SubmitOutput is the name of the tool by which a model gives an answer that has a
// schema. Neither a Tool nor a Prompt may have this name.
const SubmitOutput = "submit_output"

func reservedName(h *Header) []Violation {
	if h.Metadata.Name != SubmitOutput {
		return nil
	}
	return []Violation{{Path: "/metadata/name", Expected: "another name", Got: quote(SubmitOutput), Message: "the name " + SubmitOutput + " is reserved: models submit the answer of a prompt with spec.output through it"}}
}

func quote(s string) string { return fmt.Sprintf("%q", clip(s)) }

// clip bounds the length of foreign text in a message.
func clip(s string) string {
	const limit = 80
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
