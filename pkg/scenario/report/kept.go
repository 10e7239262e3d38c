package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/scenario"
)

// Kept is the saved outcome of scenarios, which the console shows.
type Kept struct {
	// Time is when the scenarios were played, and Paths are their files or folders.
	Time  time.Time `json:"time"`
	Paths []string  `json:"paths"`

	Report   *scenario.Report   `json:"report"`
	Coverage *scenario.Coverage `json:"coverage"`
}

// KeptFile is the name of the file in the store's folder.
const KeptFile = "test-report.json"

// maxKept is the maximum size of the file.
const maxKept = 64 << 20

// Keep saves the outcome atomically in a file that only its owner can read.
func Keep(path string, k *Kept) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(k); err != nil {
		return err
	}
	return fileset.Replace(path, b.Bytes(), 0o600)
}

// ReadKept reads an outcome that Keep saved.
func ReadKept(path string) (*Kept, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxKept {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxKept)
	}
	k := &Kept{}
	if err := json.NewDecoder(f).Decode(k); err != nil {
		return nil, fmt.Errorf("%s: expected a report of 'toolctl test': %w", path, err)
	}
	if k.Report == nil {
		return nil, fmt.Errorf("%s: expected a report of 'toolctl test', which has a field report", path)
	}
	return k, nil
}
