package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"toolctl.dev/toolctl/pkg/store"
)

func TestChangesStayBounded(t *testing.T) {
	st := openWith(t, filepath.Join(t.TempDir(), "state.db"), store.Options{Create: true, KeepChanges: 3})
	for i := range 10 {
		mustApply(t, st, tools(2, fmt.Sprint(i)), store.ApplyOptions{})
	}
	var kept int
	if err := st.DB().QueryRow("SELECT count(*) FROM changes").Scan(&kept); err != nil || kept != 3 {
		t.Errorf("%d changes are kept, %v: want 3", kept, err)
	}
}
