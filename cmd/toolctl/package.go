package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newPackageCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "package",
		Short: "Push, pull, sign and verify manifests in an OCI registry",
		Long: `Store manifests as packages in an OCI registry. A package contains the manifests and the
files that they refer to, and nothing else from the folder; equal manifests have equal digests.
'toolctl serve --source oci://HOST/REPOSITORY@sha256:…' serves a package.

toolctl signs in to the registry with the credentials of docker, or with
TOOLCTL_OCI_USERNAME and TOOLCTL_OCI_PASSWORD. Keys are Ed25519 or ECDSA keys as PEM:

  openssl genpkey -algorithm ed25519 -out key.pem
  openssl pkey -in key.pem -pubout -out keys.pem`,
		Example: `  toolctl package push oci://registry.example.com/tools:v1 -f manifests/
  toolctl package sign oci://registry.example.com/tools@sha256:… --key key.pem
  toolctl package verify oci://registry.example.com/tools:v1 --key keys.pem
  toolctl package pull oci://registry.example.com/tools:v1 --dir tools`,
	}, newPackagePushCmd(a), newPackagePullCmd(a), newPackageSignCmd(a), newPackageVerifyCmd(a))
}

// packageCmd adds the common part of the package commands to a command; text describes the result.
func (a *app) packageCmd(cmd *cobra.Command, p *action.Package, run func(context.Context) (*action.Packaged, error), text func(*action.Packaged) string) *cobra.Command {
	cmd.Annotations, cmd.Args = formats("table", "json"), exactArgs(1, "one address")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		p.Config = a.config(cmd.Context())
		p.Address, p.Warned = args[0], a.printWarnings
		return printed(a, func(r *action.Packaged) (string, error) { return text(r), nil })(run(cmd.Context()))
	}
	return cmd
}

func newPackagePushCmd(a *app) *cobra.Command {
	p := &action.Package{}
	cmd := a.packageCmd(&cobra.Command{
		Use:   "push oci://HOST/REPOSITORY:TAG -f PATH",
		Short: "Push manifests and their files as a package",
		Long: `Validate manifests, and push them with the files that they refer to as a package. The command
prints the address of the package with its digest; equal manifests have equal digests. With
-k, it pushes the manifests that a kustomization.yaml builds.

Output formats (-o): table (the address), json.`,
		Example: `  toolctl package push oci://registry.example.com/tools:v1 -f manifests/
  toolctl package push oci://registry.example.com/tools:prod -k overlays/prod`,
	}, p, p.Push, func(r *action.Packaged) string { return r.Package })
	bindSelector(cmd.Flags(), &p.Selector, "objects")
	return cmd
}

func newPackagePullCmd(a *app) *cobra.Command {
	p := &action.Package{}
	cmd := a.packageCmd(&cobra.Command{
		Use:   "pull oci://HOST/REPOSITORY[:TAG][@DIGEST] --dir DIR",
		Short: "Pull the files of a package to a new folder",
		Long: `Write the files of a package to a new or empty folder: all of them, or none after an error.
With --key, a key in the file must have signed the package.

toolctl refuses packages with names that start with a dot, names that some systems cannot
tell apart, and names of both a file and a folder.`,
		Example: `  toolctl package pull oci://registry.example.com/tools@sha256:… --dir tools`,
	}, p, p.Pull, func(r *action.Packaged) string {
		return fmt.Sprintf("%s of %s written to %s", count(r.Files, "file"), r.Package, r.Dir)
	})
	cmd.Flags().StringVar(&p.Dir, "dir", "", "folder to write to; it must be new or empty")
	cmd.Flags().StringVar(&p.Key, "key", "", "file with public keys; one of them must have signed the package")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func newPackageSignCmd(a *app) *cobra.Command {
	p := &action.Package{}
	cmd := a.packageCmd(&cobra.Command{
		Use:   "sign oci://HOST/REPOSITORY[:TAG][@DIGEST] --key FILE",
		Short: "Sign a package",
		Long: `Sign a package with an Ed25519 or ECDSA private key. toolctl stores the signature in the
registry as a referrer of the package.`,
		Example: `  toolctl package sign oci://registry.example.com/tools@sha256:… --key key.pem`,
	}, p, p.Sign, func(r *action.Packaged) string { return r.Package + " signed by key " + r.Key })
	cmd.Flags().StringVar(&p.Key, "key", "", "file with the private key, as PEM")
	return cmd
}

func newPackageVerifyCmd(a *app) *cobra.Command {
	p := &action.Package{}
	cmd := a.packageCmd(&cobra.Command{
		Use:     "verify oci://HOST/REPOSITORY[:TAG][@DIGEST] --key FILE",
		Short:   "Verify the signature of a package",
		Long:    "Verify that a key in a file signed the package. The exit code is 3 if none did.",
		Example: `  toolctl package verify oci://registry.example.com/tools:v1 --key keys.pem`,
	}, p, p.Verify, func(r *action.Packaged) string { return r.Package + " is signed by key " + r.Key })
	cmd.Flags().StringVar(&p.Key, "key", "", "file with public keys as PEM; one of them must have signed the package")
	return cmd
}
