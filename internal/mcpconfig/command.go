package mcpconfig

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// Server makes the manifest of one server from a command line: a single URL, or a command with its
// arguments. The default name is that of the package, the program or the host. Secrets become
// variables as in [Read].
func Server(name string, words []string) (*v1.MCPServer, []string, error) {
	if len(words) == 0 {
		return nil, nil, errors.New("no command and no URL")
	}
	m := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	isURL := len(words) == 1 && (strings.HasPrefix(words[0], "http://") || strings.HasPrefix(words[0], "https://"))
	if scheme, _, ok := strings.Cut(words[0], "://"); ok && !isURL && !strings.ContainsAny(scheme, "/ ") {
		if scheme == "http" || scheme == "https" { // the message must not contain secrets from the address
			return nil, nil, fmt.Errorf("expected only a URL, and %s follows it", plural(len(words)-1))
		}
		return nil, nil, fmt.Errorf("expected a program, or an address that begins with http:// or https://, got %s://", scheme)
	}
	if name == "" {
		if isURL {
			name = hostName(words[0])
		} else {
			name = programName(words)
		}
	}
	m.Metadata.Name = manifest.Name(name)
	c := &converter{values: map[string]string{}, names: map[string]string{}}
	t := texter{c: c, server: m.Metadata.Name, prefix: variable(m.Metadata.Name)}
	if isURL {
		m.Spec.URL = t.url(words[0])
	} else {
		m.Spec.Command, m.Spec.Args = words[0], t.args(words[1:])
	}
	return m, c.notes, valid(m)
}

// runners are programs that start a package or script named in their arguments.
var runners = map[string]bool{"npx": true, "uvx": true, "uv": true, "pnpm": true, "bunx": true, "node": true, "python": true, "python3": true, "deno": true, "docker": true, "go": true, "npm": true, "yarn": true, "pipx": true, "bun": true}

// programName returns the name of the program that a command starts: filesystem for npx -y
// @modelcontextprotocol/server-filesystem@1.2.3 /srv.
func programName(words []string) string {
	program := strings.TrimSuffix(filepath.Base(words[0]), ".exe")
	if runners[program] {
		for _, w := range words[1:] {
			if strings.HasPrefix(w, "-") || w == "run" || w == "exec" || w == "x" || w == "dlx" || w == "tool" {
				continue
			}
			program = w
			break
		}
	}
	base := path.Base(strings.TrimSuffix(filepath.ToSlash(program), "/"))
	if i := strings.IndexAny(base, "@:"); i > 0 { // remove a version or a tag
		base = base[:i]
	}
	for _, ext := range []string{".js", ".mjs", ".cjs", ".ts", ".py", ".go"} {
		base = strings.TrimSuffix(base, ext)
	}
	short := base
	for _, affix := range []string{"mcp-server-", "server-", "mcp-"} {
		short = strings.TrimPrefix(short, affix)
	}
	for _, affix := range []string{"-mcp-server", "-server", "-mcp"} {
		short = strings.TrimSuffix(short, affix)
	}
	if short == "" {
		return base
	}
	return short
}

// hostName returns the distinctive part of a host: example for https://mcp.example.com/mcp.
func hostName(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	host := u.Hostname()
	labels := strings.Split(host, ".")
	if len(labels) < 2 || strings.Trim(host, "0123456789.") == "" {
		return host
	}
	if len(labels) > 2 && (labels[0] == "mcp" || labels[0] == "api" || labels[0] == "www") {
		labels = labels[1:]
	}
	return strings.Join(labels[:len(labels)-1], "-")
}

func plural(words int) string {
	if words == 1 {
		return "there is a word"
	}
	return fmt.Sprintf("there are %d words", words)
}
