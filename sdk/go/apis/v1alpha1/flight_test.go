package v1alpha1

import (
	"encoding/json"
	"io"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight"
)

var (
	_ flight.Resource = (*Flight)(nil)
	_ flight.Resource = (*ClusterFlight)(nil)
)

func filledFlight() Flight {
	return Flight{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "prod"},
		Spec: FlightSpec{
			WasmURL:                "u",
			Checksum:               "c",
			Input:                  "text",
			InputObject:            map[string]any{"a": []any{1.5, "b"}},
			Args:                   []string{"-x"},
			Mode:                   AirwayModeDynamic,
			FixDriftInterval:       metav1.Duration{Duration: 90 * time.Second},
			ClusterAccess:          true,
			ResourceAccessMatchers: []string{"Secret"},
			Insecure:               true,
			SkipAdmissionWebhook:   true,
			HistoryCapSize:         -1,
			Prune:                  PruneOptions{CRDs: true},
			MaxMemoryMib:           64,
			Timeout:                metav1.Duration{Duration: 30 * time.Millisecond},
		},
		Status: FlightStatus{
			Status:    flight.Status{Conditions: flight.Conditions{{Type: "Ready"}}},
			Inventory: []InventoryItem{{Resource: "prod/ConfigMap:shop", Version: "v1", Ready: true}},
		},
	}
}

func TestFlightsEncodeUnderThePublishedFieldNames(t *testing.T) {
	const content = `
		"metadata": {"name": "shop", "namespace": "prod"},
		"spec": {
			"wasmUrl": "u", "checksum": "c", "input": "text", "inputObject": {"a": [1.5, "b"]}, "args": ["-x"], "mode": "dynamic",
			"fixDriftInterval": "1m30s", "clusterAccess": true, "resourceAccessMatchers": ["Secret"], "insecure": true,
			"skipAdmissionWebhook": true, "historyCapSize": -1, "prune": {"crds": true}, "maxMemoryMib": 64, "timeout": "30ms"
		},
		"status": {
			"conditions": [{"type": "Ready", "status": "", "lastTransitionTime": null, "reason": "", "message": ""}],
			"inventory": [{"resource": "prod/ConfigMap:shop", "version": "v1", "ready": true}]
		}
	}`
	expectJSON(t, filledFlight(), `{"apiVersion": "yoke.cd/v1alpha1", "kind": "Flight",`+content)
	expectJSON(t, ClusterFlight(filledFlight()), `{"apiVersion": "yoke.cd/v1alpha1", "kind": "ClusterFlight",`+content)
}

func TestAFlightsDefaultsAreLeftToTheServer(t *testing.T) {
	expectJSON(t, Flight{}, `{"apiVersion": "yoke.cd/v1alpha1", "kind": "Flight", "spec": {"wasmUrl": ""}}`)
}

func TestAFlightReadsBackAsItIs(t *testing.T) {
	original := filledFlight()
	original.APIVersion, original.Kind = APIVersion, KindFlight
	document, err := json.Marshal(original)
	if err != nil {
		t.Fatal(err)
	}

	var read Flight
	if err := json.Unmarshal(document, &read); err != nil {
		t.Fatal(err)
	}

	if !reflect.DeepEqual(read, original) {
		t.Errorf("read %+v, want %+v", read, original)
	}
	if copied := original.DeepCopyObject(); !reflect.DeepEqual(copied, &original) {
		t.Errorf("copied %+v, want %+v", copied, original)
	}
}

func TestTheInputOfAFlight(t *testing.T) {
	object := map[string]any{"a": 1}
	tests := map[string]struct {
		spec FlightSpec
		want string
	}{
		"none":             {FlightSpec{}, ""},
		"text":             {FlightSpec{Input: "text"}, "text"},
		"object":           {FlightSpec{InputObject: object}, `{"a":1}`},
		"an empty object":  {FlightSpec{InputObject: map[string]any{}}, `{}`},
		"text before that": {FlightSpec{Input: "text", InputObject: object}, "text"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(FlightInputStream(test.spec))
			if err != nil || string(got) != test.want {
				t.Errorf("input %q, %v, want %q", got, err, test.want)
			}
		})
	}

	if _, err := io.ReadAll(FlightInputStream(FlightSpec{InputObject: map[string]any{"a": func() {}}})); err == nil {
		t.Error("what has no JSON form was written")
	}
}

func TestResourcesOfTheKinds(t *testing.T) {
	for want, got := range map[string]string{
		"yoke.cd/v1alpha1, Resource=airways":        AirwayGVR().String(),
		"yoke.cd/v1alpha1, Resource=flights":        FlightGVR().String(),
		"yoke.cd/v1alpha1, Resource=clusterflights": ClusterFlightGVR().String(),
	} {
		if got != want {
			t.Errorf("resource %q, want %q", got, want)
		}
	}
}
