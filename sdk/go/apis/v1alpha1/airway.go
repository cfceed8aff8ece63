// Package v1alpha1 holds the API types of yoke.cd/v1alpha1 that people write in manifests.
package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and Version name the API, KindAirway the kind of an Airway in it.
const (
	Group      = "yoke.cd"
	Version    = "v1alpha1"
	KindAirway = "Airway"
)

// AirwayGVR returns the resource that Airways are served as.
func AirwayGVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: Group, Version: Version, Resource: "airways"}
}

// Airway extends the Kubernetes API by a kind whose instances are carried out by a flight. It is
// cluster scoped, and its name must be that of the CustomResourceDefinition it stands for: plural.group.
type Airway struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              AirwaySpec   `json:"spec"`
	Status            AirwayStatus `json:"status,omitzero"`
}

// AirwaySpec is what a kind looks like, which flight carries it out, and what that flight may do.
type AirwaySpec struct {
	// WasmURLs say where the modules are.
	WasmURLs WasmURLs `json:"wasmUrls"`

	// Template is the specification of the CustomResourceDefinition that the host creates and owns.
	Template apiextensionsv1.CustomResourceDefinitionSpec `json:"template"`

	// ObjectPath names the part of an instance that the flight reads on its standard input, as a list
	// of field names. Empty: the whole instance.
	ObjectPath []string `json:"objectPath,omitempty"`

	// Mode says which changes evaluate the flight again. Empty: AirwayModeStandard.
	Mode AirwayMode `json:"mode,omitempty"`

	// ClusterAccess lets the flight look up objects that its release owns.
	ClusterAccess bool `json:"clusterAccess,omitempty"`

	// ResourceAccessMatchers widen ClusterAccess to objects of others, each as
	// [namespace/]Kind[.group][:name] with * for any. A part matches whole or not at all.
	ResourceAccessMatchers []string `json:"resourceAccessMatchers,omitempty"`

	// FixDriftInterval is the time between two evaluations without a change. Zero: none.
	FixDriftInterval metav1.Duration `json:"fixDriftInterval,omitzero"`

	// Timeout bounds one evaluation. Zero: ten seconds. Negative: no end, which a host may refuse.
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// MaxMemoryMib bounds the linear memory of one evaluation, in MiB. Zero: the host's default.
	MaxMemoryMib uint32 `json:"maxMemoryMib,omitempty"`

	// HistoryCapSize is how many revisions of a release are kept. Zero: two. Negative: all.
	HistoryCapSize int `json:"historyCapSize,omitempty"`

	// Prune says which kinds may be deleted with what is in them.
	Prune PruneOptions `json:"prune,omitzero"`

	// Insecure fetches modules without TLS verification, and from registries by plain HTTP.
	Insecure bool `json:"insecure,omitempty"`

	// SkipAdmissionWebhook admits instances without evaluating the flight for them.
	SkipAdmissionWebhook bool `json:"skipAdmissionWebhook,omitempty"`
}

// WasmURLs are the modules of an Airway. A URL is http(s)://, oci://, or the path of a file that the
// host can read. A checksum is the SHA-256 of the uncompressed module in hexadecimal.
type WasmURLs struct {
	Flight            string `json:"flight"`
	FlightChecksum    string `json:"flightChecksum,omitempty"`
	Converter         string `json:"converter,omitempty"`
	ConverterChecksum string `json:"converterChecksum,omitempty"`
}

// AirwayMode says which changes evaluate the flight of an instance again.
type AirwayMode string

const (
	// AirwayModeStandard evaluates when the instance changes.
	AirwayModeStandard AirwayMode = "standard"
	// AirwayModeStatic is standard, and nobody else may change or delete what the flight emitted.
	AirwayModeStatic AirwayMode = "static"
	// AirwayModeDynamic evaluates also when a resource of the release changes, or anything that the
	// flight looked up.
	AirwayModeDynamic AirwayMode = "dynamic"
	// AirwayModeSubscription evaluates also when something changes that the flight's last evaluation
	// looked up.
	AirwayModeSubscription AirwayMode = "subscription"
)

// OpenAPISchema returns the modes as an enumeration.
func (AirwayMode) OpenAPISchema() *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{
		Type: "string",
		Enum: []apiextensionsv1.JSON{
			{Raw: []byte(`"standard"`)},
			{Raw: []byte(`"static"`)},
			{Raw: []byte(`"dynamic"`)},
			{Raw: []byte(`"subscription"`)},
		},
		Default: &apiextensionsv1.JSON{Raw: []byte(`"standard"`)},
	}
}

// PruneOptions say what may be deleted when a flight no longer emits it. Without them, such a resource
// stays in the cluster and belongs to nobody.
type PruneOptions struct {
	CRDs       bool `json:"crds,omitempty"`
	Namespaces bool `json:"namespaces,omitempty"`
}

// AirwayStatus is what the host says about an Airway.
type AirwayStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
