package source

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Schemes of an [Address].
const (
	GitHTTPS = "git+https"
	GitSSH   = "git+ssh"
	GitFile  = "git+file"
	OCI      = "oci"
)

// Address is where manifests are pulled from:
//
//	git+https://HOST/REPOSITORY[//PATH][?ref=REF]
//	git+ssh://[USER@]HOST/REPOSITORY[//PATH][?ref=REF]
//	git+file:///REPOSITORY[//PATH][?ref=REF]
//	oci://HOST/REPOSITORY[:TAG][@DIGEST]
type Address struct {
	// Scheme is one of those above.
	Scheme string
	// Remote is the repository: an address for git, or HOST/REPOSITORY[:TAG][@DIGEST].
	Remote string
	// Path is the folder or file within the repository. Default: the whole repository.
	Path string
	// Ref is a branch, a tag, a full name such as refs/tags/v1, or a full commit hash. Default: the repository's HEAD.
	Ref string
}

// IsGit reports whether the address is that of a Git repository.
func (a Address) IsGit() bool { return strings.HasPrefix(a.Scheme, "git+") }

// Set returns the address without its revision: the name of the apply set for the pulled manifests.
func (a Address) Set() string {
	if !a.IsGit() {
		name, _, _ := strings.Cut(a.Remote, "@")
		if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
			name = name[:i]
		}
		return a.Scheme + "://" + name
	}
	text := "git+" + a.Remote
	if a.Path != "." {
		text += "//" + (&url.URL{Path: a.Path}).EscapedPath()
	}
	return text
}

func (a Address) String() string {
	switch {
	case !a.IsGit():
		return a.Scheme + "://" + a.Remote
	case a.Ref == "":
		return a.Set()
	}
	return a.Set() + "?ref=" + strings.ReplaceAll(url.QueryEscape(a.Ref), "%2F", "/")
}

var (
	hostName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	refName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+#@=,-]*$`)
)

const maxAddress = 4096

// oneSlash matches an address with one slash instead of two after its scheme, and without a possible secret.
var oneSlash = regexp.MustCompile(`^(git\+(https|ssh)|oci):/[^/@?#]+/[^@?#]*(\?ref=[A-Za-z0-9_./-]*)?$`)

// ParseAddress parses an address. It refuses addresses that contain a secret.
func ParseAddress(text string) (Address, error) {
	const expected = "expected git+https://HOST/REPOSITORY//PATH?ref=REF, git+ssh://…, git+file:///… or oci://HOST/REPOSITORY@sha256:…"
	if len(text) > maxAddress {
		return Address{}, fmt.Errorf("longer than %d bytes", maxAddress)
	}
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case ok && scheme == OCI:
		return parseOCI(rest)
	case ok && slices.Contains([]string{"https", "ssh", "file"}, scheme):
		return Address{}, fmt.Errorf("%s: write git+%s:// for a Git repository", expected, scheme)
	case ok && (scheme == "http" || scheme == "git+http" || scheme == "git" || scheme == "git+git"):
		return Address{}, fmt.Errorf("%s: %s:// is not encrypted, and anyone on the network path could change the manifests", expected, scheme)
	case !ok && oneSlash.MatchString(text):
		before, after, _ := strings.Cut(text, ":/")
		return Address{}, fmt.Errorf("%s: two slashes follow %s:, as in %s://%s", expected, before, before, after)
	case !ok || scheme != GitHTTPS && scheme != GitSSH && scheme != GitFile:
		return Address{}, errors.New(expected)
	}
	u, err := url.Parse(text)
	if err != nil {
		return Address{}, errors.New(expected) // the original error would repeat a secret
	}
	if _, secret := u.User.Password(); secret || u.User != nil && scheme != GitSSH {
		return Address{}, errors.New("keep credentials out of addresses, which logs show: use Git's credential helpers, or TOOLCTL_GIT_USERNAME and TOOLCTL_GIT_PASSWORD")
	}
	a := Address{Scheme: scheme}
	if err := a.readQuery(u); err != nil {
		return Address{}, err
	}
	repository, within, _ := cutPath(u.EscapedPath())
	within, err = url.PathUnescape(within)
	if err != nil {
		return Address{}, errors.New(expected)
	}
	if a.Path, err = cleanPath(within); err != nil {
		return Address{}, err
	}
	switch {
	case scheme == GitFile && u.Host != "":
		return Address{}, fmt.Errorf("git+file://%s…: expected git+file:/// and an absolute path", u.Host)
	case scheme != GitFile && !hostName.MatchString(u.Host):
		return Address{}, fmt.Errorf("%q is not the name of a host", u.Host)
	case u.User != nil && !userName.MatchString(u.User.Username()):
		return Address{}, fmt.Errorf("%q is not the name of a user", u.User.Username())
	case repository == "" || repository == "/":
		return Address{}, errors.New("no repository: " + expected)
	}
	user := ""
	if u.User != nil {
		user = u.User.Username() + "@"
	}
	a.Remote = strings.TrimPrefix(scheme, "git+") + "://" + user + u.Host + repository
	return a, nil
}

// cutPath cuts a path at the first "//" that is not at its start.
func cutPath(p string) (repository, within string, ok bool) {
	if p == "" {
		return "", "", false
	}
	repository, within, ok = strings.Cut(p[1:], "//")
	return p[:1] + repository, within, ok
}

// cleanPath returns a path within a repository, "." for the whole repository.
func cleanPath(p string) (string, error) {
	p = strings.Trim(p, "/")
	if p == "" {
		return ".", nil
	}
	if clean := path.Clean(p); clean == p && !strings.HasPrefix(p, "..") && !strings.ContainsAny(p, "\x00\\\n") {
		return p, nil
	}
	return "", fmt.Errorf("%q is not a path within the repository", p)
}

func (a *Address) readQuery(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || u.Fragment != "" {
		return errors.New("expected only ?ref=REF after the path")
	}
	for key, values := range query {
		if key != "ref" || len(values) != 1 {
			return fmt.Errorf("%q: expected ?ref=REF, once", key)
		}
		a.Ref = values[0]
		if err := checkRef(a.Ref); err != nil {
			return err
		}
	}
	return nil
}

// checkRef returns an error if ref is not the name of a branch or tag, or if git could parse it as an option or as
// several names.
func checkRef(ref string) error {
	bad := !refName.MatchString(ref) || strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".") || strings.HasSuffix(ref, ".lock")
	for _, part := range []string{"..", "//", "@{", "/.", ".lock/"} {
		bad = bad || strings.Contains(ref, part)
	}
	if bad {
		return fmt.Errorf("ref %q: expected the name of a branch or tag, or a commit", ref)
	}
	return nil
}

var wholeCommit = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// ociName is compiled on first use: its 128 repetitions would add milliseconds to every start of the program.
var ociName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([^/]+)/[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
})

func parseOCI(rest string) (Address, error) {
	m := ociName().FindStringSubmatch(rest)
	if m == nil || !hostName.MatchString(m[1]) {
		return Address{}, errors.New("expected oci://HOST/REPOSITORY@sha256:…, in lower case")
	}
	return Address{Scheme: OCI, Remote: rest, Path: "."}, nil
}
