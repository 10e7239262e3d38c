package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
)

// Options bound what is read. The zero value has the defaults.
type Options struct {
	// Stdin is what the path "-" reads. Without it "-" is an error.
	Stdin io.Reader
	// MaxFileBytes is the largest file. Default: 10485760 (10 MiB).
	MaxFileBytes int64
	// MaxFiles is the most files of one Load. Default: 100000.
	MaxFiles int
	// MaxDocuments is the most documents of one file. Default: 10000.
	MaxDocuments int
	// Fields fills Header.Fields of every kind, so that violations found later have a
	// place too. Default: of policies and scenarios only, for the memory it takes.
	Fields bool
	// Extensions are the fields that executors and rules written in Go add to manifests, as
	// registry.Extensions returns them. Default: none, so that such a field is unknown.
	Extensions []v1.Extension
	// Build makes objects of a path in the place of [Load], such as overlays do. Nil, or a nil
	// Built, leaves the path to Load.
	Build func(ctx context.Context, path string) (*Built, error)
	// Layout fills Header.Layout, so that [MarshalYAML] keeps comments and the order of
	// keys. Default: neither is kept, for the memory it takes.
	Layout bool
	// Last is what was loaded of the same paths with the same options before, an empty Set the first
	// time. A file that is the same to the last byte, and names no other file, is not parsed again: its
	// objects are those of Last, which must not have been changed. Default: all files are parsed.
	Last *Set
	// Drafts are texts that [LoadFS] reads in the place of files, by their paths in the folder. There need be
	// no such file. A draft that is no manifest is an error, as for a file that [Load] is given by name.
	Drafts map[string][]byte
	// AllowEmpty reads a path where nothing is, and a folder without manifests, as no
	// objects. Default: they are errors.
	AllowEmpty bool
}

func (o Options) withDefaults() Options {
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = 10 << 20
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 100_000
	}
	if o.MaxDocuments <= 0 {
		o.MaxDocuments = 10_000
	}
	return o
}

// A Set is what was read from all paths.
type Set struct {
	// Objects holds every object whose kind and name could be read, those with violations
	// too, ordered by file and by place in it. A ToolPolicy stands here even without a
	// name, broken, so that whoever enforces policies knows that one is missing.
	Objects []v1.Object
	// Violations holds every violation and warning of every file, ordered by place. The violations
	// of an object are in its Header.Violations as well.
	Violations []v1.Violation
	// Skipped are the documents of folders that are no manifests of ours. What an earlier
	// apply made of one is not to be pruned because of that.
	Skipped []Skipped
	// Files counts the files that were read.
	Files int
	// Folders are the folders that were read without being named, as [Options.Build] reports them.
	Folders []string
	// Overlays are the folders, in order, whose kustomization.yaml was seen and changes what it takes,
	// and was not built, because [Options.Build] did not ask for it.
	Overlays []string

	parsed map[string]parsed // by file, for Options.Last
}

// parsed is the result of reading one file. It depends on the content of that file alone.
type parsed struct {
	sum        [sha256.Size]byte
	objects    []v1.Object
	violations []v1.Violation
	skipped    []Skipped
}

// Skipped is a document that was passed over, or a folder.
type Skipped struct {
	// File is where it stands, or the folder: then nothing below it was read.
	File string
	// Key identifies the document; its Name is empty if the document has none.
	Key v1.Key
}

// Failed reports whether a violation is not a warning.
func (s *Set) Failed() bool {
	return slices.ContainsFunc(s.Violations, func(f v1.Violation) bool { return !f.IsWarning() })
}

// Decode reads one stream from memory. The extension of name says what it is:
// .json, .md, or YAML for everything else. Files that a manifest names are not read.
func Decode(name string, data []byte, o Options) ([]v1.Object, []v1.Violation) {
	r := &reader{name: name, named: true, opts: o.withDefaults()}
	if int64(len(data)) > r.opts.MaxFileBytes {
		r.unreadable(fmt.Errorf("is larger than %d bytes", r.opts.MaxFileBytes))
		return nil, r.violations
	}
	r.read(data)
	fs := append(r.violations, conflicts(r.objects)...)
	SortViolations(fs)
	return r.objects, fs
}

// Load reads files, folders and stdin ("-"). Files are read in parallel; the result
// is in the order of their paths. A file that is reached twice is read once.
//
// What is wrong in a manifest is a violation of the Set. An error says that there is
// nothing to read: a path does not exist, a folder holds no manifest, ctx ended.
func Load(ctx context.Context, paths []string, o Options) (*Set, error) {
	l := &loader{opts: o.withDefaults(), seen: map[string]bool{}}
	defer l.close()
	if len(paths) == 0 {
		return nil, errors.New("no path given: expected a file, a folder or - for stdin")
	}
	for _, p := range paths {
		built, err := l.build(ctx, p)
		if err == nil && !built {
			err = l.find(ctx, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return l.load(ctx, paths...)
}

// load reads what was found at the paths.
func (l *loader) load(ctx context.Context, paths ...string) (*Set, error) {
	slices.SortStableFunc(l.sources, func(a, b *source) int { return strings.Compare(a.name, b.name) })
	if err := l.readAll(ctx); err != nil {
		return nil, err
	}
	set := l.collect()
	if set.Files == 0 && !l.opts.AllowEmpty {
		return nil, fmt.Errorf("%s: no manifest: expected *.yaml, *.yml, *.json, or *.md with front matter", strings.Join(paths, ", "))
	}
	return set, nil
}

// A source is one stream to read.
type source struct {
	reader
	root   fs.FS     // nil: the person named the file, name is opened as it is
	draft  []byte    // nil: the file is read
	path   string    // within root
	near   io.Closer // the folder of a file that was named
	failed error     // why nothing can be read at all
	read   bool      // it was read: not a markdown file without front matter
	sum    [sha256.Size]byte
}

type loader struct {
	opts    Options
	sources []*source
	built   []*Built
	roots   []*os.Root
	seen    map[string]bool // absolute paths
	linked  []string        // symlinks to folders elsewhere
}

func (l *loader) close() {
	for _, r := range l.roots {
		r.Close()
	}
}

func (l *loader) open(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err == nil {
		l.roots = append(l.roots, root)
	}
	return root, err
}

func (l *loader) find(ctx context.Context, name string) error {
	if name == "-" {
		return l.findStdin()
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && l.opts.AllowEmpty:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return missingError(name)
	case err != nil:
		return fmt.Errorf("%s: %w", name, fileReason(err))
	case info.IsDir():
		return l.findFolder(ctx, name)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return l.add(&source{}, name, abs)
}

// LoadFS is [Load] of the folder that fsys is, such as an [embed.FS]. Objects have the
// paths within it.
func LoadFS(ctx context.Context, fsys fs.FS, o Options) (*Set, error) {
	l := &loader{opts: o.withDefaults(), seen: map[string]bool{}}
	for name, text := range o.Drafts {
		s := &source{root: fsys, path: name, draft: text}
		s.files = &folder{root: fsys, shown: ".", dir: path.Dir(name), limit: l.opts.MaxFileBytes}
		abs, err := filepath.Abs(filepath.FromSlash(name))
		if err == nil {
			err = l.add(s, filepath.FromSlash(name), abs)
		}
		if err != nil {
			return nil, err
		}
		s.named = true
	}
	if err := l.walk(ctx, fsys, "."); err != nil {
		return nil, err
	}
	return l.load(ctx, ".")
}

// missingError is a path at which there is no file.
type missingError string

func (e missingError) Error() string {
	if e == "" {
		return "the path is empty: expected a file or folder (is a variable unset?)"
	}
	return string(e) + ": no such file or folder"
}

func (e missingError) Is(target error) bool { return target == fs.ErrNotExist }

func (l *loader) findStdin() error {
	if l.opts.Stdin == nil {
		return errors.New("-: there is no stdin to read from")
	}
	if l.seen["-"] {
		return errors.New("-: stdin can be read only once")
	}
	l.seen["-"] = true
	s := &source{}
	s.name, s.named = "-", true
	l.sources = append(l.sources, s)
	return nil
}

// add adds a source once. name is its path as it is shown.
func (l *loader) add(s *source, name, abs string) error {
	if l.seen[abs] {
		return nil
	}
	if len(l.sources) >= l.opts.MaxFiles {
		return fmt.Errorf("%s: more than %d files: name a smaller folder", name, l.opts.MaxFiles)
	}
	l.seen[abs] = true
	s.name, s.named = name, s.root == nil
	l.sources = append(l.sources, s)
	return nil
}

func (l *loader) findFolder(ctx context.Context, dir string) error {
	root, err := l.open(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, fileReason(err))
	}
	return l.walk(ctx, root.FS(), dir)
}

// walk finds the manifests of a folder, which is shown as dir.
func (l *loader) walk(ctx context.Context, root fs.FS, dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	found := false
	ignored := ignores{}
	err = fs.WalkDir(root, ".", func(p string, e fs.DirEntry, err error) error {
		shown := filepath.Join(dir, filepath.FromSlash(p))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("%s: %w", shown, fileReason(err))
		case p != "." && e.IsDir() && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || ignored.skips(p, true)):
			return fs.SkipDir
		case e.IsDir():
			if err := ignored.enter(root, p); err != nil {
				return fmt.Errorf("%s: %w", shown, err)
			}
			return nil
		case strings.HasPrefix(e.Name(), "."), knownFiles[e.Name()], e.Name() == "node_modules", ignored.skips(p, false):
			return nil
		}
		if e.Type()&fs.ModeSymlink != 0 {
			if info, err := fs.Stat(root, p); err == nil && info.IsDir() {
				return nil // what is within is read where it stands
			} else if info, err := os.Stat(shown); escapes(err) || err == nil && info.IsDir() {
				l.linked = append(l.linked, shown)
				return nil
			}
		}
		if !isManifestName(p) {
			return nil
		}
		found = true
		s := &source{root: root, path: p}
		s.files = &folder{root: root, shown: dir, dir: path.Dir(p), limit: l.opts.MaxFileBytes}
		return l.add(s, shown, filepath.Join(abs, filepath.FromSlash(p)))
	})
	if err == nil && !found && !l.opts.AllowEmpty {
		err = fmt.Errorf("%s: the folder contains no manifest: expected *.yaml, *.yml, *.json, or *.md with front matter", dir)
	}
	return err
}

func isManifestName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml", ".json", ".md":
		return true
	}
	return false
}

// readAll reads the sources on as many goroutines as there are processors.
func (l *loader) readAll(ctx context.Context) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(l.sources)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(l.sources) {
					return
				}
				l.readSource(l.sources[i])
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, s := range l.sources {
		if s.failed != nil {
			return s.failed
		}
	}
	return nil
}

func (l *loader) readSource(s *source) {
	s.opts = l.opts
	var data []byte
	var err error
	switch {
	case s.draft != nil:
		data, err = regular.ReadAll(bytes.NewReader(s.draft), l.opts.MaxFileBytes)
	case s.name == "-" && s.root == nil:
		data, err = regular.ReadAll(l.opts.Stdin, l.opts.MaxFileBytes)
		s.nearby(".")
	case s.root == nil:
		data, err = readNamed(s.name, l.opts.MaxFileBytes)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			s.failed = fmt.Errorf("%s: %w", s.name, err)
			return
		}
		s.nearby(filepath.Dir(s.name))
	default:
		data, err = readFile(s.root, s.path, l.opts.MaxFileBytes)
	}
	if s.near != nil {
		defer s.near.Close()
	}
	if err == nil && !s.named && strings.EqualFold(path.Ext(s.path), ".md") && !hasFrontMatter(data) {
		return // text for people
	}
	s.read = true
	if err != nil {
		s.unreadable(err)
		return
	}
	if l.opts.Last != nil {
		s.sum = sha256.Sum256(data)
		if last, ok := l.opts.Last.parsed[s.name]; ok && last.sum == s.sum {
			s.objects, s.violations, s.skipped, s.files, s.alone = last.objects, last.violations, last.skipped, nil, true
			return
		}
	}
	s.reader.read(data)
	s.alone = (s.files == nil || !s.files.asked) && !s.overlay
	s.files, s.anchors = nil, nil // let go of what only reading needs
}

// keep returns what the next load may reuse.
func (l *loader) keep() map[string]parsed {
	if l.opts.Last == nil {
		return nil
	}
	all := make(map[string]parsed, len(l.sources))
	for _, s := range l.sources {
		if s.alone {
			all[s.name] = parsed{s.sum, s.objects, s.violations, s.skipped}
		}
	}
	return all
}

// nearby opens the folder of a file that was named.
func (s *source) nearby(dir string) {
	if root, err := os.OpenRoot(dir); err == nil {
		s.near = root
		s.files = &folder{root: root.FS(), shown: dir, dir: ".", limit: s.opts.MaxFileBytes}
	}
}

func readNamed(name string, limit int64) ([]byte, error) {
	f, err := regular.Open(name)
	if err != nil {
		return nil, fileReason(err)
	}
	defer f.Close()
	data, err := regular.ReadAll(f, limit)
	if err != nil {
		return nil, fileReason(err)
	}
	return data, nil
}

func (r *reader) unreadable(err error) {
	msg := "the file " + strings.TrimPrefix(err.Error(), "it ")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		msg = "the file does not exist, or is a symlink to none"
	case errors.Is(err, fs.ErrPermission):
		msg = "the file cannot be read: permission denied"
	case errors.Is(err, errLeaves):
		msg = "the file is a symlink that leaves the folder that was given"
	}
	r.violations = append(r.violations, v1.Violation{Source: v1.Source{File: r.name}, Expected: "a file that can be read", Got: "none", Message: msg})
}

// collect joins the results of the sources.
func (l *loader) collect() *Set {
	set := &Set{parsed: l.keep()}
	all := l.sources
	for _, b := range l.built {
		all = append(all, l.trees(b.Trees)...)
		set.Violations = append(set.Violations, b.Violations...)
		set.Folders = append(set.Folders, b.Folders...)
		set.Files += b.Files
	}
	for _, link := range l.linked {
		set.Skipped = append(set.Skipped, Skipped{File: link})
		set.Violations = append(set.Violations, v1.Violation{Source: v1.Source{File: link}, Severity: v1.SeverityWarning, Expected: "a folder", Got: "a symlink",
			Message: "a symbolic link to a folder elsewhere is not followed: pass that folder with -f, or add the link to " + ignoreFile})
	}
	data := map[string]bool{}    // files that manifests name as their data
	patches := map[string]bool{} // files that a kustomization.yaml names as its patches
	for _, s := range all {
		if s.overlay {
			set.Overlays = append(set.Overlays, filepath.Dir(s.name))
		}
		for _, p := range s.patches {
			patches[p] = true
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s *source) bool { return !s.named && patches[s.name] })
	for _, s := range all {
		set.Objects = append(set.Objects, s.objects...)
		for _, ref := range s.refs {
			data[ref] = true
		}
		if s.read {
			set.Files++
		}
	}
	for _, s := range all {
		if len(s.objects) == 0 && !s.named && data[s.name] {
			continue // it never was meant to be a manifest
		}
		set.Violations = append(set.Violations, s.violations...)
		set.Skipped = append(set.Skipped, s.skipped...)
	}
	set.Violations = append(set.Violations, conflicts(set.Objects)...)
	SortViolations(set.Violations)
	set.Violations = summarize11(set.Violations)
	return set
}
