package overlay

import v1 "toolctl.dev/toolctl/api/v1"

// refKind is the kind of the object that a field names.
type refKind int

const (
	toTool refKind = iota // or to a prompt, which can be called as a tool
	toServer
	toPolicy
	toPrompt
	toToolset
	toPatterns // a list of names and patterns of tools or prompts
	toServers  // a list of names and patterns of servers
	toRules    // the rules of a policy
)

// reference is a field that names other objects. In its path, "*" stands for every item or member,
// and "#" for every key.
type reference struct {
	kind, path string // an empty kind stands for all kinds
	to         refKind
}

// rules are the fields of a policy that name tools.
var rules = []string{"blocklist", "allowlist", "require_approval", "limits/*/tools", "match/tools"}

// references are all fields that name other objects. A new field of this sort in api/v1 needs a
// line here; without it, the field would keep the old name.
var references = append([]reference{
	{v1.KindTool, "spec/mcp/server", toServer},
	{v1.KindPrompt, "spec/tools/*", toTool},
	{v1.KindPrompt, "spec/policy", toRules},
	{"PromptConfig", "spec/allowed_tools/*", toTool},
	{"PromptConfig", "spec/tool_policy", toRules},
	{v1.KindToolPolicy, "spec", toRules},
	{v1.KindToolset, "spec/include/*/tools", toPatterns},
	{v1.KindToolset, "spec/include/*/prompts", toPatterns},
	{v1.KindToolset, "spec/include/*/servers", toServers},
	{v1.KindToolset, "spec/exclude/*/tools", toPatterns},
	{v1.KindToolset, "spec/exclude/*/prompts", toPatterns},
	{v1.KindToolset, "spec/exclude/*/servers", toServers},
	{v1.KindToolset, "spec/pinned", toPatterns},
	{v1.KindScenario, "spec/tools/*", toTool},
	{v1.KindScenario, "spec/policies/*", toPolicy},
	{v1.KindScenario, "spec/policy", toRules},
	{v1.KindScenario, "spec/tool_policy", toRules},
	{v1.KindScenario, "spec/mocks/#", toTool},
	{v1.KindScenario, "spec/turns/*/prompt", toPrompt},
	{v1.KindScenario, "spec/turns/*/calls/*/tool", toTool},
	{v1.KindScenario, "spec/turns/*/search/*/toolset", toToolset},
	{v1.KindScenario, "spec/turns/*/search/*/expect/first", toTool},
	{v1.KindScenario, "spec/turns/*/search/*/expect/contains/*", toTool},
	{v1.KindScenario, "spec/turns/*/search/*/expect/lacks/*", toTool},
	{v1.KindScenario, "spec/turns/*/model/*/tool_calls/*/tool", toTool},
	{v1.KindScenario, "spec/turns/*/model/*/sees/tools/*", toTool},
	{v1.KindScenario, "spec/turns/*/consent_overrides/#", toTool},
}, ofAssertions("spec/assertions/*", "spec/turns/*/assertions/*")...)

// ofAssertions returns the references in the parameters of assertions that name tools.
func ofAssertions(lists ...string) []reference {
	var all []reference
	for _, list := range lists {
		for _, path := range []string{
			"params/tool", "params/tool_name", "params/tools/*", "params/tool_names/*", "params/sequence/*", "params/chain/*",
			"params/steps/*/tool", "params/patterns/*/sequence/*", "when/tool_called",
		} {
			all = append(all, reference{v1.KindScenario, list + "/" + path, toTool})
		}
	}
	return all
}
