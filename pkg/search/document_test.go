package search_test

import (
	"reflect"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/search"
)

func TestDocumentOf(t *testing.T) {
	tool := v1.NewObject(v1.KindTool).(*v1.Tool)
	tool.Metadata = v1.Metadata{Name: "refund-order", Labels: map[string]string{"team": "pay"}}
	tool.Spec.Description = "Pay an order back"
	tool.Spec.Hints = &v1.Hints{Title: "Refund"}
	tool.Spec.Keywords = []string{"reimburse"}
	tool.Spec.Examples = []v1.ToolExample{{Ask: "give Ann her money back"}, {Name: "no ask"}}
	tool.Spec.InputSchema = []byte(`{"type": "object", "description": "not a parameter", "properties": {
		"order": {"type": "object", "description": "The order", "properties": {"id": {"type": "string"}}},
		"reason": {"anyOf": [{"enum": ["late", "broken", 3]}, {"type": "null"}]},
		"notes": {"type": "array", "items": {"description": "One note"}}}}`)
	server := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	server.Metadata = v1.Metadata{Name: "shop", Labels: map[string]string{"team": "shop", "tier": "2"}}
	server.Spec.Description = "Orders of the web shop"

	want := search.Document{
		Name: "refund-order", Title: "Refund", Description: "Pay an order back", Asks: []string{"reimburse", "give Ann her money back"},
		Labels: map[string]string{"team": "pay", "tier": "2"}, Server: "shop", ServerDescription: "Orders of the web shop",
		Parameters: []search.Parameter{{Name: "notes"}, {Description: "One note"}, {Name: "order", Description: "The order"}, {Name: "id"}, {Name: "reason"}, {Enum: []string{"late", "broken"}}},
	}
	if got := search.DocumentOf("refund-order", tool, server); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if tool.Metadata.Labels["tier"] != "" || server.Metadata.Labels["team"] != "shop" {
		t.Error("the labels of the manifests have changed")
	}
	plain := search.DocumentOf("x", &v1.Tool{Spec: v1.ToolSpec{InputSchema: []byte(`{`)}}, nil)
	if !reflect.DeepEqual(plain, search.Document{Name: "x"}) {
		t.Errorf("a tool without texts: %+v", plain)
	}
}
