package action

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/perm"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
)

// Record records real calls in a cassette that scenarios play.
type Record struct {
	// Cassette is the file to write. It replaces an existing file unless Append is set.
	Cassette string
	Append   bool
	// Scenario is the file of a new Scenario that repeats the recorded calls. Default: none.
	Scenario string
	// Redact are JSON pointers and names of members to mask in addition to likely secrets.
	Redact []string
	// Calls makes the calls with executors that the recorder wraps. Failed calls are also recorded.
	Calls func(context.Context, *scenario.Recorder) error
}

// Recorded is the result of a [Record]. If there is an error, it has the results before it.
type Recorded struct {
	// Calls is the number of recorded calls, and Dropped the number of further calls, which exceeded the limit.
	Calls, Dropped int
	// Cassette and Scenario are the written files.
	Cassette, Scenario string
}

// Run makes the calls and writes the files.
func (r *Record) Run(ctx context.Context) (*Recorded, error) {
	done := &Recorded{}
	if err := errors.Join(perm.Folder(filepath.Dir(r.Cassette)), perm.File(r.Cassette)); err != nil {
		return done, err
	}
	name := strings.TrimSuffix(filepath.Base(r.Scenario), filepath.Ext(r.Scenario))
	if r.Scenario != "" {
		if !v1.IsName(name) {
			return done, usagef("--scenario %s: the file name becomes the name of the scenario: use lower-case letters, digits and '-'", r.Scenario)
		}
		if _, err := os.Lstat(r.Scenario); err == nil {
			return done, usagef("--scenario %s: the file exists already, and may have been edited: name another one", r.Scenario)
		}
	}
	var old *scenario.Cassette
	if r.Append {
		var err error
		if old, err = readCassette(r.Cassette); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return done, err
		}
	}
	recorder := scenario.NewRecorder(r.Redact)
	ran := r.Calls(ctx, recorder)
	c := recorder.Cassette()
	done.Calls, done.Dropped = len(c.Calls), recorder.Dropped()
	if done.Calls == 0 {
		if ran == nil {
			ran = errors.New("nothing was called")
		}
		return done, ran
	}
	if old != nil {
		c.Add(old)
	}
	err := writeYAML(r.Cassette, "# Recorded by toolctl record. Review it: redacted lists the masked values.\n", c, os.O_TRUNC)
	if err != nil {
		return done, errors.Join(ran, err)
	}
	if done.Cassette = r.Cassette; r.Scenario == "" {
		return done, ran
	}
	// The path of the cassette is relative to the scenario.
	cassette, err := relativeTo(filepath.Dir(r.Scenario), r.Cassette)
	if err == nil {
		err = writeYAML(r.Scenario, "", recorder.Scenario(name, cassette), os.O_EXCL)
	}
	if err == nil {
		done.Scenario = r.Scenario
	}
	return done, errors.Join(ran, err)
}

// relativeTo returns the path of a file relative to a folder, with slashes.
func relativeTo(folder, file string) (string, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}

func readCassette(path string) (*scenario.Cassette, error) {
	data, err := regular.ReadFile(path)
	if err != nil {
		return nil, err
	}
	raw, violations := manifest.ToJSON(path, data)
	if errs := v1.Errors(violations); len(errs) > 0 {
		return nil, invalidf("%s", errs[0])
	}
	c, err := scenario.ReadCassette(raw)
	if err != nil {
		return nil, invalidf("%s: %w", path, err)
	}
	return c, nil
}

// writeYAML writes a value to a file that only its owner can read, and creates the folder.
func writeYAML(path, head string, v any, flag int) error {
	out, err := manifest.MarshalYAML(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append([]byte(head), out...))
	return errors.Join(err, f.Close())
}
