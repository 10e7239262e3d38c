package v1

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Toolset selects tools and prompts for an audience. "toolctl serve" offers each toolset at /mcp/NAME, where a
// client sees and calls only what is in the toolset. Policies apply there as everywhere.
//
//	apiVersion: toolctl.dev/v1
//	kind: Toolset
//	metadata:
//	  name: support
//	spec:
//	  description: Tools of the support desk
//	  include:
//	  - tools: [get-order, "refund-*"]
//	  - servers: [crm]
//	  - prompts: ["reply-*"]
//	  exclude:
//	  - tools: ["crm__delete_*"]
//	  groups: [support]
//	  pinned: [get-order]
type Toolset struct {
	Header
	// Spec says what is in the toolset, who may use it and how clients find its tools. Required.
	Spec ToolsetSpec `json:"spec" check:"required"`
}

// Values of the discovery of a toolset.
const (
	DiscoveryList   = "list"
	DiscoverySearch = "search"
	DiscoveryAuto   = "auto"
)

// Discoveries are these values.
var Discoveries = []string{DiscoveryList, DiscoverySearch, DiscoveryAuto}

// Defaults of a [ToolsetSpec].
const (
	DefaultListLimit  = 40
	DefaultListTokens = 8000
)

// BytesPerToken estimates the tokens of a text: English and JSON take about four bytes per token in the vocabularies of
// current models.
const BytesPerToken = 4

// ToolsetSpec says what is in a toolset, who may use it and how clients find its tools. A name without a namespace means
// an object in the toolset's own namespace; NAMESPACE/NAME means an object elsewhere.
type ToolsetSpec struct {
	// Description says what the toolset is for; clients get it as the instructions of the server.
	// Example: Tools of the support desk.
	Description string `json:"description,omitempty"`
	// Include selects what is in the toolset: everything that matches any entry. An empty list selects nothing.
	// Default: everything in the toolset's namespace. Example: [{tools: ["refund-*"]}, {servers: [crm]}].
	Include []ToolsetMatch `json:"include,omitzero"`
	// Exclude removes everything that matches any entry. Example: [{tools: ["crm__delete_*"]}].
	Exclude []ToolsetMatch `json:"exclude,omitempty"`
	// Principals are callers that may use the toolset: exact names or patterns with a trailing "*", as in policies.
	// With groups too, a caller needs to match one of both lists. Default: every caller, unless groups is set.
	// Example: ["support-*"].
	Principals []string `json:"principals,omitempty" check:"pattern=principal"`
	// Groups are groups whose members may use the toolset, as the token names them (see --oauth-groups-claim).
	// Default: every caller, unless principals is set. Example: [support].
	Groups []string `json:"groups,omitempty"`
	// Discovery is list (clients see all tools), search (clients see the pinned tools and two tools to find and call
	// the others) or auto (search if more would be listed than list_limit or list_tokens allows). Default: auto.
	Discovery string `json:"discovery,omitempty" check:"oneof=list|search|auto"`
	// Pinned are tools of the toolset that clients always see: exact names or patterns with a trailing "*".
	// Example: [get-order].
	Pinned []string `json:"pinned,omitempty" check:"pattern"`
	// ListLimit is the maximum number of tools that discovery auto lists. Default: 40.
	ListLimit *int `json:"list_limit,omitempty" check:"min=1"`
	// ListTokens is the maximum size of the list under discovery auto, in tokens of 4 bytes. Default: 8000.
	ListTokens *int `json:"list_tokens,omitempty" check:"min=1"`
}

// ToolsetMatch selects tools and prompts; an object must match every field that is set and applies to it. An entry with
// tools and without prompts selects only tools, and an entry with prompts and without tools only prompts.
type ToolsetMatch struct {
	// Tools are names of tools: exact names or patterns with a trailing "*", as in policies. Example: [get-order, "refund-*"].
	Tools []string `json:"tools,omitempty" check:"pattern"`
	// Labels are labels that the object must have; a tool or prompt of an MCP server has those of its MCPServer too.
	// Example: {team: support}.
	Labels map[string]string `json:"labels,omitempty"`
	// Servers are MCP servers whose tools, prompts and resources are selected: exact names of MCPServer manifests or
	// patterns with a trailing "*". Example: [crm].
	Servers []string `json:"servers,omitempty" check:"pattern=server"`
	// Prompts are names of prompts: exact names or patterns with a trailing "*". Example: ["reply-*"].
	Prompts []string `json:"prompts,omitempty" check:"pattern=prompt"`
}

// Admits reports whether a caller may use the toolset. The principal is "" for a caller without a name.
func (s *ToolsetSpec) Admits(principal string, groups []string) bool {
	return among(s.Principals, s.Groups, principal, groups)
}

// Lists reports whether clients see all tools of the toolset, given their number and the size of their list in tokens. If
// it returns false, clients search for tools.
func (s *ToolsetSpec) Lists(tools, tokens int) bool {
	atMost := func(limit *int, deflt, n int) bool {
		if limit != nil {
			deflt = *limit
		}
		return n <= deflt
	}
	switch s.Discovery {
	case DiscoveryList:
		return true
	case DiscoverySearch:
		return false
	}
	return atMost(s.ListLimit, DefaultListLimit, tools) && atMost(s.ListTokens, DefaultListTokens, tokens)
}

// Validate returns the violations of the toolset by its own rules.
func (t *Toolset) Validate() []Violation {
	fs := append(t.Header.validate(), checkFields(t)...)
	return append(fs, groupViolations("/spec/groups", t.Spec.Groups)...)
}

func (m *ToolsetMatch) rules(path string) []Violation {
	if len(m.Tools)+len(m.Labels)+len(m.Servers)+len(m.Prompts) > 0 {
		return nil
	}
	return []Violation{{Path: path, Expected: "tools, labels, servers or prompts", Got: "none of them", Message: "the entry selects nothing: set tools, labels, servers or prompts"}}
}

// Bounds of the texts by which people find a tool.
const (
	MaxKeywords = 50
	MaxKeyword  = 100
	MaxAsks     = 100
	MaxAsk      = 2000
)

// Tools by which clients find and call the tools of a toolset that they search.
const (
	FindTools = "find_tools"
	CallTool  = "call_tool"
)

// searchViolations returns what is wrong with the texts of a tool that only the search reads.
func (t *Tool) searchViolations() (fs []Violation) {
	s := &t.Spec
	if n := t.Metadata.Name; n == FindTools || n == CallTool {
		fs = append(fs, Violation{Path: "/metadata/name", Expected: "another name", Got: quote(n), Severity: SeverityWarning, Message: fmt.Sprintf("clients that search for tools have a tool %s of the server itself, and cannot call this one directly: rename it", n)})
	}
	tooMany := func(path, what string, n, most int) {
		if n > most {
			fs = append(fs, Violation{Path: path, Expected: fmt.Sprintf("at most %d", most), Got: strconv.Itoa(n), Message: fmt.Sprintf("%d %s: expected at most %d", n, what, most)})
		}
	}
	tooLong := func(path, text string, most int) {
		tooMany(path, "characters", utf8.RuneCountInString(text), most)
	}
	tooMany("/spec/keywords", "keywords", len(s.Keywords), MaxKeywords)
	for i, k := range s.Keywords {
		path := Pointer("/spec/keywords", strconv.Itoa(i))
		tooLong(path, k, MaxKeyword)
		if k == "" {
			fs = append(fs, Violation{Path: path, Expected: "a word", Got: `""`, Message: "the keyword is empty"})
		}
	}
	asks := 0
	for i, e := range s.Examples {
		tooLong(Pointer("/spec/examples", strconv.Itoa(i), "ask"), e.Ask, MaxAsk)
		if e.Ask != "" {
			asks++
		}
	}
	tooMany("/spec/examples", "examples with ask", asks, MaxAsks)
	return fs
}

// among reports whether a principal matches one of the patterns or is in one of the groups, or there are neither patterns
// nor groups.
func among(patterns, groups []string, principal string, member []string) bool {
	return len(patterns) == 0 && len(groups) == 0 ||
		slices.ContainsFunc(patterns, func(p string) bool { return MatchPattern(p, principal) }) ||
		slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(member, g) })
}

func groupViolations(path string, groups []string) []Violation {
	if i := slices.Index(groups, ""); i >= 0 {
		return []Violation{{Path: Pointer(path, strconv.Itoa(i)), Expected: "the name of a group", Got: `""`, Message: "a group has a name"}}
	}
	return nil
}
