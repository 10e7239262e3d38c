package openapi_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/openapi"
)

const petDoc = `
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: https://pets.example}]
paths:
  /pets:
    get:
      operationId: listPets
      summary: List pets
      tags: [read]
      parameters:
        - {name: limit, in: query, schema: {type: integer, maximum: 100}}
      responses: {'204': {description: none}}
    post:
      operationId: createPet
      summary: Add a pet
      tags: [write]
      requestBody: {required: true, content: {application/json: {schema: {type: object, required: [name], properties: {name: {type: string}}}}}}
      responses: {'204': {description: none}}
`

func TestLoadURL(t *testing.T) {
	mux := http.NewServeMux()
	fetched := 0
	mux.HandleFunc("/api/doc.yaml", func(w http.ResponseWriter, r *http.Request) { fetched++; fmt.Fprint(w, petDoc) })
	mux.HandleFunc("/refs.yaml", func(w http.ResponseWriter, r *http.Request) {
		fetched++
		fmt.Fprint(w, "openapi: 3.0.0\ninfo: {title: T, version: '1'}\npaths: {/x: {get: {parameters: [{$ref: 'other.yaml#/p'}], responses: {}}}}")
	})
	mux.HandleFunc("/other.yaml", func(http.ResponseWriter, *http.Request) { t.Error("a reference was fetched") })
	mux.Handle("/moved", http.RedirectHandler("/api/doc.yaml?again=1", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.CopyN(z, zeros{}, 200<<20) // the client goes away before the end
		_ = z.Close()
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	doc, err := openapi.Load(t.Context(), server.URL+"/api/doc.yaml?token=s3cret#x", openapi.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if doc.Source != server.URL+"/api/doc.yaml" {
		t.Errorf("source %q", doc.Source)
	}
	if _, err := openapi.Load(t.Context(), server.URL+"/moved", openapi.LoadOptions{}); err != nil {
		t.Errorf("redirect: %v", err)
	}
	for path, want := range map[string]string{"/loop?key=s3cret": "redirects", "/bomb": "larger than 50 MiB", "/none?key=s3cret": "404"} {
		_, err := openapi.Load(t.Context(), server.URL+path, openapi.LoadOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", path, err)
		}
	}
	doc, err = openapi.Load(t.Context(), server.URL+"/refs.yaml", openapi.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := doc.Import(t.Context(), openapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Skipped) != 1 || !strings.Contains(set.Skipped[0].Reason, "bundle the document") {
		t.Errorf("%v", set.Skipped)
	}
	server.Close()
	_, err = openapi.Load(t.Context(), server.URL+"/api/doc.yaml?token=s3cret", openapi.LoadOptions{})
	var exec *v1.ExecutionError
	if !errors.As(err, &exec) || exec.Phase != v1.PhaseConnect || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("server gone: %v", err)
	}
	if fetched != 3 {
		t.Errorf("%d documents were fetched", fetched)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("secret.yaml", "p: {name: q, in: query, schema: {type: string}}")
	write("api/parts/params.yaml", "p: {name: q, in: query, schema: {$ref: types.yaml}}")
	write("api/parts/types.yaml", "type: integer\nminimum: 3")
	const head = "openapi: 3.0.0\ninfo: {title: T, version: '1'}\nservers: [{url: https://a.example}]\npaths:\n"
	good := write("api/good.yaml", head+"  /x: {get: {parameters: [{$ref: 'parts/params.yaml#/p'}], responses: {}}}")
	set := load(t, good, openapi.Options{})
	if len(set.Tools) != 1 || !strings.Contains(string(set.Tools[0].Manifest.Spec.InputSchema), `"minimum":3`) {
		t.Errorf("%v %v", set.Tools, set.Skipped)
	}
	bad := write("api/bad.yaml", head+"  /x: {get: {parameters: [{$ref: '../secret.yaml#/p'}], responses: {}}}\n  /y: {get: {parameters: [{$ref: 'file://"+dir+"/secret.yaml#/p'}], responses: {}}}")
	set = load(t, bad, openapi.Options{})
	if len(set.Tools) != 0 || len(set.Skipped) != 2 {
		t.Errorf("a file outside was read: %v", names(set))
	}
	for name, tt := range map[string]struct{ path, want string }{
		"folder":  {dir, "is a folder"},
		"missing": {filepath.Join(dir, "none.yaml"), "no such file"},
		"stdin":   {"-", "standard input"},
	} {
		if _, err := openapi.Load(t.Context(), tt.path, openapi.LoadOptions{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	doc, err := openapi.Load(t.Context(), "-", openapi.LoadOptions{Stdin: strings.NewReader(petDoc)})
	if err != nil || doc.Title != "Pets" {
		t.Errorf("stdin: %v %v", doc, err)
	}
}

func TestNotADocument(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "", "empty"},
		{"a list", "[1]", "must be an object"},
		{"something else", "a: 1", `the field "openapi" is missing`},
		{"swagger 2", "swagger: '2.0'", "Swagger 2.0 documents are not read"},
		{"a later version", "openapi: 4.0.0", `OpenAPI version "4.0.0" is not supported: expected 3.0 or 3.1`},
		{"a version that is a list", "openapi: [3]", "is not supported"},
		{"broken", "{\"openapi\": ", "1:"},
		{"not text", "\xff\xfe\x00", "doc.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := openapi.Parse([]byte(tt.text), "doc.yaml", "", nil)
			var invalid *v1.ValidationError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "doc.yaml: ") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestVersionMayBeANumber(t *testing.T) {
	doc, err := openapi.Parse([]byte("openapi: 3.1\ninfo: {title: 7, version: 1.10}\nservers: [{url: https://a.example}]\npaths: {}"), "d", "", nil)
	if err != nil || doc.Title != "7" || doc.Version != "1.10" {
		t.Errorf("%+v %v", doc, err)
	}
}
