package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search"
)

// searchable returns the tools of a toolset that a search may find; all of the scenario if the name is "".
func (p *player) searchable(toolset string) (*registry.Searchable, error) {
	if s := p.searches[toolset]; s != nil {
		return s, nil
	}
	in := func(it registry.Item) bool { return it.Searched(p.overlay) }
	if toolset != "" {
		item, err := p.lookup(v1.KindToolset, toolset)
		if err != nil {
			return nil, err
		}
		set := item.Object.(*v1.Toolset)
		in = func(it registry.Item) bool {
			return it.Searched(p.overlay) && search.Contains(set, v1.KindTool, it.Subject)
		}
	}
	page, err := p.reg.List(registry.Query{Kind: v1.KindTool})
	if err != nil {
		return nil, err
	}
	if p.searches == nil {
		p.searches = map[string]*registry.Searchable{}
	}
	p.searches[toolset] = registry.NewSearchable(page.Items, in)
	return p.searches[toolset], nil
}

// checkSearches reports toolsets and tools that do not exist.
func (p *player) checkSearches(field string, searches []v1.ScenarioSearch) {
	for i, s := range searches {
		at := v1.Pointer(field, strconv.Itoa(i))
		tools, err := p.searchable(s.Toolset)
		if err != nil {
			p.invalid(at+"/toolset", err.Error())
			continue
		}
		for _, name := range slices.Concat([]string{s.Expect.First}, s.Expect.Contains, s.Expect.Lacks) {
			var missing *v1.NotFoundError
			if _, err := tools.Name(p.reg, p.namespace(p.reg, name), name); name != "" && errors.As(err, &missing) {
				if p.ofUnstarted(name) {
					err = fmt.Errorf("%w: no MCP server is started for searches: %s", err, declareTool)
				}
				p.invalid(at+"/expect", err.Error())
			}
		}
	}
}

// playSearches searches for tools and compares what is found.
func (p *player) playSearches(field string, searches []v1.ScenarioSearch) {
	for i, s := range searches {
		tools, err := p.searchable(s.Toolset)
		if err != nil {
			continue // the scenario is not played
		}
		p.res.Judged++
		var found []string
		for _, hit := range tools.Search(s.Query, cmp.Or(s.Limit, defaultFound), nil) {
			found = append(found, hit.Name)
		}
		fail := func(sub, expected string) {
			got := "no tool"
			if found != nil {
				got = strings.Join(found, ", ")
			}
			p.fail(Failure{What: "search", Expected: fmt.Sprintf("%q finds %s", s.Query, expected), Got: got, Field: v1.Pointer(field, strconv.Itoa(i), "expect", sub)})
		}
		at := func(name string) int { // -1 also for a tool that no search finds
			wire, err := tools.Name(p.reg, p.namespace(p.reg, name), name)
			if err != nil {
				return -1
			}
			return slices.Index(found, wire)
		}
		if name := s.Expect.First; name != "" && at(name) != 0 {
			fail("first", name+" first")
		}
		for _, name := range s.Expect.Contains {
			if at(name) < 0 {
				fail("contains", name)
			}
		}
		for _, name := range s.Expect.Lacks {
			if at(name) >= 0 {
				fail("lacks", "no "+name)
			}
		}
	}
}

// defaultFound is the number of tools that a search finds without a limit, as that of find_tools.
const defaultFound = 5
