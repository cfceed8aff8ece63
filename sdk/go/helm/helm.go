// Package helm renders Helm charts inside a flight.
//
// It is a Go module of its own: Helm and its dependencies make a flight of about 80 MB, and a flight that
// does not import this package has none of them.
package helm

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Chart is a chart with its subcharts.
type Chart struct {
	*chart.Chart
}

// LoadChartFromZippedArchive reads a chart as helm package and helm pull write it: a .tgz. The chart is
// the directory of the topmost Chart.yaml.
func LoadChartFromZippedArchive(data []byte) (*Chart, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read the chart's archive: %w", err)
	}
	// Helm's own limit, counted over all files.
	left := loader.MaxDecompressedChartSize
	var files []*loader.BufferedFile
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the chart's archive: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(io.LimitReader(archive, left+1))
		if err != nil {
			return nil, fmt.Errorf("read %s of the chart's archive: %w", header.Name, err)
		}
		if left -= int64(len(content)); left < 0 {
			return nil, fmt.Errorf("the chart's files are larger than %d bytes", loader.MaxDecompressedChartSize)
		}
		files = append(files, &loader.BufferedFile{Name: header.Name, Data: content})
	}
	return newChart(files)
}

// LoadChartFromFS reads a chart that is embedded as files. Names that begin with '.' or '_' are embedded
// only by a pattern with "all:", and most charts have a templates/_helpers.tpl:
//
//	//go:embed all:mychart
//	var files embed.FS
func LoadChartFromFS(files embed.FS) (*Chart, error) {
	var buffered []*loader.BufferedFile
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the chart's files: %w", err)
	}
	return newChart(buffered)
}

func newChart(files []*loader.BufferedFile) (*Chart, error) {
	files, err := below(files)
	if err != nil {
		return nil, err
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	return &Chart{Chart: loaded}, nil
}

var byteOrderMark = []byte("\ufeff")

// below returns the files of the directory that has the topmost Chart.yaml, under the names that they
// have there.
func below(files []*loader.BufferedFile) ([]*loader.BufferedFile, error) {
	var roots []string
	for _, file := range files {
		file.Name = path.Clean(file.Name)
		file.Data = bytes.TrimPrefix(file.Data, byteOrderMark)
		if path.Base(file.Name) == "Chart.yaml" {
			roots = append(roots, path.Dir(file.Name))
		}
	}
	if roots == nil {
		return nil, errors.New("not a chart: there is no Chart.yaml")
	}
	slices.SortStableFunc(roots, func(a, b string) int { return cmp.Compare(depthOf(a), depthOf(b)) })
	root := roots[0]
	if len(roots) > 1 && depthOf(roots[1]) == depthOf(root) {
		return nil, fmt.Errorf("two charts side by side: %s and %s", root, roots[1])
	}
	if root == "." {
		return files, nil
	}
	var kept []*loader.BufferedFile
	for _, file := range files {
		if name, ok := strings.CutPrefix(file.Name, root+"/"); ok {
			kept = append(kept, &loader.BufferedFile{Name: name, Data: file.Data})
		}
	}
	return kept, nil
}

func depthOf(directory string) int {
	if directory == "." {
		return 0
	}
	return 1 + strings.Count(directory, "/")
}

// ValuesFile returns the chart's values.yaml as written, and nil if there is none.
func (chart Chart) ValuesFile() []byte {
	for _, file := range chart.Raw {
		if file.Name == "values.yaml" || file.Name == "values.yml" {
			return file.Data
		}
	}
	return nil
}

type renderOpts struct {
	release     chartutil.ReleaseOptions
	kubeVersion string
	apiVersions []string
	includeCRDs bool
	noHooks     bool
}

// RenderOption changes how a chart is rendered. Without any it is an upgrade, like each evaluation of a
// flight but the first, for the Kubernetes version that Helm's packages assume by default.
type RenderOption func(*renderOpts)

// IsInstall renders the chart as its first installation, as helm template does.
var IsInstall RenderOption = func(options *renderOpts) { options.release.IsInstall = true }

// IncludeCRDs adds the CustomResourceDefinitions of the chart's directory crds, and those of its
// subcharts.
var IncludeCRDs RenderOption = func(options *renderOpts) { options.includeCRDs = true }

// NoHooks leaves out the resources that are hooks. For a host of flights a hook is a resource like any
// other: it stays, and a Job that should run after each upgrade runs once.
var NoHooks RenderOption = func(options *renderOpts) { options.noHooks = true }

// Revision is the chart's .Release.Revision.
func Revision(revision int) RenderOption {
	return func(options *renderOpts) { options.release.Revision = revision }
}

// KubeVersion is the Kubernetes that the chart is rendered for, such as "v1.36.0". Rendering fails if the
// chart requires another one.
func KubeVersion(version string) RenderOption {
	return func(options *renderOpts) { options.kubeVersion = version }
}

// APIVersions are added to .Capabilities.APIVersions: "monitoring.coreos.com/v1", or with a
// kind "monitoring.coreos.com/v1/ServiceMonitor".
func APIVersions(versions ...string) RenderOption {
	return func(options *renderOpts) { options.apiVersions = append(options.apiVersions, versions...) }
}

// Render returns the resources of the chart, in the same order whatever the order of its files. Notes and
// the content of directories named tests are left out. Hooks are resources like any other, see NoHooks.
//
// values is a map, or something with a method ToMap() (map[string]any, error), or anything with a JSON
// form. The chart itself is not changed: it can be rendered again.
func (chart Chart) Render(release, namespace string, values any, opts ...RenderOption) ([]*unstructured.Unstructured, error) {
	options := renderOpts{release: chartutil.ReleaseOptions{Name: release, Namespace: namespace}}
	for _, apply := range opts {
		apply(&options)
	}
	options.release.IsUpgrade = !options.release.IsInstall
	capabilities, err := chart.capabilities(options)
	if err != nil {
		return nil, err
	}
	overrides, err := asMap(values)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}

	rendered := cloneChart(chart.Chart)
	if err := chartutil.ProcessDependenciesWithMerge(rendered, overrides); err != nil {
		return nil, fmt.Errorf("dependencies of the chart: %w", err)
	}
	context, err := chartutil.ToRenderValues(rendered, overrides, options.release, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(rendered, context)
	if err != nil {
		return nil, err
	}
	if options.includeCRDs {
		for _, crd := range rendered.CRDObjects() {
			files[crd.Filename] = string(crd.File.Data)
		}
	}
	resources, err := parse(files)
	if options.noHooks {
		resources = slices.DeleteFunc(resources, isHook)
	}
	return resources, err
}

func (chart Chart) capabilities(options renderOpts) (*chartutil.Capabilities, error) {
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), options.apiVersions...)
	if options.kubeVersion == "" {
		return capabilities, nil
	}
	version, err := chartutil.ParseKubeVersion(options.kubeVersion)
	if err != nil {
		return nil, fmt.Errorf("KubeVersion: %w", err)
	}
	if wanted := chart.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, version.String()) {
		return nil, fmt.Errorf("chart requires kubeVersion %s, and is rendered for %s", wanted, version)
	}
	capabilities.KubeVersion = *version
	return capabilities, nil
}

func asMap(values any) (map[string]any, error) {
	switch values := values.(type) {
	case map[string]any:
		return values, nil
	case interface {
		ToMap() (map[string]any, error)
	}:
		return values.ToMap()
	}
	document, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	err = json.Unmarshal(document, &object)
	return object, err
}

// cloneChart copies the parts of a chart that Helm changes when it removes disabled dependencies.
func cloneChart(original *chart.Chart) *chart.Chart {
	clone := *original
	if original.Metadata != nil {
		metadata := *original.Metadata
		metadata.Dependencies = slices.Clone(metadata.Dependencies)
		for index, dependency := range metadata.Dependencies {
			if dependency != nil {
				metadata.Dependencies[index] = new(*dependency)
			}
		}
		clone.Metadata = &metadata
	}
	clone.SetDependencies()
	for _, dependency := range original.Dependencies() {
		clone.AddDependency(cloneChart(dependency))
	}
	return &clone
}

// parse reads the resources of rendered files, in order.
func parse(files map[string]string) ([]*unstructured.Unstructured, error) {
	var resources []*unstructured.Unstructured
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			if isManifest(name) && !yield(name) {
				return
			}
		}
	}) {
		for decoder := yaml.NewYAMLToJSONDecoder(strings.NewReader(files[name])); ; {
			var resource unstructured.Unstructured
			err := decoder.Decode(&resource)
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if resource.Object != nil {
				resources = append(resources, &resource)
			}
		}
	}
	slices.SortStableFunc(resources, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(orderOf(a), orderOf(b))
	})
	return resources, nil
}

func isManifest(name string) bool {
	extension := path.Ext(name)
	return (extension == ".yaml" || extension == ".yml") &&
		!strings.HasPrefix(name, "tests/") && !strings.Contains(name, "/tests/")
}

func orderOf(resource *unstructured.Unstructured) string {
	kind := resource.GroupVersionKind()
	return strings.ToLower(strings.Join([]string{
		cmp.Or(resource.GetNamespace(), "_"), cmp.Or(kind.Group, "core"), kind.Version, kind.Kind, resource.GetName(),
	}, "/"))
}

func isHook(resource *unstructured.Unstructured) bool {
	_, ok := resource.GetAnnotations()[release.HookAnnotation]
	return ok
}
