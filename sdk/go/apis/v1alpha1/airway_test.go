package v1alpha1

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight"
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
