// Package fileset checks the names of files from untrusted sources, such as packages and repositories, and writes
// files whole or not at all: all files of a new folder, or one that replaces another.
package fileset

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"toolctl.dev/toolctl/internal/clip"
)

// The limits of a name.
const (
	maxBytes    = 1024
	maxElements = 32
	maxElement  = 255 // bytes
)

// Check returns all problems of the slash-separated names of files in one folder. Valid names can be written on every
// system, each name refers to a different file, and no program uses the files as its configuration: no element starts
// with a dot, as .git does.
func Check(names []string) error {
	const shown = 20
	var all []error
	seen := map[string]place{}
	for _, name := range names {
		err := CheckName(name)
		if err == nil {
			err = add(seen, name)
		}
		if err != nil {
			all = append(all, err)
		}
	}
	if more := len(all) - shown; more > 0 {
		all = append(all[:shown], fmt.Errorf("and %d more", more))
	}
	return errors.Join(all...)
}

// CheckName returns the problems of one name, independent of other files.
func CheckName(name string) error {
	wrong := func(why string) error { return fmt.Errorf("%q %s", clip.Bytes(name, 200), why) }
	switch {
	case len(name) > maxBytes:
		return wrong(fmt.Sprintf("is longer than %d bytes", maxBytes))
	case !fs.ValidPath(name) || name == ".":
		return wrong("is not a path within the folder")
	case strings.Count(name, "/") >= maxElements:
		return wrong(fmt.Sprintf("has more than %d elements", maxElements))
	case strings.ContainsAny(name, `\:*?"<>|`) || strings.ContainsFunc(name, hidden):
		return wrong(`has a character that is not portable: do not use \ : * ? " < > | or invisible characters`)
	}
	for element := range strings.SplitSeq(name, "/") {
		switch {
		case len(element) > maxElement:
			return wrong(fmt.Sprintf("has an element that is longer than %d bytes", maxElement))
		case element[0] == '.':
			return wrong("has an element that begins with a dot")
		case strings.HasSuffix(element, ".") || strings.HasSuffix(element, " "):
			return wrong("has an element that ends with a dot or a space, which Windows removes")
		case reserved(element):
			return wrong("has an element that is a device on Windows")
		}
	}
	return nil
}

// hidden reports control characters, and characters that HFS+ ignores in names, so that it may read such a name as
// ".git".
func hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// reserved reports device names, with any extension (learn.microsoft.com/windows/win32/fileio/naming-a-file).
func reserved(element string) bool {
	base, _, _ := strings.Cut(element, ".")
	switch base = strings.ToUpper(strings.TrimRight(base, " ")); base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	number, com := strings.CutPrefix(base, "COM")
	number, lpt := strings.CutPrefix(number, "LPT")
	return com != lpt && len([]rune(number)) == 1 && strings.Contains("0123456789¹²³", number)
}

// place is a file, or a folder that contains files.
type place struct {
	name string
	file bool
}

// add records a file and its parent folders, by their names on a file system that ignores case and Unicode forms. It
// refuses a name that refers to another file or folder on such a file system.
func add(seen map[string]place, name string) error {
	key := norm.NFC.String(cases.Fold().String(norm.NFD.String(name)))
	for p := (place{name, true}); p.name != "."; p, key = (place{path.Dir(p.name), false}), path.Dir(key) {
		have, ok := seen[key]
		switch {
		case !ok:
			seen[key] = p
		case have.name != p.name:
			return fmt.Errorf("%q and %q are the same name on systems that ignore case or Unicode forms", have.name, p.name)
		case have.file != p.file:
			return fmt.Errorf("%q is both a file and a folder", p.name)
		case p.file:
			return fmt.Errorf("%q occurs twice", p.name)
		default:
			return nil // its parent folders are recorded too
		}
	}
	return nil
}
