package v1

import (
	"slices"
	"strings"
)

// KindInfo holds the names of a kind on a command line and in a cluster.
type KindInfo struct {
	// Kind is the kind as manifests write it, for example "ToolPolicy".
	Kind string `json:"kind"`
	// Name is the plural in lower case, for example "toolpolicies".
	Name string `json:"name"`
	// Short are the other words for it, for example "tp".
	Short []string `json:"short_names,omitempty"`
}

// Singular returns the kind in lower case, for example "toolpolicy".
func (k KindInfo) Singular() string { return strings.ToLower(k.Kind) }

// KindInfos describes every kind, in the order of [Kinds].
func KindInfos() []KindInfo {
	return []KindInfo{
		{KindTool, "tools", nil},
		{KindPrompt, "prompts", nil},
		{KindMCPServer, "mcpservers", []string{"mcp", "server", "servers"}},
		{KindToolPolicy, "toolpolicies", []string{"tp", "policy", "policies"}},
		{KindToolset, "toolsets", []string{"ts"}},
		{KindScenario, "scenarios", nil},
	}
}

// ParseKind finds the kind that a word means: singular, plural or short, in any case.
func ParseKind(word string) (kind string, ok bool) {
	word = strings.ToLower(word)
	for _, k := range KindInfos() {
		if word == k.Name || word == k.Singular() {
			return k.Kind, true
		}
		if slices.Contains(k.Short, word) {
			return k.Kind, true
		}
	}
	return "", false
}
