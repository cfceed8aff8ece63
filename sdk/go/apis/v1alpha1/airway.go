// Package v1alpha1 holds the API types of yoke.cd/v1alpha1 that people write in manifests.
package v1alpha1

import (
	json "github.com/go-json-experiment/json/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hangar.dev/sdk/go/apis"
	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/openapi"
)

// Group and Version name the API, APIVersion both of them, KindAirway the kind of an Airway in it.
const (
	Group      = "yoke.cd"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version
	KindAirway = "Airway"
)

// AirwayGVR returns the resource that Airways are served as.
func AirwayGVR() schema.GroupVersionResource { return served("airways") }

func served(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: Group, Version: Version, Resource: resource}
}

// Airway extends the Kubernetes API by a kind whose instances a flight implements. It is cluster scoped,
// and its name must be that of its CustomResourceDefinition: plural.group.
type Airway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              AirwaySpec    `json:"spec"`
	Status            flight.Status `json:"status,omitzero"`
}

var _ runtime.Object = (*Airway)(nil)

// DeepCopyObject makes an Airway usable by clients of Kubernetes.
func (airway *Airway) DeepCopyObject() runtime.Object { return apis.DeepCopy(airway) }

// MarshalJSON writes the Airway with its kind and version, whether or not they are set.
func (airway Airway) MarshalJSON() ([]byte, error) {
	airway.APIVersion, airway.Kind = APIVersion, KindAirway
	type plain Airway
	return json.Marshal(plain(airway))
}

// OpenAPISchema returns the schema of an Airway.
func (Airway) OpenAPISchema() *apiextensionsv1.JSONSchemaProps {
	type plain Airway
	schema := openapi.SchemaFor[plain]()
	schema.Description = "Airway adds a kind to the cluster: a CustomResourceDefinition, and the flight that makes the resources of each instance of it."
	return schema
}

// CRD returns the CustomResourceDefinition that the host makes from the template: it has the name of the
// Airway and belongs to it.
func (airway Airway) CRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{
			APIVersion: apiextensionsv1.SchemeGroupVersion.Identifier(),
			Kind:       "CustomResourceDefinition",
		},
		ObjectMeta: metav1.ObjectMeta{
			Name: airway.Name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion:         airway.APIVersion,
				Kind:               airway.Kind,
				Name:               airway.Name,
				UID:                airway.UID,
				BlockOwnerDeletion: new(true),
			}},
		},
		Spec: airway.Spec.Template,
	}
}

// CRGroupResource returns the group and resource that the instances of the Airway are served as.
func (airway Airway) CRGroupResource() schema.GroupResource {
	return schema.GroupResource{Group: airway.Spec.Template.Group, Resource: airway.Spec.Template.Names.Plural}
}

// AirwaySpec describes the kind, the flight that implements it, and what that flight may do.
type AirwaySpec struct {
	// WasmURLs say where the modules are.
	WasmURLs WasmURLs `json:"wasmUrls"`

	// ObjectPath names the part of an instance that the flight reads on its standard input, as a list
	// of field names. Empty: the whole instance.
	ObjectPath []string `json:"objectPath,omitempty"`

	// FixDriftInterval is the time between two evaluations without a change. Zero: none.
	FixDriftInterval metav1.Duration `json:"fixDriftInterval,omitzero"`

	// ClusterAccess lets the flight look up objects that its release owns.
	ClusterAccess bool `json:"clusterAccess,omitempty" Default:"false"`

	// ResourceAccessMatchers widen ClusterAccess to objects of others, each as
	// [namespace/]Kind[.group][:name] with * for any. A part matches whole or not at all.
	ResourceAccessMatchers []string `json:"resourceAccessMatchers,omitempty"`

	// Insecure fetches modules without TLS verification, and from registries by plain HTTP.
	Insecure bool `json:"insecure,omitempty"`

	// SkipAdmissionWebhook admits instances without evaluating the flight for them.
	SkipAdmissionWebhook bool `json:"skipAdmissionWebhook,omitempty"`

	// Mode says which changes evaluate the flight again. Empty: AirwayModeStandard.
	Mode AirwayMode `json:"mode,omitempty"`

	// HistoryCapSize is how many revisions of a release are kept. Zero: two. Negative: all.
	HistoryCapSize int `json:"historyCapSize,omitempty"`

	// Template is the specification of the CustomResourceDefinition that the host creates and owns.
	Template apiextensionsv1.CustomResourceDefinitionSpec `json:"template"`

	// Prune says which kinds may be deleted with what is in them.
	Prune PruneOptions `json:"prune,omitzero"`

	// MaxMemoryMib bounds the linear memory of one evaluation, in MiB. Zero: the host's default.
	MaxMemoryMib uint32 `json:"maxMemoryMib,omitzero"`

	// Timeout bounds one evaluation. Zero: ten seconds. Negative: the host's limit.
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// OpenAPISchema returns the schema of the specification.
func (AirwaySpec) OpenAPISchema() *apiextensionsv1.JSONSchemaProps {
	type plain AirwaySpec
	schema := openapi.SchemaFor[plain]()
	schema.Description = "What the kind looks like, which flight carries it out, and what that flight may do."
	return schema
}

// WasmURLs are the modules of an Airway. A URL is http(s)://, oci://, or the path of a file that the
// host can read. A checksum is the SHA-256 of the uncompressed module in hexadecimal.
type WasmURLs struct {
	Flight            string `json:"flight"`
	FlightChecksum    string `json:"flightChecksum,omitzero"`
	Converter         string `json:"converter,omitempty"`
	ConverterChecksum string `json:"converterChecksum,omitzero"`
}

// AirwayMode says which changes evaluate the flight of an instance, or of a Flight, again.
type AirwayMode string

const (
	// AirwayModeStandard evaluates when the instance or Flight changes.
	AirwayModeStandard AirwayMode = "standard"
	// AirwayModeStatic is standard, and nobody else may change or delete the emitted resources.
	AirwayModeStatic AirwayMode = "static"
	// AirwayModeDynamic evaluates also when a resource of the release changes, or any object that the
	// flight looked up.
	AirwayModeDynamic AirwayMode = "dynamic"
	// AirwayModeSubscription evaluates also when an object changes that the flight's last evaluation
	// looked up.
	AirwayModeSubscription AirwayMode = "subscription"
)

// IsDynamic reports whether the flight is evaluated when something other than the instance changes.
func (mode AirwayMode) IsDynamic() bool {
	return mode == AirwayModeDynamic || mode == AirwayModeSubscription
}

// Modes returns all modes.
func Modes() []AirwayMode {
	return []AirwayMode{AirwayModeStandard, AirwayModeStatic, AirwayModeDynamic, AirwayModeSubscription}
}

// OpenAPISchema returns the modes as an enumeration.
func (AirwayMode) OpenAPISchema() *apiextensionsv1.JSONSchemaProps {
	schema := &apiextensionsv1.JSONSchemaProps{Type: "string", Default: quoted(AirwayModeStandard)}
	for _, mode := range Modes() {
		schema.Enum = append(schema.Enum, *quoted(mode))
	}
	return schema
}

func quoted(mode AirwayMode) *apiextensionsv1.JSON {
	return &apiextensionsv1.JSON{Raw: []byte(`"` + mode + `"`)}
}

// PruneOptions say which resources may be deleted when a flight no longer emits them. Without them, such
// a resource stays in the cluster and has no owner.
type PruneOptions struct {
	CRDs       bool `json:"crds,omitzero"`
	Namespaces bool `json:"namespaces,omitzero"`
}
