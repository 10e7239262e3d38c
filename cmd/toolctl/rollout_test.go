package main

import "testing"

func TestShortCommit(t *testing.T) {
	const hex = "0123456789abcdef0123456789abcdef01234567"
	for commit, want := range map[string]string{
		"": "", "c0ffee": "c0ffee", hex: "0123456789ab", hex + "-dirty": "0123456789ab-dirty", "c0ffee-dirty": "c0ffee-dirty",
		"sha256:" + hex: "sha256:0123456789ab",
	} {
		if got := shortCommit(commit); got != want {
			t.Errorf("%q: got %q, want %q", commit, got, want)
		}
	}
}
