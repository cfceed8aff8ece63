// Package fromchart makes the source of a flight from a Helm chart. `hangar flight from-chart` runs it.
package fromchart

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Options say what to generate.
type Options struct {
	Chart       string // a directory, or a .tgz
	Out         string // the directory that is made; it may exist if it is empty
	SDK         string // the directory of hangar.dev/sdk/go, with this module below it
	Module      string // the name of the Go module; empty: the chart's name
	KubeVersion string // empty: that of the template
	IncludeCRDs bool
	NoHooks     bool
}

//go:embed template/main.go
var template embed.FS

// Generate makes the flight: its main function, the types of its values, the chart, the SDK, and a Go
// module that builds without downloading any other.
func Generate(options Options) (*chart.Chart, error) {
	loaded, err := loader.Load(options.Chart)
	if err != nil {
		return nil, fmt.Errorf("load the chart %s: %w", options.Chart, err)
	}
	values, err := allValues(loaded)
	if err != nil {
		return nil, err
	}
	types, err := typesOf(values, loaded.Name()+" "+loaded.Metadata.Version)
	if err != nil {
		return nil, fmt.Errorf("types of the values: %w", err)
	}
	program, err := programOf(loaded, options)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"main.go": program, "values.go": types}
	for _, file := range loaded.Raw {
		files["chart/"+file.Name] = file.Data
	}
	if err := addModule(files, loaded, options); err != nil {
		return nil, err
	}
	return loaded, write(options.Out, files)
}

// allValues returns the shape of a chart's values, including those of its subcharts.
func allValues(loaded *chart.Chart) (*shape, error) {
	var schema map[string]any
	if len(loaded.Schema) > 0 {
		if err := json.Unmarshal(loaded.Schema, &schema); err != nil {
			return nil, fmt.Errorf("values.schema.json of %s: %w", loaded.Name(), err)
		}
	}
	values := shapeOf(loaded, schema)
	for _, dependency := range loaded.Dependencies() {
		below, err := allValues(dependency)
		if err != nil {
			return nil, err
		}
		values.addDependency(namesOf(loaded, dependency), below)
	}
	return values, nil
}

var (
	kubeVersion   = regexp.MustCompile(`helm\.KubeVersion\("[^"]*"\)`)
	firstSentence = regexp.MustCompile(`^// .*`)
	// The characters of a Go module's name that are allowed here; all usual names have only these.
	moduleName     = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._~/]*$`)
	versionPattern = regexp.MustCompile(`^v?[0-9]+\.[0-9]+(\.[0-9]+)?([-+][-+.0-9A-Za-z]+)?$`)
)

// programOf is the template with the options of this flight applied.
func programOf(loaded *chart.Chart, options Options) ([]byte, error) {
	program, err := template.ReadFile("template/main.go")
	if err != nil {
		return nil, err
	}
	program = firstSentence.ReplaceAll(program,
		fmt.Appendf(nil, "// The flight of the Helm chart %s: renders it with the values that it reads.", line(loaded.Name())))
	if options.KubeVersion != "" {
		if !versionPattern.MatchString(options.KubeVersion) {
			return nil, fmt.Errorf("%q is not a version of Kubernetes such as v1.36.0", options.KubeVersion)
		}
		program = kubeVersion.ReplaceAll(program, fmt.Appendf(nil, "helm.KubeVersion(%q)", options.KubeVersion))
	}
	var more string
	if options.IncludeCRDs {
		more += ", helm.IncludeCRDs"
	}
	if options.NoHooks {
		more += ", helm.NoHooks"
	}
	at := kubeVersion.FindIndex(program)
	if at == nil {
		return nil, errors.New("the template has no version of Kubernetes")
	}
	return bytes.Join([][]byte{program[:at[1]], []byte(more), program[at[1]:]}, nil), nil
}

// addModule adds the SDK's source and a go.mod that uses it from there. Versions are those that the SDK is
// tested with.
func addModule(files map[string][]byte, loaded *chart.Chart, options Options) error {
	name := options.Module
	if name == "" {
		name = loaded.Name()
	}
	if !moduleName.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of a Go module: name it with --module", name)
	}
	err := filepath.WalkDir(options.SDK, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(options.SDK, path)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() {
			switch relative {
			case "hangar", "examples", "helm/cmd", "helm/internal", "helm/testdata":
				return filepath.SkipDir
			}
			return nil
		}
		isSource := strings.HasSuffix(relative, ".go") && !strings.HasSuffix(relative, "_test.go")
		if base := filepath.Base(path); !isSource && base != "go.mod" && base != "go.sum" {
			return nil
		}
		files["sdk/"+relative], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the SDK: %w", err)
	}
	module, ok := files["sdk/helm/go.mod"]
	if !ok {
		return fmt.Errorf("read the SDK: there is no helm/go.mod in %s", options.SDK)
	}
	text := strings.Replace(string(module), "module hangar.dev/sdk/go/helm\n", "module "+name+"\n", 1)
	text = strings.Replace(text, "replace hangar.dev/sdk/go => ../\n", `require hangar.dev/sdk/go/helm v0.0.0

replace (
	hangar.dev/sdk/go => ./sdk
	hangar.dev/sdk/go/helm => ./sdk/helm
)
`, 1)
	files["go.mod"] = []byte(text)
	files["go.sum"] = files["sdk/helm/go.sum"]
	return nil
}

// write creates the directory, which must be empty if it exists.
func write(out string, files map[string][]byte) error {
	entries, err := os.ReadDir(out)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: name another directory with --out", out)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name, content := range files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("the chart has a file outside of it: %q", name)
		}
		path := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
