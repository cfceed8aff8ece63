package flight

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/openapi"
)

// Status is the host's report about an Airway, and the minimal status of a custom resource.
type Status struct {
	Conditions Conditions `json:"conditions,omitempty"`
}

// Conditions are the conditions of a resource. The host sets the one of type Ready, unless the flight
// does; a flight may set any others.
type Conditions []metav1.Condition

// OpenAPISchema returns the schema of conditions: a list in which each type occurs once, so that host
// and flight can each write their own.
func (Conditions) OpenAPISchema() *apiextensionsv1.JSONSchemaProps {
	schema := openapi.SchemaFor[[]metav1.Condition]()
	schema.XListType = new("map")
	schema.XListMapKeys = []string{"type"}
	return schema
}
