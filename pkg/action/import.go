package action

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/mcpconfig"
	"toolctl.dev/toolctl/internal/promptpack"
	"toolctl.dev/toolctl/pkg/importer"
)

// Import makes manifests of a foreign document, and writes them into a folder.
type Import struct {
	*Config
	From Importer
	// Dir is the folder for the files, one for each manifest. Default: nothing is written.
	Dir string
	importer.WriteOptions
}

// An Importer makes manifests of a foreign document: [ImportFile], [ImportServer] or [ImportOpenAPI].
type Importer interface {
	// Read makes the manifests. dir is the folder to which they will be written, or "". The result of a failed import has
	// the warnings up to then, or is nil.
	Read(ctx context.Context, c *Config, dir string) (*importer.Result, error)
}

// Run makes and writes the manifests. The result of a failed import is that of the [Importer].
func (i *Import) Run(ctx context.Context) (*importer.Result, error) {
	if i.Dir == "" && (i.Prune || i.DryRun) {
		return nil, usagef("--prune and --dry-run need a folder: name it with --out")
	}
	r, err := i.From.Read(ctx, i.Config, i.Dir)
	if err != nil {
		return r, err
	}
	for _, m := range r.Manifests {
		if i.Namespace != "" {
			m.Object.Head().Metadata.Namespace = i.Namespace
		}
	}
	if i.Dir != "" {
		err = r.Write(ctx, i.Dir, i.WriteOptions)
	}
	return r, err
}

// ImportFile imports a file of another program.
type ImportFile struct {
	// File is the name of the file, or "-" for Stdin.
	File string
	As   Format
}

// Format is a format of files that [ImportFile] reads.
type Format struct {
	most int // maximum size in bytes
	read func(file string, data []byte) ([]v1.Object, []string, error)
}

// The formats that [ImportFile] reads.
var (
	MCPConfig  = Format{1 << 20, mcpconfig.Read}
	PromptPack = Format{4 << 20, promptpack.Read}
)

// Read reads the file.
func (f ImportFile) Read(_ context.Context, c *Config, _ string) (*importer.Result, error) {
	data, err := c.ReadInput(f.File, f.As.most)
	if err != nil {
		return nil, err
	}
	if len(data) > f.As.most {
		return nil, usagef("%s is larger than %d bytes", f.File, f.As.most)
	}
	objects, notes, err := f.As.read(f.File, data)
	if err != nil {
		err = &InvalidError{err}
	}
	return imported(notes, objects...), err
}

// imported is the result of an import without a lock file.
func imported(notes []string, objects ...v1.Object) *importer.Result {
	r := &importer.Result{}
	for _, o := range objects {
		r.Manifests = append(r.Manifests, importer.Manifest{Origin: o.Head().Key().String(), Object: o})
	}
	r.Warn(notes...)
	return r
}
