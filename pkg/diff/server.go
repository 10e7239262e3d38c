package diff

import (
	"cmp"
	"context"
	"maps"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

const (
	otherProgram = "toolctl starts a different program or passes different arguments: the tools may differ, as toolctl lock shows"
	otherAddress = "calls go to a different URL: the tools may differ, as toolctl lock shows"
)

var serverRules = []rule{
	{"", "", []string{"/spec/env_passthrough", "/spec/timeout_ms", "/spec/connect_timeout_ms", "/spec/tool_filter", "/spec/overrides", "/spec/locked", "/spec/allow_private_network"}},
	{Neutral, "people read the description", []string{"/spec/description"}},
	{Unknown, otherProgram, []string{"/spec/command", "/spec/args", "/spec/working_dir"}},
	{Unknown, "the program gets different environment variables", []string{"/spec/env"}},
	{Risky, "the number of server processes changes, and with it which clients share the state of one", []string{"/spec/replicas"}},
	{Unknown, otherAddress, []string{"/spec/url"}},
	{Unknown, "the server uses another transport", []string{"/spec/transport"}},
	{Unknown, "requests have different headers", []string{"/spec/headers"}},
	{Unknown, "requests authenticate differently", []string{"/spec/auth"}},
	{Unknown, "different certificates are trusted or presented", []string{"/spec/tls"}},
	{Risky, "clients know the tools of the server by other names", []string{"/spec/tool_names"}},
}

func (j *judgement) server(ctx context.Context, before, after *v1.MCPServer) {
	b, a := &before.Spec, &after.Spec
	j.byRules(serverRules)
	if p := j.first("/spec/env_passthrough"); p != "" {
		if more := missing(a.EnvPassthrough, b.EnvPassthrough); more != "" {
			j.add(Looser, p, "the program reads more environment variables: "+more, nil)
		}
		if gone := missing(b.EnvPassthrough, a.EnvPassthrough); gone != "" {
			j.add(Tighter, p, "the program no longer reads these environment variables: "+gone, nil)
		}
	}
	if j.first("/spec/timeout_ms") != "" {
		j.shorter("/spec/timeout_ms", cmp.Or(b.TimeoutMS, v1.DefaultTimeoutMS), cmp.Or(a.TimeoutMS, v1.DefaultTimeoutMS))
	}
	if j.first("/spec/connect_timeout_ms") != "" {
		const byDefault = 10_000
		j.shorter("/spec/connect_timeout_ms", cmp.Or(b.ConnectTimeoutMS, byDefault), cmp.Or(a.ConnectTimeoutMS, byDefault))
	}
	if p := j.first("/spec/tool_filter"); p != "" {
		j.rules(ctx, p, "the filter allows the same tools", nil, filterRules(b.ToolFilter), filterRules(a.ToolFilter))
	}
	if b.Locked != a.Locked {
		j.allows("/spec/locked", !b.Locked, !a.Locked, "tools that differ from toolctl.lock are called")
	}
	private := func(p *bool) bool { return p != nil && *p }
	j.allows("/spec/allow_private_network", private(b.AllowPrivateNetwork), private(a.AllowPrivateNetwork), "the server may be in a private network")
	names := maps.Clone(b.Overrides)
	if names == nil {
		names = map[string]v1.ToolOverride{}
	}
	maps.Copy(names, a.Overrides)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		j.override(v1.Pointer("/spec/overrides", name), b.Overrides[name], a.Overrides[name])
	}
}

// override judges the overrides of a server's tool.
func (j *judgement) override(at string, before, after v1.ToolOverride) {
	p := j.first(at)
	if p == "" {
		return
	}
	n := len(j.reasons)
	switch in := at + "/input_schema"; {
	case before.InputSchema != nil && after.InputSchema != nil:
		if j.first(in) != "" {
			j.schema(in, before.InputSchema, after.InputSchema, Input, false, true)
		}
	case before.InputSchema != nil || after.InputSchema != nil:
		j.add(Unknown, cmp.Or(j.first(in), p), "an override of the server's own schema, which no manifest contains, was added or removed", nil)
	}
	if (before.Hints == nil) == (after.Hints == nil) {
		j.hints(at+"/hints", before.Hints, after.Hints)
	} else {
		j.add(Unknown, cmp.Or(j.first(at+"/hints"), p), "an override of the server's own hints, which no manifest contains, was added or removed", nil)
	}
	j.masks(at+"/redact", before.Redact, after.Redact)
	if j.first(at+"/timeout_ms") != "" && before.TimeoutMS != 0 && after.TimeoutMS != 0 {
		j.shorter(at+"/timeout_ms", before.TimeoutMS, after.TimeoutMS)
	}
	if len(j.reasons) == n {
		j.add(Neutral, p, "models read a different description, or the timeout changes", nil)
	}
}

// filterRules are the policy rules that are equivalent to a filter.
func filterRules(f *v1.ToolFilter) *v1.ToolPolicySpec {
	if f == nil {
		return &v1.ToolPolicySpec{}
	}
	return &v1.ToolPolicySpec{Allowlist: f.Allowlist, Blocklist: f.Blocklist}
}
