package openapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmespath/go-jmespath"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/importer"
	"toolctl.dev/toolctl/pkg/openapi"
)

// parse imports a document whose paths are given.
func parse(t testing.TB, paths, rest string, o openapi.Options) (*openapi.Set, error) {
	t.Helper()
	if !strings.Contains(rest, "servers:") {
		rest = "servers: [{url: https://api.example}]\n" + rest
	}
	doc, err := openapi.Parse([]byte("openapi: 3.1.0\ninfo: {title: T, version: '1'}\n"+rest+"\npaths:\n"+paths), "doc.yaml", "", nil)
	if err != nil {
		return nil, err
	}
	return doc.Import(t.Context(), o)
}

func mustParse(t testing.TB, paths, rest string, o openapi.Options) *openapi.Set {
	t.Helper()
	set, err := parse(t, paths, rest, o)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func names(set *openapi.Set) []string {
	var out []string
	for _, tool := range set.Tools {
		out = append(out, tool.Manifest.Metadata.Name)
	}
	return out
}

func TestNames(t *testing.T) {
	tests := []struct{ name, id, path, want string }{
		{"camel case", "getPetById", "/p", "get-pet-by-id"},
		{"acronym", "listHTTPServers", "/p", "list-http-servers"},
		{"acronym with plural", "getIDs", "/p", "get-ids"},
		{"all capitals", "GET_PET", "/p", "get-pet"},
		{"digits", "getV2Pet3d", "/p", "get-v2-pet3d"},
		{"slashes and dots", "repos/list.for_org", "/p", "repos-list-for-org"},
		{"other scripts", "получить-pets", "/p", "pets"},
		{"nothing left", "получить", "/a/{b}", "get-a-b"},
		{"no operationId", "", "/pets/{petId}/toys", "get-pets-pet-id-toys"},
		{"root path", "", "/", "get"},
		{"template text", "{{.x}}${HOME}", "/p", "x-home"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, _ := json.Marshal(tt.id)
			path, _ := json.Marshal(tt.path)
			set := mustParse(t, fmt.Sprintf("  %s: {get: {operationId: %s, responses: {}}}", path, id), "", openapi.Options{})
			if diff := cmp.Diff([]string{tt.want}, names(set)); diff != "" {
				t.Error(diff)
			}
			checkTools(t, set)
		})
	}
}

func TestNamesDoNotCollide(t *testing.T) {
	const paths = `
  /a: {get: {operationId: getPet, responses: {}}}
  /b: {get: {operationId: get_pet, responses: {}}}
  /c: {get: {operationId: get-pet, responses: {}}, post: {operationId: a` + "`" + `, responses: {}}}
`
	set := mustParse(t, paths, "", openapi.Options{})
	all := names(set)
	if len(all) != 4 || all[1] != "get-pet" || !strings.HasPrefix(all[2], "get-pet-") || !strings.HasPrefix(all[3], "get-pet-") {
		t.Errorf("names %v", all)
	}
	filter, err := openapi.NewFilter([]string{"path=/b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	one := mustParse(t, paths, "", openapi.Options{Filter: filter})
	if len(one.Tools) != 1 || !strings.HasPrefix(names(one)[0], "get-pet-") {
		t.Errorf("a filter changed the name: %v", names(one))
	}
	checkTools(t, set)
	prefixed := mustParse(t, paths, "", openapi.Options{Prefix: "shop_", Namespace: "apis"})
	if m := prefixed.Tools[0].Manifest.Metadata; m.Name != "shop_a" || m.Namespace != "apis" {
		t.Errorf("%+v", m)
	}
}

func TestFilter(t *testing.T) {
	const paths = `
  /pets: {get: {operationId: listPets, tags: [Pets, Read], responses: {}}, post: {operationId: addPet, tags: [Pets], responses: {}}}
  /pets/{id}/toys: {get: {operationId: listToys, tags: [Toys], responses: {}}}
`
	tests := []struct {
		name             string
		include, exclude []string
		want             []string
	}{
		{"all", nil, nil, []string{"add-pet", "list-pets", "list-toys"}},
		{"tag", []string{"tag=pets"}, nil, []string{"add-pet", "list-pets"}},
		{"two tags", []string{"tag=toys", "tag=read"}, nil, []string{"list-pets", "list-toys"}},
		{"tag and method", []string{"tag=pets", "method=get"}, nil, []string{"list-pets"}},
		{"path without slashes", []string{"path=/pets*"}, nil, []string{"add-pet", "list-pets"}},
		{"path", []string{"path=/pets/**"}, nil, []string{"list-toys"}},
		{"operation", []string{"operation=list*"}, nil, []string{"list-pets", "list-toys"}},
		{"exclude", nil, []string{"method=POST", "path=/pets"}, []string{"list-toys"}},
		{"both", []string{"tag=pets"}, []string{"tag=r?ad"}, []string{"add-pet"}},
		{"none", []string{"tag=none"}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := openapi.NewFilter(tt.include, tt.exclude)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, names(mustParse(t, paths, "", openapi.Options{Filter: f}))); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, bad := range []string{"tag", "tag=", "colour=red", ""} {
		if _, err := openapi.NewFilter([]string{bad}, nil); err == nil || !strings.Contains(err.Error(), "expected KEY=GLOB") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestServers(t *testing.T) {
	tests := []struct {
		name, servers, base, override string
		want, err                     string
	}{
		{name: "first", servers: "[{url: https://a.example/v1/}, {url: https://b.example}]", want: "https://a.example/v1/x"},
		{name: "variables", servers: "[{url: '{scheme}://{host}:{port}/{base}', variables: {scheme: {default: http}, host: {default: h.example}, port: {default: 8080}, base: {default: v1}}}]", want: "http://h.example:8080/v1/x"},
		{name: "relative to the document", servers: "[{url: ../api}]", base: "https://docs.example/a/b/openapi.json", want: "https://docs.example/a/api/x"},
		{name: "none, from a URL", servers: "[]", base: "https://docs.example/a/openapi.json", want: "https://docs.example/x"},
		{name: "override", servers: "[{url: https://a.example}]", override: "http://localhost:8080/base/", want: "http://localhost:8080/base/x"},
		{name: "override of a relative one", servers: "[{url: /api}]", override: "https://c.example", want: "https://c.example/x"},
		{name: "a variable of the environment", servers: "[{url: 'https://a.example/${HOME}/{{.x}}'}]", want: "https://a.example/$%7BHOME%7D/%7B%7B.x%7D%7D/x"},
		{name: "relative, from a file", servers: "[{url: /api/v3}]", err: "name one with --server"},
		{name: "none, from a file", servers: "[]", err: "name one with --server"},
		{name: "variable without default", servers: "[{url: 'https://{h}/', variables: {h: {}}}]", err: `the variable "h" has no default`},
		{name: "password", servers: "[{url: 'https://u:secret@a.example'}]", err: "must not contain a user name"},
		{name: "other scheme", servers: "[{url: 'ftp://a.example'}]", err: "expected an http or https URL"},
		{name: "variable as host", servers: "[{url: 'https://${HOST}/'}]", err: "server"},
		{name: "bad override", servers: "[]", override: "localhost:8080", err: "expected an http or https URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := openapi.Parse([]byte("openapi: 3.0.0\ninfo: {title: T, version: '1'}\nservers: "+tt.servers+"\npaths: {/x: {get: {responses: {}}}}"), "doc.yaml", tt.base, nil)
			if err != nil {
				t.Fatal(err)
			}
			set, err := doc.Import(t.Context(), openapi.Options{Server: tt.override})
			var got, reason string
			switch {
			case err != nil:
				reason = err.Error()
			case len(set.Tools) == 1:
				got = set.Tools[0].Manifest.Spec.HTTP.URL
			default:
				reason = set.Skipped[0].Reason
			}
			if got != tt.want || !strings.Contains(reason, tt.err) || (tt.err == "") != (reason == "") {
				t.Errorf("got %q, %q", got, reason)
			}
			if strings.Contains(reason, "secret") {
				t.Error("the password is shown")
			}
		})
	}
}

// TestTextIsNoTemplate: a document cannot name what is read from the environment,
// wherever its text ends up.
func TestTextIsNoTemplate(t *testing.T) {
	const evil = `${HOME}{{.x}}`
	paths := strings.ReplaceAll(`
  '/a/EVIL/{p}':
    post:
      operationId: 'EVIL'
      tags: ['EVIL']
      summary: 'EVIL'
      parameters:
        - {name: 'p', in: path, required: true, schema: {type: string}}
        - {name: 'EVIL', in: header, required: true, schema: {type: string}}
        - {name: 'EVIL', in: query, schema: {type: string}}
      requestBody: {required: true, content: {'application/EVIL+json': {schema: {type: object, properties: {'EVIL': {}}}}}}
      responses: {'200': {description: d, content: {'application/EVIL+json': {schema: {}}}}}
`, "EVIL", evil)
	rest := strings.ReplaceAll(`
security: [{k: []}]
components: {securitySchemes: {k: {type: apiKey, in: header, name: 'EVIL'}, c: {type: oauth2, flows: {clientCredentials: {tokenUrl: 'https://EVIL/', scopes: {}}}}}}
`, "EVIL", evil)
	set := mustParse(t, paths, rest, openapi.Options{})
	if len(set.Tools) != 1 {
		t.Fatalf("skipped: %v", set.Skipped)
	}
	h := set.Tools[0].Manifest.Spec.HTTP
	text, err := json.Marshal([]any{h.URL, h.Headers, h.Request.HeaderParams, h.Request.StaticQuery, h.Auth})
	if err != nil {
		t.Fatal(err)
	}
	// {HOME} and {.x} are parameters of the path: arguments, which the tool may name.
	if s := strings.NewReplacer("{{.p}}", "", "{{.HOME}}", "", "{{._x}}", "").Replace(string(text)); strings.Contains(s, "${") || strings.Contains(s, "{{") {
		t.Errorf("the document reached a template: %s", s)
	}
	checkTools(t, set)
}

// TestRenamedBody: what a model sends under other names arrives under the names of
// the document, and what it leaves out is not sent.
func TestRenamedBody(t *testing.T) {
	set := mustParse(t, `
  /x:
    post:
      parameters: [{name: id, in: query, schema: {}}, {name: 'a"b', in: query, schema: {}}]
      requestBody: {required: true, content: {application/json: {schema: {type: object, properties: {id: {}, 'a"b': {}, plain: {}, flag: {}}}}}}
      responses: {}
`, "", openapi.Options{})
	h := set.Tools[0].Manifest.Spec.HTTP
	tests := []struct{ name, left, want string }{
		{"all", `{"body_id": 1, "body_a\"b": 2, "plain": 3, "flag": false}`, `{"a\"b":2,"flag":false,"id":1,"plain":3}`},
		{"some", `{"plain": ""}`, `{"plain":""}`},
		{"none", `{}`, `{}`},
		{"empty values", `{"flag": [], "body_id": {}}`, `{"flag":[],"id":{}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var left any
			if err := json.Unmarshal([]byte(tt.left), &left); err != nil {
				t.Fatal(err)
			}
			got, err := jmespath.Search(h.Request.BodyMapping, left)
			if err != nil {
				t.Fatalf("%v\n%s", err, h.Request.BodyMapping)
			}
			text, err := json.Marshal(got)
			if err != nil || string(text) != tt.want {
				t.Errorf("got %s, %v", text, err)
			}
		})
	}
}

func TestSecurity(t *testing.T) {
	const schemes = `
components:
  securitySchemes:
    bearer: {type: http, scheme: bearer}
    basic: {type: http, scheme: basic}
    digest: {type: http, scheme: digest}
    one: {type: apiKey, in: header, name: X-One}
    two: {type: apiKey, in: query, name: two}
    sid: {type: apiKey, in: cookie, name: sid}
    lang: {type: apiKey, in: cookie, name: lang}
    client: {type: oauth2, flows: {clientCredentials: {tokenUrl: /token, scopes: {r: read}}}}
    code: {type: oauth2, flows: {authorizationCode: {authorizationUrl: 'https://a', tokenUrl: 'https://b', scopes: {}}}}
    broken: {type: oauth2, flows: {clientCredentials: {tokenUrl: 'ftp://x', scopes: {}}}}
    tls: {type: mutualTLS}
`
	tests := []struct {
		name, security string
		auth           *v1.Auth
		headers, query map[string]string
		warn           string
	}{
		{name: "bearer", security: "[{bearer: []}]", auth: &v1.Auth{BearerEnv: "T_BEARER"}},
		{name: "basic", security: "[{basic: []}]", auth: &v1.Auth{Basic: &v1.BasicAuth{UsernameEnv: "T_USERNAME", PasswordEnv: "T_PASSWORD"}}},
		{name: "header key", security: "[{one: []}]", headers: map[string]string{"X-One": "${T_ONE}"}},
		{name: "query key", security: "[{two: []}]", query: map[string]string{"two": "${T_TWO}"}},
		{name: "cookies", security: "[{sid: [], lang: []}]", headers: map[string]string{"Cookie": "lang=${T_LANG}; sid=${T_SID}"}},
		{name: "client credentials", security: "[{client: [r]}]", auth: &v1.Auth{OAuth2ClientCredentials: &v1.OAuth2ClientCredentials{TokenURL: "https://api.example/token", ClientIDEnv: "T_CLIENT_CLIENT_ID", ClientSecretEnv: "T_CLIENT_CLIENT_SECRET", Scopes: []string{"r"}}}},
		{name: "other flows", security: "[{code: []}]", auth: &v1.Auth{BearerEnv: "T_CODE"}},
		{name: "both", security: "[{one: [], bearer: []}]", auth: &v1.Auth{BearerEnv: "T_BEARER"}, headers: map[string]string{"X-One": "${T_ONE}"}},
		{name: "the first that can be sent", security: "[{digest: []}, {tls: []}, {bearer: []}]", auth: &v1.Auth{BearerEnv: "T_BEARER"}},
		{name: "optional", security: "[{bearer: []}, {}]"},
		{name: "none", security: "[]"},
		{name: "two of a kind", security: "[{basic: [], bearer: []}]", warn: "an HTTP tool sends only one"},
		{name: "none that can be sent", security: "[{digest: []}, {tls: []}]", warn: `"digest" is not supported`},
		{name: "undeclared", security: "[{nope: []}]", warn: `"nope" is not declared`},
		{name: "broken token URL", security: "[{broken: []}]", warn: "is not a plain http or https URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := mustParse(t, "  /x: {get: {responses: {}, security: "+tt.security+"}}", schemes, openapi.Options{})
			h := set.Tools[0].Manifest.Spec.HTTP
			if diff := cmp.Diff(tt.auth, h.Auth); diff != "" {
				t.Errorf("auth: %s", diff)
			}
			if diff := cmp.Diff(tt.headers, h.Headers); diff != "" {
				t.Errorf("headers: %s", diff)
			}
			var query map[string]string
			if h.Request != nil {
				query = h.Request.StaticQuery
			}
			if diff := cmp.Diff(tt.query, query); diff != "" {
				t.Errorf("query: %s", diff)
			}
			warned := false
			for _, w := range set.Warnings {
				warned = warned || tt.warn != "" && strings.Contains(w.Message, tt.warn)
			}
			if warned != (tt.warn != "") {
				t.Errorf("warnings: %v", set.Warnings)
			}
			checkTools(t, set)
		})
	}
}

func TestEnvNames(t *testing.T) {
	for title, want := range map[string]string{
		"GitHub v3 REST API":               "GITHUB_TOKEN",
		"Swagger Petstore - OpenAPI 3.1":   "PETSTORE_TOKEN",
		"API":                              "API_TOKEN",
		"360 Learning API":                 "LEARNING_TOKEN",
		"3":                                "API_3_TOKEN",
		"Ünïcode":                          "N_CODE_TOKEN",
		"":                                 "API_TOKEN",
		"A title of far too many words to": "A_TITLE_OF_FAR_TOO_MANY_WORDS_TO_TOKEN",
	} {
		text, _ := json.Marshal(title)
		doc, err := openapi.Parse([]byte(`{"openapi": "3.0.1", "info": {"title": `+string(text)+`, "version": "1"}, "servers": [{"url": "https://a.example"}], "security": [{"b": []}],
			"components": {"securitySchemes": {"b": {"type": "http", "scheme": "bearer"}}}, "paths": {"/x": {"get": {"responses": {}}}}}`), "x", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		set, err := doc.Import(t.Context(), openapi.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]importer.EnvUse{{Variable: want, Hosts: []string{"a.example"}}}, set.Env); diff != "" {
			t.Errorf("%q: %s", title, diff)
		}
		set, err = doc.Import(t.Context(), openapi.Options{EnvPrefix: "MINE"})
		if err != nil || set.Env[0].Variable != "MINE_TOKEN" {
			t.Errorf("prefix: %v, %v", set, err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for name, o := range map[string]openapi.Options{
		"prefix":             {Prefix: "A_"},
		"environment prefix": {EnvPrefix: "my-"},
	} {
		if _, err := parse(t, "  /x: {get: {responses: {}}}", "", o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheck: a schema that cannot be used costs the tool, or its output schema.
func TestCheck(t *testing.T) {
	const paths = `
  /a: {get: {parameters: [{name: q, in: query, schema: {type: string, maxLength: 1e300}}], responses: {}}}
  /b: {get: {responses: {'200': {description: d, content: {application/json: {schema: {type: string, maxLength: 1e300}}}}}}}
`
	set := mustParse(t, paths, "", openapi.Options{})
	if len(set.Skipped) != 1 || set.Skipped[0].Operation != "GET /a" || !strings.HasPrefix(set.Skipped[0].Reason, "its input schema cannot be used: ") {
		t.Errorf("skipped %v", set.Skipped)
	}
	if len(set.Tools) != 1 || set.Tools[0].Manifest.Spec.OutputSchema != nil || len(set.Warnings) == 0 {
		t.Errorf("%v %v", names(set), set.Warnings)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	set := mustParse(t, "  /x: {get: {summary: '"+long+"', description: \"a\\u0000b\\tc  \\n  d \\u202e\", responses: {}}}", "", openapi.Options{})
	m := set.Tools[0].Manifest
	if n := len([]rune(m.Spec.Description)); n > 1024 || !strings.HasSuffix(m.Spec.Description, "word…") {
		t.Errorf("%d: %q", n, m.Spec.Description)
	}
	if n := len([]rune(m.Spec.Hints.Title)); n > 120 {
		t.Errorf("title of %d", n)
	}
	checkTools(t, set)
}

// TestOneBadOperationIsOne: what cannot be read costs its operation and no other.
func TestOneBadOperationIsOne(t *testing.T) {
	set := mustParse(t, `
  /good: {get: {responses: {}}}
  /bad1: {get: {tags: {a: 1}, responses: {}}}
  /bad2: {get: {parameters: [{$ref: '#/nope'}], responses: {}}}
  /bad3: {get: {parameters: {a: 1}, responses: {}}}
  /bad4: {parameters: 5, get: {responses: {}}}
  /bad5: {get: {requestBody: {$ref: '#/paths/~1bad5/get/requestBody'}, responses: {}}}
  /bad6: 7
  bad7: {get: {responses: {}}}
  /bad8/../x: {get: {responses: {}}}
  '/bad9#x': {get: {responses: {}}}
  x-extra: {get: {responses: {}}}
`, "", openapi.Options{})
	if diff := cmp.Diff([]string{"get-good"}, names(set)); diff != "" {
		t.Error(diff)
	}
	if len(set.Skipped) != 7 {
		t.Errorf("skipped: %v", set.Skipped)
	}
}
