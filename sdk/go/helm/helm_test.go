package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hangar.dev/sdk/go/helm"
)

//go:embed all:testdata/shop
var shopFiles embed.FS

func loadShop(t *testing.T) *helm.Chart {
	t.Helper()
	chart, err := helm.LoadChartFromFS(shopFiles)
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// zip packs files into an archive, each under its name.
func zip(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var data bytes.Buffer
	zipped := gzip.NewWriter(&data)
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func zipShop(t *testing.T, root string) []byte {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(shopFiles, "testdata/shop", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := shopFiles.ReadFile(name)
		files[root+strings.TrimPrefix(name, "testdata/shop/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return zip(t, files)
}

func render(t *testing.T, values any, options ...helm.RenderOption) []*unstructured.Unstructured {
	t.Helper()
	resources, err := loadShop(t).Render("corner", "prod", values, options...)
	if err != nil {
		t.Fatal(err)
	}
	return resources
}

func names(resources []*unstructured.Unstructured) []string {
	var names []string
	for _, resource := range resources {
		names = append(names, resource.GetKind()+"/"+resource.GetName())
	}
	return names
}

func find(t *testing.T, resources []*unstructured.Unstructured, name string) map[string]any {
	t.Helper()
	index := slices.Index(names(resources), name)
	if index < 0 {
		t.Fatalf("no %s among %v", name, names(resources))
	}
	return resources[index].Object
}

func field(t *testing.T, object map[string]any, path ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// usual are the resources of the unchanged chart, in the order in which they are rendered. .helmignore
// only matters to the person who packs a chart: embedded files are used as they are.
var usual = []string{
	"Job/corner-migrate", "ConfigMap/corner-cache", "ConfigMap/corner-settings", "ConfigMap/ignored", "PodDisruptionBudget/corner", "Deployment/corner",
}

func TestAChartIsTheSameFromFilesAndFromArchives(t *testing.T) {
	want := render(t, nil)
	if got := names(want); !slices.Equal(got, usual) {
		t.Errorf("rendered %v, want %v", got, usual)
	}
	for _, root := range []string{"", "shop/", "./shop/", "download/charts/shop/"} {
		t.Run("below "+root, func(t *testing.T) {
			chart, err := helm.LoadChartFromZippedArchive(zipShop(t, root))
			if err != nil {
				t.Fatal(err)
			}
			got, err := chart.Render("corner", "prod", nil)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("rendered %v, %v, want %v", names(got), err, names(want))
			}
		})
	}
}

func TestValuesReachTheTemplates(t *testing.T) {
	resources := render(t, map[string]any{
		"image":    map[string]any{"tag": "8"},
		"replicas": 3,
		"args":     []any{"-x"},
		"ports":    []any{map[string]any{"name": "admin", "port": 81, "protocol": "UDP"}},
		"greeting": "{{ .Values.settings.color }} {{ .Release.Namespace }}",
		"settings": map[string]any{"color": nil},
		"cache":    map[string]any{"persistent": false},
		"global":   map[string]any{"color": "red"},
	})

	deployment := find(t, resources, "Deployment/corner")
	container := field(t, deployment, "spec", "template", "spec", "containers").([]any)[0]
	want := map[string]any{
		"name": "shop", "image": "registry.example.com/shop:8", "args": []any{"-x"},
		"ports": []any{map[string]any{"name": "admin", "containerPort": int64(81), "protocol": "UDP"}},
	}
	if !reflect.DeepEqual(container, want) || field(t, deployment, "spec", "replicas") != int64(3) {
		t.Errorf("container %v, want %v", container, want)
	}
	settings := field(t, find(t, resources, "ConfigMap/corner-settings"), "data")
	if want := map[string]any{"greeting": " prod", "settings.json": `{"limits":{}}`}; !reflect.DeepEqual(settings, want) {
		t.Errorf("settings %v, want %v", settings, want)
	}
	cache := field(t, find(t, resources, "ConfigMap/corner-cache"), "data")
	if want := map[string]any{"size": "64Mi", "shards": "1e+06", "color": "red"}; !reflect.DeepEqual(cache, want) {
		t.Errorf("cache %v, want %v", cache, want)
	}
}

type mapper struct{ replicas int }

func (m mapper) ToMap() (map[string]any, error) { return map[string]any{"replicas": m.replicas}, nil }

func TestValuesOfAnyType(t *testing.T) {
	type typed struct {
		Replicas int `json:"replicas"`
	}
	for name, values := range map[string]any{
		"map": map[string]any{"replicas": 4}, "ToMap": mapper{4}, "struct": typed{4}, "pointer": &typed{4},
	} {
		t.Run(name, func(t *testing.T) {
			if got := field(t, find(t, render(t, values), "Deployment/corner"), "spec", "replicas"); got != int64(4) {
				t.Errorf("replicas %v, want 4", got)
			}
		})
	}
	if _, err := loadShop(t).Render("corner", "prod", []int{1}); err == nil || !strings.HasPrefix(err.Error(), "values: ") {
		t.Errorf("a list was taken for values: %v", err)
	}
}

func TestOptionsSayInWhichCircumstancesAChartIsRendered(t *testing.T) {
	annotations := func(resources []*unstructured.Unstructured) map[string]any {
		return field(t, find(t, resources, "Deployment/corner"), "spec", "template", "metadata", "annotations").(map[string]any)
	}
	upgrade, install := annotations(render(t, nil)), annotations(render(t, nil, helm.IsInstall, helm.Revision(7)))
	if upgrade["phase"] != "upgrade" || upgrade["revision"] != "0" || install["phase"] != "install" || install["revision"] != "7" {
		t.Errorf("upgrade %v, install %v", upgrade, install)
	}

	budget := find(t, render(t, nil, helm.KubeVersion("1.31.2"), helm.APIVersions("monitoring.example.com/v1")), "PodDisruptionBudget/corner")
	want := map[string]any{"kubernetes": "v1.31.2", "monitored": "yes"}
	if got := field(t, budget, "metadata", "annotations"); !reflect.DeepEqual(got, want) {
		t.Errorf("annotations %v, want %v", got, want)
	}

	if got, want := names(render(t, nil, helm.IncludeCRDs)), "CustomResourceDefinition/orders.shop.example.com"; !slices.Contains(got, want) {
		t.Errorf("rendered %v without %s", got, want)
	}
	if got := names(render(t, nil, helm.NoHooks)); !slices.Equal(got, usual[1:]) {
		t.Errorf("rendered %v, want %v", got, usual[1:])
	}
}

func TestAChartForOtherVersionsOfKubernetesIsRefused(t *testing.T) {
	tests := map[string]string{
		"1.24.9": "chart requires kubeVersion >=1.25.0-0, and is rendered for v1.24.9",
		"newest": "KubeVersion: ",
	}
	for version, want := range tests {
		if _, err := loadShop(t).Render("corner", "prod", nil, helm.KubeVersion(version)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("for %s: error %v, want %q", version, err, want)
		}
	}
}

func TestRenderingChangesNothingOfTheChart(t *testing.T) {
	chart := loadShop(t)
	first, err := chart.Render("corner", "prod", nil)
	if err != nil {
		t.Fatal(err)
	}

	with, err := chart.Render("corner", "prod", map[string]any{"metrics": map[string]any{"enabled": true, "port": 1}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := chart.Render("corner", "prod", nil)

	if !slices.Contains(names(with), "Service/corner-metrics") {
		t.Errorf("the subchart that was disabled at first is gone: %v", names(with))
	}
	if err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("rendered %v, %v, want %v", names(again), err, names(first))
	}
}

func TestWhatAChartRefusesIsAnError(t *testing.T) {
	tests := map[string]struct {
		values map[string]any
		want   string
	}{
		"by its schema":    {map[string]any{"replicas": "many"}, "replicas"},
		"by its templates": {map[string]any{"greeting": "{{ fail \"no greeting\" }}"}, "no greeting"},
		"by broken YAML":   {map[string]any{"image": map[string]any{"repository": "a: b"}}, "shop/templates/"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			resources, err := loadShop(t).Render("corner", "prod", test.values)
			if err == nil || resources != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("rendered %v, %v, want an error with %q", names(resources), err, test.want)
			}
		})
	}
}

func TestWhatIsNoChartIsAnError(t *testing.T) {
	const metadata = "apiVersion: v2\nname: a\nversion: 1.0.0\n"
	tests := map[string]struct {
		archive []byte
		want    string
	}{
		"no gzip":             {[]byte("PK"), "read the chart's archive: "},
		"a half":              {zipShop(t, "shop/")[:500], "chart's archive: "},
		"no Chart.yaml":       {zip(t, map[string]string{"a/values.yaml": ""}), "not a chart: there is no Chart.yaml"},
		"two charts":          {zip(t, map[string]string{"a/Chart.yaml": metadata, "b/Chart.yaml": metadata}), "two charts side by side: "},
		"no name":             {zip(t, map[string]string{"a/Chart.yaml": "apiVersion: v2\n"}), "name"},
		"larger than allowed": {zip(t, map[string]string{"a/Chart.yaml": metadata, "a/big": strings.Repeat("0", 101<<20)}), "larger than 104857600 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := helm.LoadChartFromZippedArchive(test.archive); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	if _, err := helm.LoadChartFromFS(embed.FS{}); err == nil {
		t.Error("no files are a chart")
	}
}

func TestTheValuesFileIsAsItWasWritten(t *testing.T) {
	want, err := shopFiles.ReadFile("testdata/shop/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := loadShop(t).ValuesFile(); !bytes.Equal(got, want) {
		t.Errorf("values.yaml is %q", got)
	}
	bare, err := helm.LoadChartFromZippedArchive(zip(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := bare.ValuesFile(); got != nil {
		t.Errorf("a chart without values.yaml has %q", got)
	}
}
