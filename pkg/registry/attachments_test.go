package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

// repeats is an executor that returns its arguments.
type repeats struct{}

func (repeats) Name() string { return v1.ModeMock }

func (repeats) Execute(_ context.Context, _ *v1.Tool, args json.RawMessage) (v1.Result, error) {
	return v1.Result{Content: args}, nil
}

type audits []v1.AuditRecord

func (a *audits) AppendAudit(_ context.Context, r v1.AuditRecord) error {
	*a = append(*a, r)
	return nil
}

func TestAttachments(t *testing.T) {
	held := registry.NewAttachments(0)
	image, err := held.Put("s1", v1.Part{Type: v1.PartImage, Data: "aW1hZ2U=", MIMEType: "image/png"})
	if err != nil || image != "attachment:1" {
		t.Fatalf("got %q, %v", image, err)
	}
	text, err := held.Put("s1", v1.Part{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: "file:///a", Text: "a \"text\""}})
	if err != nil || text != "attachment:2" {
		t.Fatalf("got %q, %v", text, err)
	}
	var lines audits
	tool := &v1.Tool{Spec: v1.ToolSpec{Description: "Repeats", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	tool.APIVersion, tool.Kind, tool.Metadata.Name = v1.APIVersion, v1.KindTool, "repeat"
	goTool := registry.Func("resize", "Resizes", func(ctx context.Context, in struct {
		Image string `json:"image"`
	}) (map[string]string, error) {
		s := registry.Session(ctx)
		p, ok := s.Attachment(in.Image)
		if !ok {
			return nil, errors.New("no such image")
		}
		p.Data = "c21hbGw="
		ref, err := s.Attach(p)
		return map[string]string{"image": ref}, err
	})
	limit := int64(3)
	budget := &v1.ToolPolicy{Spec: v1.ToolPolicySpec{MaxTotalToolCalls: &limit}}
	budget.APIVersion, budget.Kind, budget.Metadata.Name = v1.APIVersion, v1.KindToolPolicy, "budget"
	reg := must(registry.New([]v1.Object{tool, goTool, budget}, registry.Options{Executors: []registry.Executor{repeats{}}, Attachments: held, Audit: &lines}))
	tests := []struct{ name, tool, session, args, want, fails string }{
		{"in their places", "repeat", "s1", `{"a":{"image":"attachment:1"},"b":["attachment:2"],"n":12345678901234567890}`, `{"a":{"image":"aW1hZ2U="},"b":["a \"text\""],"n":12345678901234567890}`, ""},
		{"another session's", "repeat", "s2", `{"a":"attachment:1"}`, "", `/a: there is no "attachment:1" in this session`},
		{"a refused call uses no budget", "repeat", "s1", `{"a":"attachment:9","b":"attachment:8"}`, "", `/b: there is no "attachment:8" in this session`},
		{"a tool made in Go", "resize", "s1", `{"image":"attachment:1"}`, `{"image":"attachment:3"}`, ""},
		{"what it attached", "repeat", "s1", `{"a":"attachment:3","b":"an attachment:1"}`, `{"a":"c21hbGw=","b":"an attachment:1"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res, err := reg.Execute(t.Context(), v1.Call{Tool: tt.tool, Session: tt.session, Args: json.RawMessage(tt.args)})
			if tt.fails != "" {
				if err == nil || res.Error.Type != v1.ArgsInvalid || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("got %v, want %s", err, tt.fails)
				}
				return
			}
			if err != nil || string(res.Content) != tt.want {
				t.Errorf("got %s, %v, want %s", res.Content, err, tt.want)
			}
		})
	}
	for _, l := range lines {
		if strings.Contains(string(l.Args), "aW1hZ2U") {
			t.Errorf("the audit has the bytes: %s", l.Args)
		}
	}
	held.Drop("s1")
	if _, ok := held.Get("s1", image); ok {
		t.Error("the session was dropped and still holds an image")
	}
}

func TestAttachmentsAreBounded(t *testing.T) {
	held := registry.NewAttachments(3000)
	big := v1.Part{Type: v1.PartText, Text: strings.Repeat("x", 1000)}
	var refs []string
	for range 4 {
		refs = append(refs, must(held.Put("s", big)))
	}
	for i, ref := range refs {
		if _, ok := held.Get("s", ref); ok != (i >= 2) {
			t.Errorf("%s: held is %v", ref, ok)
		}
	}
	for _, bad := range []struct{ session, text string }{{"", "x"}, {"s", strings.Repeat("x", 3000)}} {
		if _, err := held.Put(bad.session, v1.Part{Text: bad.text}); err == nil {
			t.Errorf("%d bytes for session %q were taken", len(bad.text), bad.session)
		}
	}
	many := registry.NewAttachments(1 << 30)
	for range 5000 {
		must(many.Put("s", v1.Part{Text: "x"}))
	}
	if _, ok := many.Get("s", "attachment:1"); ok {
		t.Error("more are held than there should be")
	}
	if _, ok := (*registry.Attachments)(nil).Get("s", "attachment:1"); ok {
		t.Error("nothing holds something")
	}
}
