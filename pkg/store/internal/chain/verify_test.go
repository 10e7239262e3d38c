package chain

import (
	"strings"
	"testing"
	"time"
)

// A record that cannot be decoded is reported with the reason, even if its hash is correct.
func TestVerifyOfWhatIsNoRecord(t *testing.T) {
	text := []byte(`{"time":"yesterday"}`)
	hash := Hash{}.Next(text)
	v, err := NewVerifier("")
	if err != nil {
		t.Fatal(err)
	}
	v.Add(&Row{ID: 1, Time: time.Now().UnixMicro(), Text: text, Hash: hash[:]})
	broken := v.End().Broken
	if broken == nil {
		t.Fatal("it was taken")
	}
	if m := broken.Message; !strings.HasPrefix(m, "it is not a record: ") || !strings.Contains(m, "yesterday") || strings.Contains(m, "<nil>") {
		t.Error(m)
	}
}
