package v1alpha1

import (
	"bytes"
	"io"
	"strings"

	json "github.com/go-json-experiment/json/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hangar.dev/sdk/go/apis"
	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/openapi"
)

// The kinds of a flight with its own input, in a namespace and in the cluster.
const (
	KindFlight        = "Flight"
	KindClusterFlight = "ClusterFlight"
)

// FlightGVR returns the resource that Flights are served as.
func FlightGVR() schema.GroupVersionResource { return served("flights") }

// ClusterFlightGVR returns the resource that ClusterFlights are served as.
func ClusterFlightGVR() schema.GroupVersionResource { return served("clusterflights") }

// Flight is one release of a flight, whose resources are in the namespace of the Flight.
type Flight struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              FlightSpec   `json:"spec"`
	Status            FlightStatus `json:"status,omitzero"`
}

var _ runtime.Object = (*Flight)(nil)

// DeepCopyObject makes a Flight usable by clients of Kubernetes.
func (flight *Flight) DeepCopyObject() runtime.Object { return apis.DeepCopy(flight) }

// MarshalJSON writes the Flight with its kind and version, whether or not they are set.
func (flight Flight) MarshalJSON() ([]byte, error) {
	flight.APIVersion, flight.Kind = APIVersion, KindFlight
	type plain Flight
	return json.Marshal(plain(flight))
}

// OpenAPISchema returns the schema of a Flight.
func (Flight) OpenAPISchema() *apiextensionsv1.JSONSchemaProps {
	type plain Flight
	schema := openapi.SchemaFor[plain]()
	schema.Description = "Flight is one release of a flight: a module, its input, and the resources that it makes in the namespace of the Flight."
	return schema
}

// ClusterFlight is one release of a flight, whose resources may be anywhere.
type ClusterFlight Flight

var _ runtime.Object = (*ClusterFlight)(nil)

// DeepCopyObject makes a ClusterFlight usable by clients of Kubernetes.
func (flight *ClusterFlight) DeepCopyObject() runtime.Object { return apis.DeepCopy(flight) }

// MarshalJSON writes the ClusterFlight with its kind and version, whether or not they are set.
func (flight ClusterFlight) MarshalJSON() ([]byte, error) {
	flight.APIVersion, flight.Kind = APIVersion, KindClusterFlight
	type plain ClusterFlight
	return json.Marshal(plain(flight))
}

// OpenAPISchema returns the schema of a ClusterFlight.
func (ClusterFlight) OpenAPISchema() *apiextensionsv1.JSONSchemaProps {
	type plain ClusterFlight
	schema := openapi.SchemaFor[plain]()
	schema.Description = "ClusterFlight is one release of a flight: a module, its input, and the resources that it makes, in all namespaces."
	return schema
}

// FlightSpec names the flight to release, and its input. Fields that an Airway has too have the same
// meaning there.
type FlightSpec struct {
	// WasmURL says where the module is.
	WasmURL string `json:"wasmUrl"`

	// Checksum is the SHA-256 of the uncompressed module in hexadecimal.
	Checksum string `json:"checksum,omitzero"`

	// Input is the flight's standard input, byte for byte.
	Input string `json:"input,omitzero"`

	// InputObject is the flight's standard input as JSON, if Input is empty.
	InputObject map[string]any `json:"inputObject,omitzero"`

	// Args are the arguments of the flight, after the name of the release.
	Args []string `json:"args,omitempty"`

	// Mode says which changes evaluate the flight again. Empty: AirwayModeStandard.
	Mode AirwayMode `json:"mode,omitempty"`

	FixDriftInterval       metav1.Duration `json:"fixDriftInterval,omitzero"`
	ClusterAccess          bool            `json:"clusterAccess,omitempty" Default:"false"`
	ResourceAccessMatchers []string        `json:"resourceAccessMatchers,omitempty"`
	Insecure               bool            `json:"insecure,omitempty"`
	SkipAdmissionWebhook   bool            `json:"skipAdmissionWebhook,omitempty"`
	HistoryCapSize         int             `json:"historyCapSize,omitempty"`
	Prune                  PruneOptions    `json:"prune,omitzero"`
	MaxMemoryMib           uint32          `json:"maxMemoryMib,omitzero"`
	Timeout                metav1.Duration `json:"timeout,omitzero"`
}

// OpenAPISchema returns the schema of the specification.
func (FlightSpec) OpenAPISchema() *apiextensionsv1.JSONSchemaProps {
	type plain FlightSpec
	schema := openapi.SchemaFor[plain]()
	schema.Description = "Which flight is released, and with which input."
	return schema
}

// FlightInputStream returns the flight's standard input: Input, or else InputObject as JSON, or
// else nothing.
func FlightInputStream(spec FlightSpec) io.Reader {
	if spec.Input != "" || spec.InputObject == nil {
		return strings.NewReader(spec.Input)
	}
	document, err := json.Marshal(spec.InputObject)
	if err != nil {
		return failingReader{err}
	}
	return bytes.NewReader(document)
}

// failingReader returns an error when it is read.
type failingReader struct{ err error }

func (reader failingReader) Read([]byte) (int, error) { return 0, reader.err }

// FlightStatus is the host's report about a Flight.
type FlightStatus struct {
	flight.Status

	// Inventory lists the resources of the release.
	Inventory []InventoryItem `json:"inventory,omitzero"`
}

// InventoryItem is one resource of a release.
type InventoryItem struct {
	Resource string `json:"resource"`
	Version  string `json:"version"`
	Ready    bool   `json:"ready"`
}
