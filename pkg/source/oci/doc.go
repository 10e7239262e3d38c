// Package oci keeps manifests as packages in OCI registries: it pushes, pulls, signs and verifies
// them, and is an origin of [source.Remote].
//
//	r, err := oci.Open(address, oci.Options{})
//	digest, err := r.Push(ctx, files)
//	files, err := r.Pull(ctx, digest)
//
// A package is an OCI image manifest 1.1 with the artifact type [PackageType] and one layer, a
// gzipped tar of the manifests and the files that they name. The same files make the same digest.
//
// # Signatures
//
// A signature is an artifact of [SignatureType] whose subject is the package, so that a registry
// lists it among the package's referrers. Its one layer is a JSON object: "digest" is the
// package's, "key" is "sha256:" and the SHA-256 of the public key's PKIX form in hexadecimal, and "signature", in base64, is
// that of the text
//
//	toolctl.dev/v1 package
//	sha256:…
//
// with an end of line after each line. Ed25519 signs the text, ECDSA its SHA-256, SHA-384 or
// SHA-512 for P-256, P-384 and P-521, in ASN.1.
package oci
