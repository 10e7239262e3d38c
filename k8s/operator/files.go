package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FilesAnnotation names the ConfigMaps that hold the files a custom resource names, as
// FOLDER=CONFIGMAP, or CONFIGMAP for files without a folder, with commas between. The keys of a
// ConfigMap are the names of the files in the folder:
//
//	metadata:
//	  annotations:
//	    toolctl.dev/files: results=stations
//	spec:
//	  mock_result_file: results/stations.yaml # the key stations.yaml of the ConfigMap stations
const FilesAnnotation = "toolctl.dev/files"

// mount is a ConfigMap and the folder in which its files are.
type mount struct{ folder, configMap string }

// mounts reads the annotation.
func mounts(u *unstructured.Unstructured) []mount {
	var all []mount
	for part := range strings.SplitSeq(u.GetAnnotations()[FilesAnnotation], ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		folder, name, ok := strings.Cut(part, "=")
		if !ok {
			folder, name = ".", part
		}
		all = append(all, mount{path.Clean(folder), name})
	}
	return all
}

// configMapsOf lists the ConfigMaps that the annotation names.
func configMapsOf(u *unstructured.Unstructured) []string {
	var names []string
	for _, m := range mounts(u) {
		if !slices.Contains(names, m.configMap) {
			names = append(names, m.configMap)
		}
	}
	return names
}

// filesOf reads the files of the ConfigMaps that a custom resource names. A ConfigMap that is
// not there has none; its name is returned.
func filesOf(ctx context.Context, c client.Reader, u *unstructured.Unstructured) (files map[string][]byte, missing []string, err error) {
	files = map[string][]byte{}
	for _, m := range mounts(u) {
		var cm corev1.ConfigMap
		err := c.Get(ctx, client.ObjectKey{Namespace: u.GetNamespace(), Name: m.configMap}, &cm)
		if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
			missing = append(missing, m.configMap)
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read ConfigMap %q: %w", m.configMap, err)
		}
		for name, text := range cm.Data {
			files[path.Join(m.folder, name)] = []byte(text)
		}
		for name, data := range cm.BinaryData {
			files[path.Join(m.folder, name)] = data
		}
	}
	return files, missing, nil
}

// errNoFile is what a manifest's reader says of a file that no ConfigMap has.
var errNoFile = errors.New("is not in a ConfigMap: a custom resource has no folder; put the file into a ConfigMap and name that in the annotation " + FilesAnnotation + ": FOLDER=CONFIGMAP")

// manifestName is the only file of a folder that is listed. No key of a ConfigMap has a space.
const manifestName = "the manifest.json"

// folder is a manifest and the files beside it, which are there only for who asks by name.
type folder struct {
	manifest []byte
	files    map[string][]byte
	missing  []string
}

// Open implements [fs.FS].
func (f *folder) Open(name string) (fs.File, error) {
	switch data, ok := f.files[name]; {
	case name == ".":
		return &openFolder{entry: entry{name: ".", dir: true}}, nil
	case name == manifestName:
		return &openFile{entry{name: name, size: len(f.manifest)}, bytes.NewReader(f.manifest)}, nil
	case name == ".toolctlignore":
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case ok:
		return &openFile{entry{name: path.Base(name), size: len(data)}, bytes.NewReader(data)}, nil
	}
	f.missing = append(f.missing, name)
	return nil, &fs.PathError{Op: "open", Path: name, Err: errNoFile}
}

// ReadDir implements [fs.ReadDirFS].
func (f *folder) ReadDir(string) ([]fs.DirEntry, error) {
	return []fs.DirEntry{fs.FileInfoToDirEntry(entry{name: manifestName, size: len(f.manifest)})}, nil
}

// entry is a file or a folder that is open.
type entry struct {
	name string
	size int
	dir  bool
}

func (e entry) Name() string               { return e.name }
func (e entry) Size() int64                { return int64(e.size) }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) IsDir() bool                { return e.dir }
func (e entry) Sys() any                   { return nil }
func (e entry) Stat() (fs.FileInfo, error) { return e, nil }
func (e entry) Close() error               { return nil }
func (e entry) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

type openFile struct {
	entry
	*bytes.Reader
}

func (f *openFile) Size() int64 { return f.entry.Size() }

type openFolder struct{ entry }

func (*openFolder) Read([]byte) (int, error) { return 0, errors.New("is a folder") }
