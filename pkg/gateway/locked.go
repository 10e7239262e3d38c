package gateway

import (
	"errors"
	"fmt"
	"io/fs"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/mcp"
)

// Definition returns the definition of a tool from its server in the form of the lock.
func Definition(t mcp.DiscoveredTool) lock.Definition {
	return lock.Definition{Name: t.Remote, Title: t.Title, Description: t.Description, Annotations: t.Annotations, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema}
}

func (s *serverSet) compare(server v1.Key, t mcp.DiscoveredTool) error {
	if s.lockErr != nil {
		return s.lockErr
	}
	return s.lock.Check(server, Definition(t))
}

// refuseAll refuses the declared tools of a server, because tools that cannot be compared with the lock must not be
// called.
func (u *servers) refuseAll(server v1.Key, err error) map[string]error {
	refused := map[string]error{}
	for _, o := range u.reg.Objects() {
		if t, ok := o.(*v1.Tool); ok {
			if k, bound := t.Server(); bound && k == server {
				refused[t.RemoteName()] = err
			}
		}
	}
	return refused
}

// readLock reads the lock file.
func readLock(named string) (lock.File, error) {
	path, err := lock.Find(named)
	if err != nil {
		return lock.File{}, err
	}
	f, err := lock.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no %s in this folder or a parent: create one with 'toolctl lock'", lock.Name)
		if named != "" {
			err = fmt.Errorf("there is no %s: create it with 'toolctl lock --lock-file %s'", named, named)
		}
	}
	return f, err
}
