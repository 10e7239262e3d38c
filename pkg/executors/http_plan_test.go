package executors

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestHTTPPlan(t *testing.T) {
	tests := []struct {
		name  string
		spec  v1.HTTPSpec
		tools []string // spec.redact
		vars  map[string]string
		args  string
		json  string
		curl  string
	}{
		{name: "the weather example", vars: map[string]string{"WEATHER_API_KEY": "topsecret"},
			spec: v1.HTTPSpec{URL: "https://api.example.com/v1/weather", Headers: map[string]string{"Authorization": "Bearer ${WEATHER_API_KEY}"}},
			args: `{"city":"O'Slo"}`,
			json: `{"method":"POST","url":"https://api.example.com/v1/weather","headers":{"Accept":"application/json, */*;q=0.8","Authorization":"Bearer ${WEATHER_API_KEY}","Content-Type":"application/json","User-Agent":"toolctl"},"body":{"city":"O'Slo"}}`,
			curl: "curl --globoff --request POST \\\n  --url 'https://api.example.com/v1/weather' \\\n  --header 'Accept: application/json, */*;q=0.8' \\\n  --header 'Authorization: Bearer '\"$WEATHER_API_KEY\"'' \\\n  --header 'Content-Type: application/json' \\\n  --header 'User-Agent: toolctl' \\\n  --data-raw '{\"city\":\"O'\\''Slo\"}'\n"},
		{name: "what is not set",
			spec: v1.HTTPSpec{URL: "${BASE}/x?k=${KEY}&d=${D:-def}", Method: "GET", Headers: map[string]string{"Accept": "text/plain", "X-Empty": "", "User-Agent": "x"}},
			args: `{"a":"b c"}`,
			json: `{"method":"GET","url":"${BASE}/x?k=${KEY}&d=${D}&a=b%20c","headers":{"Accept":"text/plain","User-Agent":"x","X-Empty":""},"unset":["BASE","KEY"]}`,
			curl: "curl --globoff \\\n  --url ''\"$BASE\"'/x?k='\"$KEY\"'&d='\"$D\"'&a=b%20c' \\\n  --header 'Accept: text/plain' \\\n  --header 'User-Agent: x' \\\n  --header 'X-Empty;'\n"},
		{name: "an address that is set, with a user", vars: map[string]string{"BASE": "https://ann:pw@h.example/api/"},
			spec: v1.HTTPSpec{URL: "${BASE}/x", Method: "HEAD"},
			json: `{"method":"HEAD","url":"https://***@h.example/api/x","headers":{"Accept":"application/json, */*;q=0.8","User-Agent":"toolctl"}}`},
		{name: "basic", spec: v1.HTTPSpec{URL: "https://h.example/", Method: "GET", Headers: map[string]string{"Accept": "a", "User-Agent": "u"}, Auth: &v1.Auth{Basic: &v1.BasicAuth{UsernameEnv: "U", PasswordEnv: "P"}}},
			vars: map[string]string{"U": "ann", "P": "topsecret"},
			json: `{"method":"GET","url":"https://h.example/","headers":{"Accept":"a","Authorization":"Basic base64(${U}:${P})","User-Agent":"u"}}`,
			curl: "curl --globoff \\\n  --url 'https://h.example/' \\\n  --header 'Accept: a' \\\n  --header 'User-Agent: u' \\\n  --user ''\"$U\"':'\"$P\"''\n"},
		{name: "OAuth 2", spec: v1.HTTPSpec{URL: "https://h.example/", Method: "GET", Headers: map[string]string{"Accept": "a", "User-Agent": "u"},
			Auth: &v1.Auth{OAuth2ClientCredentials: &v1.OAuth2ClientCredentials{TokenURL: "https://a.example/t", ClientIDEnv: "U", ClientSecretEnv: "P"}}},
			vars: map[string]string{"U": "ann", "P": "topsecret"},
			json: `{"method":"GET","url":"https://h.example/","headers":{"Accept":"a","Authorization":"Bearer ${OAUTH2_TOKEN}","User-Agent":"u"}}`,
			curl: "curl --globoff \\\n  --url 'https://h.example/' \\\n  --header 'Accept: a' \\\n  --header 'User-Agent: u' \\\n  --header 'Authorization: Bearer '\"$OAUTH2_TOKEN\"\n"},
		{name: "redacted arguments", tools: []string{"pin"}, spec: v1.HTTPSpec{URL: "https://h.example/{{.pin}}", Request: &v1.HTTPRequest{
			HeaderParams: map[string]string{"X-P": "{{.pin}}"}, QueryParams: []string{"pin"}, StaticBody: raws("k", `"a ${KEY}"`)}, Headers: map[string]string{"Accept": "a", "User-Agent": "u"}},
			args: `{"pin":"1","o":{"pin":"2"}}`,
			json: `{"method":"POST","url":"https://h.example/%5BREDACTED%5D?pin=%5BREDACTED%5D","headers":{"Accept":"a","Content-Type":"application/json","User-Agent":"u","X-P":"[REDACTED]"},"body":{"k":"a ${KEY}","o":{"pin":"[REDACTED]"}},"unset":["KEY"]}`},
		{name: "redacted arguments that a mapping computes with", tools: []string{"pin"}, spec: v1.HTTPSpec{URL: "https://h.example/", Request: &v1.HTTPRequest{BodyMapping: "{p: abs(pin)}"},
			Headers: map[string]string{"Accept": "a", "User-Agent": "u"}},
			args: `{"pin":12345678}`,
			json: `{"method":"POST","url":"https://h.example/","headers":{"Accept":"a","Content-Type":"application/json","User-Agent":"u"},"body":{"p":"[REDACTED]"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newTestHTTP(t, tt.vars)
			h.transports[connection{private: true}] = &http.Transport{DialContext: noDial(t)}
			tool := httpToolOf(tt.spec)
			tool.Spec.Redact = tt.tools
			plan, err := h.Plan(t.Context(), tool, json.RawMessage(tt.args))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(plan)
			if err != nil {
				t.Fatal(err)
			}
			plain := strings.NewReplacer(`\u0026`, "&").Replace(string(got))
			if d := cmp.Diff(tt.json, plain); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
			if curl := plan.(*HTTPPlan).Curl(); tt.curl != "" && curl != tt.curl {
				t.Errorf("curl (-want +got):\n%s", cmp.Diff(tt.curl, curl))
			}
		})
	}
	var invalid *v1.ValidationError
	if _, err := newTestHTTP(t, nil).Plan(t.Context(), httpToolOf(v1.HTTPSpec{URL: "https://h/{{.a}}"}), nil); !errors.As(err, &invalid) || invalid.Type != v1.ArgsInvalid {
		t.Errorf("a plan without an argument: %v", err)
	}
	if _, err := newTestHTTP(t, nil).Plan(t.Context(), httpToolOf(v1.HTTPSpec{URL: "https://{{.a}}"}), nil); !errors.As(err, &invalid) || invalid.Type != v1.ManifestInvalid {
		t.Errorf("a plan of a broken manifest: %v", err)
	}
}

// TestHTTPCurlSendsTheSame runs the curl command of a plan and compares the request at the server with that of
// Execute.
func TestHTTPCurlSendsTheSame(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	vars := map[string]string{"KEY": `to'p "$se`, "U": "ann", "P": "p w"}
	requests := make(chan seen, 2)
	srv, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the server cannot read the body: %v", err)
		}
		requests <- seen{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(body), r.Header.Clone()}
	})
	tool := httpToolOf(v1.HTTPSpec{URL: srv.URL + "/x[1]/{{.seg}}", Headers: map[string]string{"X-Key": "a ${KEY} $HOME `id`", "X-Empty": ""},
		Auth: &v1.Auth{Basic: &v1.BasicAuth{UsernameEnv: "U", PasswordEnv: "P"}}})
	args := json.RawMessage(`{"seg":"it's {a} & b","text":"@file '$HOME' \n \\ ` + "`id`" + `"}`)
	h := newTestHTTP(t, vars)
	if _, err := h.Execute(t.Context(), tool, args); err != nil {
		t.Fatal(err)
	}
	want := <-requests
	plan, err := h.Plan(t.Context(), tool, args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", plan.(*HTTPPlan).Curl())
	cmd.Env = os.Environ()
	for k, v := range vars {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("curl: %v\n%s", err, out)
	}
	want.Header.Del("Accept-Encoding") // curl decompresses only with an option
	if d := cmp.Diff(want, <-requests); d != "" {
		t.Errorf("(-execute +curl):\n%s", d)
	}
}
