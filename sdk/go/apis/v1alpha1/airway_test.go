package v1alpha1

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/openapi"
)

var _ flight.Resource = (*Airway)(nil)

func TestAirwayEncodesUnderThePublishedFieldNames(t *testing.T) {
	airway := Airway{
		TypeMeta:   metav1.TypeMeta{APIVersion: AirwayGVR().GroupVersion().Identifier(), Kind: KindAirway},
		ObjectMeta: metav1.ObjectMeta{Name: "apps.examples.com"},
		Spec: AirwaySpec{
			WasmURLs:               WasmURLs{Flight: "f", FlightChecksum: "fc", Converter: "c", ConverterChecksum: "cc"},
			Template:               apiextensionsv1.CustomResourceDefinitionSpec{Group: "examples.com", Scope: apiextensionsv1.NamespaceScoped},
			ObjectPath:             []string{"spec"},
			Mode:                   AirwayModeDynamic,
			ClusterAccess:          true,
			ResourceAccessMatchers: []string{"Secret"},
			FixDriftInterval:       metav1.Duration{Duration: 90 * time.Second},
			Timeout:                metav1.Duration{Duration: 30 * time.Millisecond},
			MaxMemoryMib:           64,
			HistoryCapSize:         -1,
			Prune:                  PruneOptions{CRDs: true, Namespaces: true},
			Insecure:               true,
			SkipAdmissionWebhook:   true,
		},
	}
	want := `{
		"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "metadata": {"name": "apps.examples.com"},
		"spec": {
			"wasmUrls": {"flight": "f", "flightChecksum": "fc", "converter": "c", "converterChecksum": "cc"},
			"template": {"group": "examples.com", "names": {"plural": "", "kind": ""}, "scope": "Namespaced", "versions": null},
			"objectPath": ["spec"], "mode": "dynamic", "clusterAccess": true, "resourceAccessMatchers": ["Secret"],
			"fixDriftInterval": "1m30s", "timeout": "30ms", "maxMemoryMib": 64, "historyCapSize": -1,
			"prune": {"crds": true, "namespaces": true}, "insecure": true, "skipAdmissionWebhook": true
		}
	}`
	expectJSON(t, airway, want)
}

func TestAnAirwaysDefaultsAreLeftToTheServer(t *testing.T) {
	expectJSON(t, AirwaySpec{}, `{
		"wasmUrls": {"flight": ""},
		"template": {"group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": null}
	}`)
}

func TestAnAirwayHasItsKindWhetherOrNotItIsSet(t *testing.T) {
	expectJSON(t, Airway{}, `{
		"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway",
		"spec": {
			"wasmUrls": {"flight": ""},
			"template": {"group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": null}
		}
	}`)
}

func TestTheCRDOfAnAirwayBelongsToIt(t *testing.T) {
	airway := Airway{
		TypeMeta:   metav1.TypeMeta{APIVersion: APIVersion, Kind: KindAirway},
		ObjectMeta: metav1.ObjectMeta{Name: "apps.examples.com", UID: "1-2"},
		Spec: AirwaySpec{Template: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "examples.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "apps"},
		}},
	}

	crd := airway.CRD()

	if crd.Name != "apps.examples.com" || crd.Spec.Group != "examples.com" || crd.Kind != "CustomResourceDefinition" {
		t.Errorf("made %+v", crd)
	}
	owner := metav1.OwnerReference{APIVersion: APIVersion, Kind: KindAirway, Name: "apps.examples.com", UID: "1-2", BlockOwnerDeletion: new(true)}
	if want := []metav1.OwnerReference{owner}; !reflect.DeepEqual(crd.OwnerReferences, want) {
		t.Errorf("owners %+v, want %+v", crd.OwnerReferences, want)
	}
	if got, want := airway.CRGroupResource().String(), "apps.examples.com"; got != want {
		t.Errorf("instances are %s, want %s", got, want)
	}
}

func TestTwoModesFollowWhatIsNotTheInstance(t *testing.T) {
	dynamic := map[AirwayMode]bool{AirwayModeDynamic: true, AirwayModeSubscription: true}
	for _, mode := range Modes() {
		if got := mode.IsDynamic(); got != dynamic[mode] {
			t.Errorf("IsDynamic of %s is %v", mode, got)
		}
	}
	schema := AirwayMode("").OpenAPISchema()
	if len(schema.Enum) != len(Modes()) || string(schema.Enum[0].Raw) != `"standard"` || string(schema.Default.Raw) != `"standard"` {
		t.Errorf("schema %+v", schema)
	}
}

func TestSchemasHaveTheFieldsOfTheirTypes(t *testing.T) {
	tests := map[string]struct {
		schema *apiextensionsv1.JSONSchemaProps
		spec   []string
		status []string
	}{
		"Airway": {openapi.SchemaFor[Airway](), []string{"wasmUrls", "objectPath", "fixDriftInterval", "clusterAccess",
			"resourceAccessMatchers", "insecure", "skipAdmissionWebhook", "mode", "historyCapSize", "template", "prune", "maxMemoryMib", "timeout"}, []string{"conditions"}},
		"Flight": {openapi.SchemaFor[Flight](), []string{"wasmUrl", "checksum", "input", "inputObject", "args", "fixDriftInterval",
			"mode", "clusterAccess", "resourceAccessMatchers", "insecure", "skipAdmissionWebhook", "historyCapSize", "prune", "maxMemoryMib", "timeout"},
			[]string{"conditions", "inventory"}},
		"ClusterFlight": {openapi.SchemaFor[ClusterFlight](), []string{"wasmUrl", "checksum", "input", "inputObject", "args", "fixDriftInterval",
			"mode", "clusterAccess", "resourceAccessMatchers", "insecure", "skipAdmissionWebhook", "historyCapSize", "prune", "maxMemoryMib", "timeout"},
			[]string{"conditions", "inventory"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.schema.Description == "" || test.schema.Properties["spec"].Description == "" {
				t.Error("the kind or its spec has no description")
			}
			expectNames(t, test.schema.Properties["spec"], test.spec)
			expectNames(t, test.schema.Properties["status"], test.status)
			if conditions := test.schema.Properties["status"].Properties["conditions"]; conditions.XListType == nil {
				t.Error("conditions are not a map")
			}
		})
	}
}

func expectNames(t *testing.T, schema apiextensionsv1.JSONSchemaProps, want []string) {
	t.Helper()
	got := slices.Sorted(maps.Keys(schema.Properties))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
}

func expectJSON(t *testing.T, value any, want string) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var gotDocument, wantDocument any
	if err := json.Unmarshal(data, &gotDocument); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wantDocument); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(gotDocument, wantDocument) {
		t.Errorf("encoded %s\nwant %s", data, want)
	}
}
