package doc

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"YAML", "z: 1\na: 2\nm: 3\n", "z a m"},
		{"JSON", `{"z": {"q": [{"y": 1, "b": 2}]}, "a": 2, "m": 3}`, "z a m"},
		{"sorted", "a: 1\nb: 2\n", "a b"},
		{"a name twice in JSON", `{"z": {"y": 1, "b": 2}, "a": 1, "z": 3}`, "z a"},
		{"merged", "<<: {z: 1, b: 2}\na: 2\nz: 4\n", "z b a"},
		{"a flow mapping", "{z: 1, a: 2}", "z a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := NewSet([]byte(tt.text), nil, "x")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.Main.Names(s.Main.Root.(map[string]any)), " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestNamesInLists(t *testing.T) {
	s, err := NewSet([]byte(`{"l": [1, {"y": 1, "b": 2}], "k": {"y": {"d": 1, "c": 2}, "b": []}}`), nil, "x")
	if err != nil {
		t.Fatal(err)
	}
	root := s.Main.Root.(map[string]any)
	if got := s.Main.Names(root["l"].([]any)[1].(map[string]any)); !slices.Equal(got, []string{"y", "b"}) {
		t.Error(got)
	}
	if got := s.Main.Names(root["k"].(map[string]any)["y"].(map[string]any)); !slices.Equal(got, []string{"d", "c"}) {
		t.Error(got)
	}
}
