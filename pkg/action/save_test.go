package action

import (
	"path/filepath"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

// TestSaveDir checks that binary parts become files, and that no file replaces another.
func TestSaveDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new")
	dir, err := openSaveDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	part := v1.Part{Type: "image", Data: "aGk=", MIMEType: "image/png", Name: "../up.png"}
	saved, err := dir.save(v1.Result{Tool: "draw", Parts: []v1.Part{part, {Type: v1.PartText, Text: "hi"}, part}})
	if err != nil || len(saved) != 2 || saved[0].Name != "draw.png" || saved[1].Name != "draw-2.png" {
		t.Errorf("got %+v, %v", saved, err)
	}
	if _, err := dir.save(v1.Result{Parts: []v1.Part{{Type: "image", Data: "?"}}}); err == nil {
		t.Error("a part that is not base64 was saved")
	}
}
