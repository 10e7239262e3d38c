package v1

import (
	"fmt"
	"slices"
	"strings"
)

// ToolPolicy limits which tools may be called and how often. A policy governs
// the tools of its own namespace; every policy that matches a call applies.
//
//	apiVersion: toolctl.dev/v1
//	kind: ToolPolicy
//	metadata:
//	  name: careful
//	spec:
//	  blocklist: ["delete-*"]
//	  max_total_tool_calls: 20
//	  limits:
//	  - {tools: ["pay-*"], max_calls: 1, per: session}
type ToolPolicy struct {
	Header
	// Spec holds the rules. Required.
	Spec ToolPolicySpec `json:"spec" check:"required"`
}

// Values of tool_choice.
const (
	ToolChoiceAuto     = "auto"
	ToolChoiceRequired = "required"
	ToolChoiceNone     = "none"
)

// Values of the mode of a policy.
const (
	PolicyEnforce = "enforce"
	PolicyAudit   = "audit"
)

// ToolPolicySpec holds the rules of a policy, in the order of their
// evaluation. Without a limit, the number of calls is unlimited; 0 allows no call.
type ToolPolicySpec struct {
	// ToolChoice is auto, required or none. none refuses every call; auto and required affect
	// only the runs of prompts. Default: auto.
	ToolChoice string `json:"tool_choice,omitempty" check:"oneof=auto|required|none"`
	// MaxToolCallsPerTurn is the maximum number of calls in one turn of a session. Default: no limit. Example: 5.
	MaxToolCallsPerTurn *int64 `json:"max_tool_calls_per_turn,omitempty" check:"min=0"`
	// Blocklist refuses the tools that it names: exact names or patterns with a trailing "*".
	// Example: [delete-account, "admin-*"].
	Blocklist []string `json:"blocklist,omitempty" check:"pattern"`
	// MaxTotalToolCalls is the maximum number of calls in one session. Default: no limit. Example: 20.
	MaxTotalToolCalls *int64 `json:"max_total_tool_calls,omitempty" check:"min=0"`
	// Allowlist refuses every tool that it does not name: exact names or patterns with a trailing "*".
	// An empty list allows none. Default: every tool is allowed. Example: ["get-*"].
	Allowlist []string `json:"allowlist,omitzero" check:"pattern"`
	// Limits bounds the calls of some tools in a period or a session.
	Limits []Limit `json:"limits,omitempty"`
	// RequireApproval makes calls of the named tools wait until a person approves them: exact
	// names or patterns with a trailing "*". Example: ["pay-*"].
	RequireApproval []string `json:"require_approval,omitempty" check:"pattern"`
	// Approvers names who may decide on those calls. Default: everybody except the principal that made
	// the call. Example: {principals: [ann], groups: [finance]}.
	Approvers *Approvers `json:"approvers,omitempty"`
	// ApprovalTimeoutMS is how long a call can wait for approval, and how long after a decision the
	// decision holds, in milliseconds. Default: 3600000. Example: 600000.
	ApprovalTimeoutMS int64 `json:"approval_timeout_ms,omitempty" check:"min=0,max=2592000000"`
	// Mode is enforce or audit. In audit mode, a call that breaks a rule is made, and the
	// decision is recorded. Default: enforce.
	Mode string `json:"mode,omitempty" check:"oneof=enforce|audit"`
	// Match selects the calls that the policy governs. Default: every call of a tool of its namespace.
	Match *Match `json:"match,omitempty"`

	// Extensions are the rules that a program adds in Go.
	Extensions Extensions `json:"-"`
}

// Spans of a [Limit].
const (
	PerTurn    = "turn"
	PerSession = "session"
	PerMinute  = "minute"
	PerHour    = "hour"
	PerDay     = "day"
)

// Whom a [Limit] counts by.
const (
	BySession   = "session"
	ByPrincipal = "principal"
	ByTool      = "tool"
	ByAll       = "all"
)

// Limit bounds the calls of some tools, counted together.
//
// A limit keeps its count when other limits are inserted before it and when its max_calls changes. It
// is identified by its name, per and by, or without a name by its tools, per and by: an edit
// of those starts a new count.
type Limit struct {
	// Name makes the limit keep its count when its tools change. Default: none. Example: payments.
	Name string `json:"name,omitempty"`
	// Tools are the counted tools: exact names or patterns with a trailing "*".
	// Default: every tool that the policy governs. Example: ["pay-*"].
	Tools []string `json:"tools,omitempty" check:"pattern"`
	// MaxCalls is the most calls in the span; 0 allows none. Required. Example: 3.
	MaxCalls *int64 `json:"max_calls" check:"required,min=0"`
	// Per is the span. A turn is one of a session; minute, hour and day are calendar spans in
	// UTC. Required. Example: session.
	Per string `json:"per" check:"required,oneof=turn|session|minute|hour|day"`
	// By sets which calls have a count of their own, as one word or a list: session, principal (in
	// all of its sessions) or tool; all counts all calls together.
	// A session belongs to its principal. Default: session for turn and session, all for
	// minute, hour and day. Example: [principal, tool].
	By []string `json:"by,omitempty" check:"oneof=session|principal|tool|all,single"`
}

// DefaultApprovalTimeoutMS is how long a call can wait for approval when its
// policy does not say: one hour.
const DefaultApprovalTimeoutMS = 3_600_000

// Match selects calls; a call must match every member that is set.
type Match struct {
	// Tools are exact names or patterns with a trailing "*". Example: ["get-*"].
	Tools []string `json:"tools,omitempty" check:"pattern"`
	// Labels are labels that the tool must have. Example: {team: payments}.
	Labels map[string]string `json:"labels,omitempty"`
	// Principals are the callers: exact names or patterns with a trailing "*". A caller of "toolctl
	// serve" is the name of its token; a caller without a token, as on a command line, matches only "*".
	// Example: [ann, "team-*"].
	Principals []string `json:"principals,omitempty" check:"pattern=principal"`
}

// Validate returns the violations of the policy by its own rules.
func (p *ToolPolicy) Validate() []Violation {
	return append(p.Header.validate(), checkFields(p)...)
}

func (s *ToolPolicySpec) rules(path string) (fs []Violation) {
	for i, l := range s.Limits {
		at := Pointer(path+"/limits", fmt.Sprint(i))
		if slices.Contains(l.By, ByAll) && (slices.Contains(l.By, BySession) || slices.Contains(l.By, ByPrincipal)) {
			fs = append(fs, Violation{Path: at + "/by", Expected: "all, or session and principal", Got: quote(strings.Join(l.By, ", ")), Message: "all counts every session and principal together: leave it out, or the others"})
		}
		if l.Name == "" {
			continue
		}
		if !IsName(l.Name) {
			fs = append(fs, Violation{Path: at + "/name", Expected: "a DNS-1123 name", Got: quote(l.Name), Message: nameMessage(l.Name)})
		}
		if j := slices.IndexFunc(s.Limits[:i], func(o Limit) bool { return o.Name == l.Name }); j >= 0 {
			fs = append(fs, Violation{Path: at + "/name", Expected: "a unique name", Got: quote(l.Name), Message: fmt.Sprintf("limits[%d] has the name %q already, and names identify counts", j, l.Name)})
		}
	}
	return fs
}

func patternRule(what string) func(string, map[string]string) []Violation {
	return func(path string, patterns map[string]string) (fs []Violation) {
		for i, p := range patterns {
			if star := strings.IndexByte(p, '*'); p == "" || star >= 0 && star < len(p)-1 {
				fs = append(fs, Violation{Path: Pointer(path, i), Expected: "a name, or a prefix and '*'", Got: quote(p), Message: fmt.Sprintf("%q is not a %s pattern: expected an exact name or a prefix with one trailing '*'", p, what)})
			}
		}
		return fs
	}
}

// MatchPattern reports whether name fits pattern: the exact name, or a prefix
// followed by one trailing "*". "*" fits every name.
func MatchPattern(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// MCPPrefix stands before server__tool in the names by which some clients know the
// tools of MCP servers: mcp__server__tool.
const MCPPrefix = "mcp__"

// MatchTool is [MatchPattern] for the name of a tool. A pattern for mcp__server__tool
// fits the tool server__tool too.
func MatchTool(pattern, name string) bool {
	if MatchPattern(pattern, name) {
		return true
	}
	short, ok := strings.CutPrefix(pattern, MCPPrefix)
	return ok && strings.Contains(name, "__") && MatchPattern(short, name)
}
