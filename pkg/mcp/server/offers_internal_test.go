package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

func offerOf(name, schema string) Offer {
	t := &v1.Tool{Spec: v1.ToolSpec{InputSchema: json.RawMessage(schema)}}
	t.Metadata.Name = name
	return Offer{Tool: t, Name: "default/" + name}
}

// audience is one principal.
type audience string

func (a audience) Sees(principal string) bool { return principal == string(a) }
func (a audience) String() string             { return string(a) }

// Clients that search see the same list until it is short enough for all tools, or a pinned tool changes.
func TestMenusServeOn(t *testing.T) {
	var all []Offer
	pinned := map[string]bool{}
	for i := range 60 {
		all = append(all, offerOf(fmt.Sprint("tool-", i), `{"type":"object"}`))
		pinned[all[i].Name] = i == 0
	}
	of := func(all []Offer) *offers {
		return newOffers(all, new(offers)).part(Toolset{Tools: pinned}, nil)
	}
	before := of(all)
	other := slices.Clone(all)
	other[5] = offerOf("tool-5", `{"type":"object","properties":{"a":{}}}`)
	renewed := slices.Clone(all)
	renewed[0] = offerOf("tool-0", `{"type":"object","properties":{"a":{}}}`)
	for name, tc := range map[string]struct {
		now  []Offer
		same bool
	}{"one less": {all[:59], true}, "another schema": {other, true}, "few": {all[:3], false}, "a pinned tool": {renewed, false}, "none pinned": {all[1:], false}} {
		if got := before.listsAs(of(tc.now)); got != tc.same {
			t.Errorf("%s: listed as before: %v", name, got)
		}
	}
}

// A refresh rewrites only the changed entries of a list.
func TestListingsServeOn(t *testing.T) {
	const many = 300
	var all []Offer
	for i := range many {
		all = append(all, offerOf(fmt.Sprint("tool-", i), `{"type":"object"}`))
	}
	before := newOffers(all, new(offers))
	before.spec.Discovery = v1.DiscoveryList
	step := func(name string, want int, same bool) {
		t.Helper()
		now := newOffers(all, before)
		now.spec.Discovery = v1.DiscoveryList
		written := 0
		for name, o := range now.byName {
			if o.listing != nil && o.listing != before.byName[name].listing {
				written++
			}
		}
		if written != want || before.listsAs(now) != same {
			t.Errorf("%s: %d listings were written, want %d; listed as before: %v, want %v", name, written, want, before.listsAs(now), same)
		}
		before = now
	}
	step("nothing", 0, true)
	all[7] = offerOf("tool-7", `{"type":"object"}`)
	step("the same tool from another manifest", 1, true)
	all[7] = offerOf("tool-7", `{"type":"object","properties":{"a":{}}}`)
	step("a schema", 1, false)
	all[8].Definition = json.RawMessage(`{"icons":[]}`)
	step("what a server says of it", 1, false)
	all[9].Hidden = true
	step("a hidden tool", 0, false)
	all[9].Hidden = false
	step("shown again", 1, false)
	all[10].Audience = audience("ann")
	step("an audience", 0, false)
	step("the same audience", 0, true)
	all[10].Audience = audience("bob")
	step("another audience", 0, false)
	all[11].Tool = offerOf("tool-11", `{"type":"object"}`).Tool
	all[11].Tool.Spec.Preference = &v1.Preference{Weight: 5}
	step("a place in the list", 1, false)
	all = append(all, Offer{Tool: func() *v1.Tool {
		o := offerOf("tool-12", `{"type":"object"}`).Tool
		o.Metadata.Namespace = "b"
		return o
	}(), Name: "b/tool-12"})
	step("a name that two namespaces have", 2, false)
}
