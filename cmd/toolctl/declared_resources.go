package main

import (
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/resources"
)

// declaredResources lists the files that owners declare.
func (a *app) declaredResources(w *workspace, owners map[v1.Key]bool) []upstreamResource {
	list := []upstreamResource{}
	for _, r := range a.declared(w) {
		if !owners[r.Owner] {
			continue
		}
		l := gateway.ListedResource(&r)
		list = append(list, upstreamResource{Namespace: r.Owner.Namespace, Manifest: objectName(r.Owner), URI: l.URI, Name: l.Name, Title: l.Title,
			Description: l.Description, MIMEType: l.MIMEType, Size: l.Size, Annotations: l.Annotations})
	}
	return list
}

// declaredResource finds a file by its address.
func (a *app) declaredResource(w *workspace, uri string) ([]v1.Part, bool) {
	declared := a.declared(w)
	at := slices.IndexFunc(declared, func(r resources.Resource) bool { return r.URI == uri })
	if at < 0 {
		return nil, false
	}
	return []v1.Part{declared[at].Contents()}, true
}

func (a *app) declared(w *workspace) []resources.Resource {
	return slices.DeleteFunc(resources.Of(w.reg.Objects()), func(r resources.Resource) bool { return a.namespace != "" && r.Owner.Namespace != a.namespace })
}
