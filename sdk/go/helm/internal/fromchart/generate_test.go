package fromchart

import (
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
)

const shop = "../../testdata/shop"

// generate makes a flight from a chart beside the real SDK.
func generate(t *testing.T, options Options) (string, error) {
	t.Helper()
	options.SDK = "../../.."
	options.Out = filepath.Join(t.TempDir(), "flight")
	_, err := Generate(options)
	return options.Out, err
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestAFlightHasItsChartAndTheSDK(t *testing.T) {
	out, err := generate(t, Options{Chart: shop, KubeVersion: "v1.31.2", IncludeCRDs: true, NoHooks: true})
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{
		"main.go", "values.go", "go.mod", "go.sum", "chart/Chart.yaml", "chart/templates/_helpers.tpl", "chart/charts/cache/values.yaml",
		"chart/crds/orders.yaml", "sdk/go.mod", "sdk/flight/flight.go", "sdk/flight/wasi/internal/host/host_wasip1.go", "sdk/helm/go.mod", "sdk/helm/helm.go",
	} {
		if read(t, out, name) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	for _, name := range []string{
		"chart/templates/ignored.draft.yaml", "sdk/hangar", "sdk/examples", "sdk/helm/internal", "sdk/helm/testdata", "sdk/helm/helm_test.go",
	} {
		if _, err := os.Stat(filepath.Join(out, name)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	program := read(t, out, "main.go")
	if want := "{helm.IsInstall, helm.Revision(1), helm.KubeVersion(\"v1.31.2\"), helm.IncludeCRDs, helm.NoHooks}"; !strings.Contains(program, want) {
		t.Errorf("main.go has no %s", want)
	}
	if want := "// The flight of the Helm chart shop: renders it"; !strings.HasPrefix(program, want) {
		t.Errorf("main.go does not begin with %q", want)
	}
	module := read(t, out, "go.mod")
	for _, want := range []string{"module shop\n", "\tk8s.io/apimachinery v", "\thangar.dev/sdk/go => ./sdk\n", "\thangar.dev/sdk/go/helm => ./sdk/helm\n"} {
		if !strings.Contains(module, want) {
			t.Errorf("go.mod has no %q", want)
		}
	}
	if strings.Contains(module, "=> ../") {
		t.Error("go.mod looks outside of the flight")
	}
}

func TestWhatIsThereIsNotOverwritten(t *testing.T) {
	out := t.TempDir()
	options := Options{Chart: shop, SDK: "../../..", Out: out}
	if _, err := Generate(options); err != nil {
		t.Fatalf("an empty directory is refused: %v", err)
	}
	if err := os.WriteFile(filepath.Join(out, "main.go"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}

	_, err := Generate(options)

	if err == nil || !strings.Contains(err.Error(), "is not empty: name another directory with --out") {
		t.Errorf("error %v", err)
	}
	if got := read(t, out, "main.go"); got != "mine" {
		t.Errorf("main.go is %q", got)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	broken := t.TempDir()
	for name, content := range map[string]string{"Chart.yaml": "apiVersion: v2\nname: broken\nversion: 1.0.0\n", "values.schema.json": "{"} {
		if err := os.WriteFile(filepath.Join(broken, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		options Options
		want    string
	}{
		"no chart":            {Options{Chart: "no/such/chart"}, "load the chart no/such/chart: "},
		"a broken schema":     {Options{Chart: broken}, "values.schema.json of broken: "},
		"no Kubernetes":       {Options{Chart: shop, KubeVersion: `1") + panic("`}, "is not a version of Kubernetes"},
		"no module":           {Options{Chart: shop, Module: "a b"}, `"a b" cannot be the name of a Go module`},
		"a module of 2 lines": {Options{Chart: shop, Module: "a\nb"}, "cannot be the name of a Go module"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := generate(t, test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if _, err := os.Stat(out); !os.IsNotExist(err) {
				t.Error("something was made")
			}
		})
	}
}

func TestTheTypesOfAChart(t *testing.T) {
	out, err := generate(t, Options{Chart: shop})
	if err != nil {
		t.Fatal(err)
	}
	source := read(t, out, "values.go")
	for name, want := range map[string]string{
		"from the schema":       "// How many pods there are.\n\tReplicas *int64 `json:\"replicas,omitzero\"`",
		"from an example":       "Budget *float64 `json:\"budget,omitzero\"`",
		"a list of texts":       "Args []string `json:\"args,omitzero\"`",
		"a list by reference":   "Ports []ValuesPortsItem `json:\"ports,omitzero\"`",
		"below the reference":   "Protocol *string `json:\"protocol,omitzero\"`",
		"an object":             "Image *ValuesImage `json:\"image,omitzero\"`",
		"only in the schema":    "PullPolicy *string `json:\"pullPolicy,omitzero\"`",
		"an object of no field": "NodeSelector map[string]any `json:\"nodeSelector,omitzero\"`",
		"a list of nothing":     "Tolerations []any `json:\"tolerations,omitzero\"`",
		"an object or null":     "Affinity map[string]any `json:\"affinity,omitzero\"`",
		"a subchart":            "Cache *ValuesCache `json:\"cache,omitzero\"`",
		"of the subchart":       "Persistent *bool `json:\"persistent,omitzero\"`",
		"of both":               "Size *string `json:\"size,omitzero\"`",
		"for all subcharts":     "Global map[string]any `json:\"global,omitzero\"`",
	} {
		if !strings.Contains(source, want) {
			t.Errorf("%s: no %q in\n%s", name, want, source)
		}
	}
	if formatted, err := format.Source([]byte(source)); err != nil || string(formatted) != source {
		t.Errorf("values.go is not as gofmt writes it: %v", err)
	}
}

func TestHostileNamesAndWordsStayWords(t *testing.T) {
	source, err := typesOf(&shape{kind: object, fields: map[string]*shape{
		"a`b\"":     {kind: text},
		"c,omitted": {kind: text},
		"-":         {kind: text},
		"rest":      {kind: text},
		"2nd":       {kind: boolean, description: "one line\nvar x = 1 // and */ another"},
		"my-name":   {kind: text},
		"myName":    {kind: text},
		"":          {kind: text},
		"пример":    {kind: text},
	}}, "a\nb")
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	for _, want := range []string{
		"from a b. DO NOT EDIT.", "// one line var x = 1 // and */ another\n\tV2nd *bool `json:\"2nd,omitzero\"`",
		"MyName *string `json:\"my-name,omitzero\"`", "MyName2 *string `json:\"myName,omitzero\"`", "Rest2 *string `json:\"rest,omitzero\"`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, refused := range []string{"a`b", "omitted", `json:"-,omitzero"`, `json:",omitzero"`, "пример"} {
		if strings.Contains(text, refused) {
			t.Errorf("%q is in\n%s", refused, text)
		}
	}
}

func TestSchemas(t *testing.T) {
	unknown := &shape{}
	tests := map[string]struct {
		schema map[string]any
		want   *shape
	}{
		"nothing":             {nil, unknown},
		"a type":              {map[string]any{"type": "string"}, &shape{kind: text}},
		"a type or null":      {map[string]any{"type": []any{"null", "boolean"}}, &shape{kind: boolean}},
		"two types":           {map[string]any{"type": []any{"string", "integer"}}, unknown},
		"a type of nobody":    {map[string]any{"type": "date"}, unknown},
		"no type":             {map[string]any{"properties": map[string]any{}}, &shape{kind: object}},
		"parts":               {map[string]any{"allOf": []any{map[string]any{"type": "number"}}}, &shape{kind: number}},
		"a broken reference":  {map[string]any{"$ref": "#/no/where"}, unknown},
		"elsewhere":           {map[string]any{"$ref": "https://example.com/schema"}, unknown},
		"a reference to text": {map[string]any{"$ref": "#/title/x", "title": "y"}, unknown},
		"an escaped reference": {map[string]any{"$ref": "#/$defs/a~1b", "$defs": map[string]any{"a/b": map[string]any{"type": "array"}}},
			&shape{kind: list}},
		"itself": {map[string]any{"$ref": "#"}, unknown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := fromSchema(test.schema, test.schema, 0); got.kind != test.want.kind {
				t.Errorf("kind %d, want %d", got.kind, test.want.kind)
			}
		})
	}

	list := map[string]any{"properties": map[string]any{"next": map[string]any{"$ref": "#"}}}
	if _, err := typesOf(fromSchema(list, list, 0), "itself"); err != nil {
		t.Errorf("a schema in itself: %v", err)
	}
}

func TestSubchartsByTheirAliases(t *testing.T) {
	parent := &chart.Chart{Metadata: &chart.Metadata{Name: "parent", Dependencies: []*chart.Dependency{
		{Name: "cache", Alias: "sessions"}, {Name: "cache", Alias: "pages"}, {Name: "other"},
	}}}
	cache := &chart.Chart{Metadata: &chart.Metadata{Name: "cache"}, Values: map[string]any{"size": 1.0, "global": map[string]any{"a": 1.0}}}
	parent.AddDependency(cache, &chart.Chart{Metadata: &chart.Metadata{Name: "bare"}})

	values, err := allValues(parent)

	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sessions", "pages"} {
		if values.fields[name] == nil || values.fields[name].fields["size"].kind != integer || values.fields[name].fields["global"] != nil {
			t.Errorf("%s is %+v", name, values.fields[name])
		}
	}
	if values.fields["cache"] != nil || values.fields["bare"] != nil {
		t.Error("a subchart without its own name or without values has a field")
	}
}
