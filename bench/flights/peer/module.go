package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// timeout is the default for an Airway that sets none.
const timeout = 10 * time.Second

// module is a compiled flight and the runtime that it belongs to.
type module struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

// compile uses the machine code in `cache` if it is there.
func compile(wasm []byte, cache string, answer []byte) (*module, error) {
	ctx := context.Background()
	compilationCache, err := wazero.NewCompilationCacheWithDir(cache)
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithCompilationCache(compilationCache)
	runtime := wazero.NewRuntimeWithConfig(ctx, config)

	// Both functions are in one module and leave the state at zero, which means success.
	reply := func(ctx context.Context, guest api.Module, document []byte) uint64 {
		results, err := guest.ExportedFunction("malloc").Call(ctx, uint64(len(document)))
		if err != nil {
			panic(err)
		}
		guest.Memory().Write(uint32(results[0]>>32), document)
		return results[0]
	}
	host := runtime.NewHostModuleBuilder("host")
	host = host.NewFunctionBuilder().WithFunc(func(ctx context.Context, guest api.Module, _ uint32, _, _, _, _ uint64) uint64 {
		return reply(ctx, guest, answer)
	}).Export("k8s_lookup")
	host = host.NewFunctionBuilder().WithFunc(func(ctx context.Context, guest api.Module, _ uint32, _, _ uint64) uint64 {
		return reply(ctx, guest, []byte(`{"Group":"","Version":"v1","Kind":"Secret","Resource":"secrets","Namespaced":true}`))
	}).Export("k8s_rest_mapping")
	if _, err := host.Instantiate(ctx); err != nil {
		return nil, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, runtime); err != nil {
		return nil, err
	}
	compiled, err := runtime.CompileModule(ctx, wasm)
	if err != nil {
		return nil, err
	}
	return &module{runtime: runtime, compiled: compiled}, nil
}

// program is what a module learns about itself.
type program struct {
	name        string
	environment map[string]string
}

var (
	flightProgram = program{name: "bench.hangar.dev.Heavy.bench.one", environment: map[string]string{
		"YOKE_RELEASE": "bench.hangar.dev.Heavy.bench.one", "YOKE_NAMESPACE": "bench", "NAMESPACE": "bench", "YOKE_VERSION": "(devel)",
	}}
	converterProgram = program{name: "converter"}
)

// evaluate runs the module once in an instance of its own and returns its output.
func (module *module) evaluate(program program, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	config := wazero.NewModuleConfig().
		WithStdin(bytes.NewReader(input)).WithStdout(&stdout).WithStderr(&stderr).
		WithRandSource(rand.Reader).WithSysNanosleep().WithSysNanotime().WithSysWalltime().
		WithArgs(program.name)
	for name, value := range program.environment {
		config = config.WithEnv(name, value)
	}
	instance, err := module.runtime.InstantiateModule(ctx, module.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	if instance != nil {
		if err := instance.Close(ctx); err != nil {
			return nil, err
		}
	}
	return stdout.Bytes(), nil
}

// source is the origin of one flight, and what its last load has left.
type source struct {
	path  string
	cache string
	kept  string // the gzipped module on disk; only used with weak references
	weak  bool
	loads atomic.Int64

	mutex    sync.Mutex
	strongly *module
	weakly   weak.Pointer[module]
}

func newSource(path, cache string, isWeak bool) *source {
	name := sha1.Sum([]byte(path))
	return &source{path: path, cache: cache, kept: filepath.Join(cache, hex.EncodeToString(name[:])), weak: isWeak}
}

// module is the loaded flight. One goroutine loads it, the others wait for that.
func (source *source) module(answer []byte) (*module, error) {
	source.mutex.Lock()
	defer source.mutex.Unlock()
	if source.strongly != nil {
		return source.strongly, nil
	}
	if loaded := source.weakly.Value(); loaded != nil {
		return loaded, nil
	}
	source.loads.Add(1)
	wasm, err := source.read()
	if err != nil {
		return nil, err
	}
	loaded, err := compile(wasm, source.cache, answer)
	if err != nil {
		return nil, err
	}
	if source.weak {
		source.weakly = weak.Make(loaded)
	} else {
		source.strongly = loaded
	}
	return loaded, nil
}

// read returns the module's bytes. With weak references they come from the gzipped copy, and the copy is
// written again after each load, as the original does it.
func (source *source) read() ([]byte, error) {
	if !source.weak {
		return os.ReadFile(source.path)
	}
	var wasm []byte
	if kept, err := os.ReadFile(source.kept); err == nil {
		inflater, err := gzip.NewReader(bytes.NewReader(kept))
		if err != nil {
			return nil, err
		}
		if wasm, err = io.ReadAll(inflater); err != nil {
			return nil, err
		}
	} else if wasm, err = os.ReadFile(source.path); err != nil {
		return nil, err
	}
	var deflated bytes.Buffer
	deflater := gzip.NewWriter(&deflated)
	if _, err := deflater.Write(wasm); err != nil {
		return nil, err
	}
	if err := deflater.Close(); err != nil {
		return nil, err
	}
	return wasm, os.WriteFile(source.kept, deflated.Bytes(), 0o600)
}
