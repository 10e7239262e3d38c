package mcpconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/mcpconfig"
	"toolctl.dev/toolctl/pkg/manifest"
)

// TestGolden compares a file of each client with its manifests and notes.
// UPDATE_GOLDEN=1 writes them anew.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			servers, notes, err := mcpconfig.Read(file, data)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, n := range notes {
				b.WriteString("# " + n + "\n")
			}
			for _, s := range servers {
				out, err := manifest.MarshalYAML(s)
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString("---\n" + string(out))
			}
			base, _, _ := strings.Cut(file, ".in.")
			golden := base + ".golden.yaml"
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Error(diff)
			}
			// What is written is a manifest, and holds nothing that the file calls secret.
			objects, violations := manifest.Decode(golden, want, manifest.Options{})
			if len(objects) != len(servers) || len(violations) > 0 {
				t.Errorf("read back %d of %d objects: %v", len(objects), len(servers), violations)
			}
			if strings.Contains(string(want), "S3CR3T") {
				t.Error("a secret is in the manifest")
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct{ name, file, data, want string }{
		{"no JSON", "a.json", `{"mcpServers": }`, `a.json: hujson: line 1, column 16`},
		{"no object", "a.json", `[1]`, `a.json: expected an object, got array`},
		{"no servers", "a.json", `{"tools":{}}`, `a.json: no servers: expected mcpServers, mcp_servers, spec.mcp_servers, servers or mcp.servers at the top`},
		{"empty", "a.json", `{"mcpServers":{}}`, `a.json: mcpServers contains no server`},
		{"a text", "a.yaml", `mcp_servers: x`, `a.yaml: mcp_servers: expected an object or a list, got string`},
		{"no name", "a.yaml", `mcp_servers: [{command: x}]`, `a.yaml: mcp_servers: server 1 has no name`},
		{"no YAML", "a.yaml", "mcp_servers: [\n", `a.yaml:`},
		{"nothing to start", "a.json", `{"servers":{"a":{"type":"stdio"}}}`, `a.json: servers.a: it has no command and no url`},
		{"a source", "a.yaml", `spec: {mcp_servers: [{name: a, source: docker}]}`, `a.yaml: spec.mcp_servers.a: it is started from source "docker", which toolctl does not support`},
		{"two ways", "a.json", `{"servers":{"a":{"command":"x","url":"http://x"}}}`, `servers.a: it has a command and a url`},
		{"a wrong type", "a.json", `{"servers":{"a":{"command":"x","args":"y"}}}`, `servers.a: args: unexpected string`},
		{"an unknown type", "a.json", `{"servers":{"a":{"url":"http://x","type":"ws"}}}`, `servers.a: unknown type "ws": expected stdio, http or sse`},
		{"a null server", "a.json", `{"servers":{"a":null}}`, `servers.a: expected an object, got null`},
		{"a wrong address", "a.json", `{"servers":{"a":{"url":"ftp://x"}}}`, `"ftp://x" is not an http or https URL`},
		{"names that fall together", "a.json", `{"servers":{"My Tool":{"command":"x"},"my-tool":{"command":"x"}}}`, `servers.my-tool: its name in the manifest would be "my-tool", as for "My Tool": rename one`},
		{"no name left", "a.json", `{"servers":{"日本":{"command":"x"}}}`, `this name cannot be turned into a manifest name`},
		{"all errors", "a.json", `{"servers":{"a":{},"b":{}}}`, "servers.a: it has no command and no url\na.json: servers.b: it has"},
		{"too large", "a.json", strings.Repeat(" ", 1<<20+1), "over 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := mcpconfig.Read(tt.file, []byte(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	const secret, literal = true, false
	tests := []struct {
		name, value string
		want        bool
	}{
		{"API_KEY", "abc", secret},
		{"githubToken", "x1", secret},
		{"GITHUB_PERSONAL_ACCESS_TOKEN", "<YOUR_TOKEN>", secret},
		{"DB_PASSWORD", "hunter2", secret},
		{"PIN", "ghp_0123456789abcdefghijABCDEFGHIJ012345", secret},
		{"X", "sk-ant-api03-abcdefghijkl", secret},
		{"X", "AKIAIOSFODNN7EXAMPLE", secret},
		{"X", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", secret},
		{"X", "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d", secret},
		{"DATABASE_URL", "postgres://me:hunter2@db/x", secret},
		{"X", "-----BEGIN RSA PRIVATE KEY-----\nMII", secret},
		{"API_KEY", "${API_KEY}", literal},
		{"API_KEY", "$API_KEY", literal},
		{"API_KEY", "", literal},
		{"KEY_FILE", "/etc/key.pem", literal},
		{"SSH_KEY", "~/.ssh/id", literal},
		{"MAX_TOKENS", "4096", literal},
		{"TOKEN_LIMIT", "many", literal},
		{"TOKEN", "true", literal},
		{"TOKEN_URL", "https://auth.example.com/token", literal},
		{"PUBLIC_KEY", "abc", literal},
		{"MONKEY", "banana", literal},
		{"PATH", "Make sure node is on your path", literal},
		{"X", "550e8400-e29b-41d4-a716-446655440000", literal},
		{"X", "@modelcontextprotocol/server-filesystem", literal},
		{"X", "a-very-long-name-of-a-thing-without-digits", literal},
		{"MEMORY_FILE_PATH", "/data/memory.json", literal},
		{"NODE_ENV", "production", literal},
		{"DATABASE_URL", "postgres://me@db/x", literal},
	}
	for _, tt := range tests {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			if got := mcpconfig.LooksSecret(tt.name, tt.value); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestServer(t *testing.T) {
	tests := []struct {
		words, name string
		args        string
	}{
		{"npx -y @modelcontextprotocol/server-filesystem@1.2.3 /srv", "filesystem", "-y @modelcontextprotocol/server-filesystem@1.2.3 /srv"},
		{"uvx mcp-server-git --repository .", "git", "mcp-server-git --repository ."},
		{"node dist/weather-mcp.js", "weather", "dist/weather-mcp.js"},
		{"docker run -i --rm mcp/fetch:latest", "fetch", "run -i --rm mcp/fetch:latest"},
		{"/usr/local/bin/github-mcp-server stdio", "github", "stdio"},
		{"my_server --api-key S3CR3T --token=S3CR3T2 --port=80", "my_server", "--api-key ${MY_SERVER_API_KEY} --token=${MY_SERVER_TOKEN} --port=80"},
		{"https://mcp.example.com/mcp", "example", ""},
		{"http://localhost:3001/mcp", "localhost", ""},
		{"http://127.0.0.1:3001/mcp", "127.0.0.1", ""},
		{"https://docs.example.co.uk/mcp", "docs-example-co", ""},
	}
	for _, tt := range tests {
		t.Run(tt.words, func(t *testing.T) {
			m, _, err := mcpconfig.Server("", strings.Fields(tt.words))
			if err != nil {
				t.Fatal(err)
			}
			if m.Metadata.Name != tt.name || strings.Join(m.Spec.Args, " ") != tt.args {
				t.Errorf("got %s, %q", m.Metadata.Name, m.Spec.Args)
			}
		})
	}
	if m, _, err := mcpconfig.Server("mine", []string{"https://x.example/?api_key=S3CR3T&a=1"}); err != nil || m.Metadata.Name != "mine" || m.Spec.URL != "https://x.example/?api_key=${MINE_API_KEY}&a=1" {
		t.Errorf("got %+v, %v", m, err)
	}
	for _, tt := range []struct{ name, words, want string }{
		{"nothing", "", "no command and no URL"},
		{"another scheme", "ftp://x.example/mcp", "expected a program, or an address that begins with http:// or https://, got ftp://"},
		{"an address and a word", "https://me:S3CR3T@x.example/mcp --stdio", "expected only a URL, and there is a word follows it"},
		{"an address and words", "https://x.example/mcp --token S3CR3T", "expected only a URL, and there are 2 words follows it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := mcpconfig.Server("", strings.Fields(tt.words)); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// Whatever the name, what is made of it is legal or nothing.
func TestName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z_.\- /]{0,100}`)).Draw(t, "name")
		if n := manifest.Name(s); n != "" && (!v1.IsName(n) || strings.Contains(n, "__")) {
			t.Fatalf("%q of %q", n, s)
		}
	})
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.in.*")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Ext(file), data)
	}
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		servers, _, err := mcpconfig.Read("x"+ext, data)
		if err != nil && servers != nil {
			t.Fatal("servers and an error")
		}
		for _, s := range servers {
			for _, violation := range s.Validate() {
				if !violation.IsWarning() {
					t.Fatal(violation)
				}
			}
		}
	})
}
