package registry_test

import (
	"context"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

func TestReplaceGroup(t *testing.T) {
	fn := func(name string) *registry.GoTool {
		return registry.Func(name, "Does "+name, func(context.Context, struct{}) (string, error) { return name, nil })
	}
	reg := must(registry.New([]v1.Object{fn("alone")}, registry.Options{}))
	names := func(selector string) string {
		var all []string
		for _, it := range must(reg.List(registry.Query{Selector: selector})).Items {
			all = append(all, it.Tool().Metadata.Name)
		}
		return strings.Join(all, " ")
	}
	const github, jira = v1.LabelGroup + "=github", v1.LabelGroup + "=jira"
	shared := fn("issue")
	for _, step := range []struct {
		name, group, err string
		tools            []v1.Object
		want             [3]string // all, github, jira
	}{
		{"new", "github", "", []v1.Object{shared, fn("pull")}, [3]string{"alone issue pull", "issue pull", ""}},
		{"another", "jira", "", []v1.Object{fn("ticket")}, [3]string{"alone issue pull ticket", "issue pull", "ticket"}},
		{"replaced", "github", "", []v1.Object{shared, fn("release")}, [3]string{"alone issue release ticket", "issue release", "ticket"}},
		{"a name of another group", "jira", "Tool default/release is registered already", []v1.Object{fn("release")}, [3]string{"alone issue release ticket", "issue release", "ticket"}},
		{"a name twice", "jira", "is registered already", []v1.Object{fn("a"), fn("a")}, [3]string{"alone issue release ticket", "issue release", "ticket"}},
		{"a broken tool", "jira", "/metadata/name", []v1.Object{fn("A B")}, [3]string{"alone issue release ticket", "issue release", "ticket"}},
		{"no name", "", "is not the name of a group", nil, [3]string{"alone issue release ticket", "issue release", "ticket"}},
		{"an illegal name", "a b", "is not the name of a group", nil, [3]string{"alone issue release ticket", "issue release", "ticket"}},
		{"removed", "github", "", nil, [3]string{"alone ticket", "", "ticket"}},
	} {
		err := reg.ReplaceGroup(step.group, step.tools...)
		if step.err == "" && err != nil || step.err != "" && (err == nil || !strings.Contains(err.Error(), step.err)) {
			t.Errorf("%s: got %v, want %q", step.name, err, step.err)
		}
		if got := [3]string{names(""), names(github), names(jira)}; got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
	if shared.Metadata.Labels != nil {
		t.Error("the caller's tool was changed")
	}
}
