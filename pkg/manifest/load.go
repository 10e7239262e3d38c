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

// Options are the settings and limits of reading. The zero value uses the defaults.
type Options struct {
	// Stdin is the stream that the path "-" reads. If it is nil, "-" is an error.
	Stdin io.Reader
	// MaxFileBytes is the maximum size of a file. Default: 10485760 (10 MiB).
	MaxFileBytes int64
	// MaxFiles is the maximum number of files in one Load. Default: 100000.
	MaxFiles int
	// MaxDocuments is the maximum number of documents in one file. Default: 10000.
	MaxDocuments int
	// Fields fills Header.Fields for every kind, so that violations found later have a place too. Default:
	// only for policies and scenarios, to save memory.
	Fields bool
	// Extensions are the fields that executors and rules written in Go add to manifests, as
	// registry.Extensions returns them. Default: no fields; extension fields are then unknown.
	Extensions []v1.Extension
	// Build makes the objects of a path in place of [Load], as overlays do. If Build is nil or returns a nil
	// Built, Load reads the path.
	Build func(ctx context.Context, path string) (*Built, error)
	// Layout fills Header.Layout, so that [MarshalYAML] keeps comments and the order of keys. Default:
	// neither is kept, to save memory.
	Layout bool
	// Last is the previous result of loading the same paths with the same options, or an empty Set the first
	// time. A file with unchanged content that names no other file is not parsed again: its objects are those
	// of Last, which must not have been modified. Default: all files are parsed.
	Last *Set
	// Drafts are texts that [LoadFS] reads in place of files, keyed by path in the folder. The files need not
	// exist. A draft that is not a manifest is an error, as for a file that is passed to [Load] by name.
	Drafts map[string][]byte
	// AllowEmpty reads a missing path, and a folder without manifests, as no objects. Default: both are
	// errors.
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

// A Set is the result of reading all paths.
type Set struct {
	// Objects holds every object whose kind and name could be read, including those with violations, ordered
	// by file and by place in the file. A broken ToolPolicy is included even without a name, so that programs
	// that enforce policies know that one is missing.
	Objects []v1.Object
	// Violations holds every violation and warning in every file, ordered by place. The violations of an
	// object are in its Header.Violations as well.
	Violations []v1.Violation
	// Skipped are the documents in folders that are not toolctl manifests. A prune must keep objects that an
	// earlier apply made from them.
	Skipped []Skipped
	// Files is the number of files read.
	Files int
	// Folders are the folders that were read without being named, as reported by [Options.Build].
	Folders []string
	// Overlays are, in order, the folders whose kustomization.yaml changes its resources but was not built,
	// because [Options.Build] did not build it.
	Overlays []string

	parsed map[string]parsed // by file name, for Options.Last
}

// parsed is the result of reading one file. It depends on the content of that file only.
type parsed struct {
	sum        [sha256.Size]byte
	objects    []v1.Object
	violations []v1.Violation
	skipped    []Skipped
}

// Skipped is a skipped document or folder.
type Skipped struct {
	// File is the file of the document, or a folder that was not read.
	File string
	// Key identifies the document. Its Name is empty for a document without a name.
	Key v1.Key
}

// Failed reports whether the set has a violation other than warnings.
func (s *Set) Failed() bool {
	return len(v1.Errors(s.Violations)) > 0
}

// Decode reads one stream from memory. The extension of name selects the format: .json, .md, or YAML for all
// others. Files that a manifest names are not read.
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

// Load reads files, folders and stdin ("-"). It reads files in parallel and returns results in the order of
// their paths. A file that is reached twice is read once.
//
// Errors in manifests are violations of the Set. Load returns an error if there is nothing to read: a path
// does not exist, a folder contains no manifest, or ctx ended.
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

// load reads the sources found at the paths.
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
	root   fs.FS     // nil: the user named the file, and name is opened directly
	draft  []byte    // nil: the file is read
	path   string    // within root
	near   io.Closer // the folder of a file named by the user
	failed error     // the reason why the source cannot be read
	read   bool      // false for a markdown file without front matter
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

// LoadFS is [Load] for the folder fsys, such as an [embed.FS]. Objects have paths relative to it.
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

// missingError is the path of a missing file.
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

// add adds a source unless it was added before. name is the path for messages.
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

// walk finds the manifests in a folder, which messages call dir.
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
				return nil // its content is read at its own place
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

// readAll reads the sources with one goroutine per processor.
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
		return // documentation, not a prompt
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
	s.files, s.anchors = nil, nil // free memory that only reading needs
}

// keep returns the results that the next load may reuse.
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

// nearby opens the folder of a file named by the user.
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
		msg = "the file does not exist, or is a broken symlink"
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
	data := map[string]bool{}    // files that manifests name as data
	patches := map[string]bool{} // files that a kustomization.yaml names as patches
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
			continue // it was not meant to be a manifest
		}
		set.Violations = append(set.Violations, s.violations...)
		set.Skipped = append(set.Skipped, s.skipped...)
	}
	set.Violations = append(set.Violations, conflicts(set.Objects)...)
	SortViolations(set.Violations)
	set.Violations = summarize11(set.Violations)
	return set
}
