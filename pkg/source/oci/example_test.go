package oci_test

import (
	"fmt"

	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/source/oci"
)

// Push, Pull and Digest are the first methods to contact the registry.
func ExampleOpen() {
	address, err := source.ParseAddress("oci://registry.example.com/team/tools:1.4")
	if err != nil {
		fmt.Println(err)
		return
	}
	repository, err := oci.Open(address, oci.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer repository.Close()
	fmt.Println(repository)
	fmt.Println(repository.At("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"))
	// Output:
	// oci://registry.example.com/team/tools:1.4
	// oci://registry.example.com/team/tools@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
}
