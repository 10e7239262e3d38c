package main

import (
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/gateway"
)

// declaredResources lists the files that owners declare.
func (a *app) declaredResources(w *action.Workspace, owners map[v1.Key]bool) []upstreamResource {
	list := []upstreamResource{}
	for _, r := range w.Resources(a.conf.Namespace) {
		if !owners[r.Owner] {
			continue
		}
		l := gateway.ListedResource(&r)
		list = append(list, upstreamResource{Namespace: r.Owner.Namespace, Manifest: objectName(r.Owner), URI: l.URI, Name: l.Name, Title: l.Title,
			Description: l.Description, MIMEType: l.MIMEType, Size: l.Size, Annotations: l.Annotations})
	}
	return list
}
