// oras-push puts one WebAssembly module into an OCI registry, either as `oras push` does (an OCI 1.1
// artifact, the module as it is) or, with -stow, as `yoke stow` does (an OCI 1.0 manifest with yoke's
// media types, the module gzipped). It prints the digest of the manifest.
//
// For registries of tests and demos: plain HTTP only. The password is read from ORAS_PASSWORD, because
// arguments are visible to every user of the machine.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	oras "oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

const (
	wasmLayer    = "application/wasm"
	wasmArtifact = "application/vnd.wasm.artifact"
	stowLayer    = "application/vnd.yoke.wasm.gzip"
	stowConfig   = "application/vnd.yoke.config.v1+json"
)

func main() {
	stow := flag.Bool("stow", false, "push in the form that `yoke stow` uses")
	user := flag.String("user", "", "user of the registry; the password is read from ORAS_PASSWORD")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: oras-push [-stow] [-user NAME] HOST:PORT/NAME:TAG FILE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	digest, err := push(context.Background(), flag.Arg(0), flag.Arg(1), *user, *stow)
	if err != nil {
		fmt.Fprintln(os.Stderr, "oras-push:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

func push(ctx context.Context, ref, file, user string, stow bool) (string, error) {
	module, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	target, err := remote.NewRepository(ref)
	if err != nil {
		return "", err
	}
	target.PlainHTTP = true
	if user != "" {
		target.Client = &auth.Client{Credential: auth.StaticCredential(target.Reference.Registry,
			auth.Credential{Username: user, Password: os.Getenv("ORAS_PASSWORD")})}
	}

	store := memory.New()
	manifest, err := pack(ctx, store, module, filepath.Base(file), stow)
	if err != nil {
		return "", err
	}
	if err := store.Tag(ctx, manifest, "module"); err != nil {
		return "", err
	}
	pushed, err := oras.Copy(ctx, store, "module", target, target.Reference.Reference, oras.DefaultCopyOptions)
	if err != nil {
		return "", err
	}
	return pushed.Digest.String(), nil
}

func pack(ctx context.Context, store *memory.Store, module []byte, title string, stow bool) (v1.Descriptor, error) {
	layerType, version, kind := wasmLayer, oras.PackManifestVersion1_1, wasmArtifact
	if stow {
		layerType, version, kind = stowLayer, oras.PackManifestVersion1_0, stowConfig
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		if _, err := w.Write(module); err != nil {
			return v1.Descriptor{}, err
		}
		if err := w.Close(); err != nil {
			return v1.Descriptor{}, err
		}
		module = zipped.Bytes()
	}
	layer, err := oras.PushBytes(ctx, store, layerType, module)
	if err != nil {
		return v1.Descriptor{}, err
	}
	layer.Annotations = map[string]string{v1.AnnotationTitle: title}
	return oras.PackManifest(ctx, store, version, kind, oras.PackManifestOptions{Layers: []v1.Descriptor{layer}})
}
