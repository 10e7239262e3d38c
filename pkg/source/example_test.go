package source_test

import (
	"fmt"

	"toolctl.dev/toolctl/pkg/source"
)

func ExampleParseAddress() {
	for _, text := range []string{
		"git+https://git.example.com/team/tools//prod?ref=main",
		"oci://registry.example.com/team/tools:1.4",
		"git+https://ann:secret@git.example.com/team/tools",
	} {
		a, err := source.ParseAddress(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s of %s, path %q, ref %q\n", a.Scheme, a.Remote, a.Path, a.Ref)
	}
	// Output:
	// git+https of https://git.example.com/team/tools, path "prod", ref "main"
	// oci of registry.example.com/team/tools:1.4, path ".", ref ""
	// keep credentials out of addresses, which logs show: use Git's credential helpers, or TOOLCTL_GIT_USERNAME and TOOLCTL_GIT_PASSWORD
}
