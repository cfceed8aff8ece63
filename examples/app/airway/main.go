// Prints the Airway that adds the kind App to a cluster and binds it to its flight.
package main

//go:generate sh -c "go run . > ../airway.yaml"

import (
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "hangar.dev/examples/app/v1"
	"hangar.dev/examples/internal/manifest"
	"hangar.dev/sdk/go/apis/v1alpha1"
	"hangar.dev/sdk/go/openapi"
)

func main() { manifest.Main(airway()) }

func airway() v1alpha1.Airway {
	return v1alpha1.Airway{
		TypeMeta: metav1.TypeMeta{
			APIVersion: v1alpha1.AirwayGVR().GroupVersion().Identifier(),
			Kind:       v1alpha1.KindAirway,
		},
		ObjectMeta: metav1.ObjectMeta{
			Name: "apps.examples.com",
		},
		Spec: v1alpha1.AirwaySpec{
			WasmURLs: v1alpha1.WasmURLs{
				Flight: "build/guests/app.wasm",
			},
			// The flight looks at the Deployment that it emitted, ...
			ClusterAccess: true,
			// ... and at a secret that is not its own: anything else of others is denied.
			ResourceAccessMatchers: []string{"Secret"},
			// The secret's creation, and a Deployment that becomes available, evaluate the flight again.
			Mode: v1alpha1.AirwayModeDynamic,
			Template: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "examples.com",
				Names: apiextensionsv1.CustomResourceDefinitionNames{
					Plural:   "apps",
					Singular: "app",
					Kind:     "App",
				},
				Scope: apiextensionsv1.NamespaceScoped,
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
					{
						Name:    "v1",
						Served:  true,
						Storage: true,
						Schema: &apiextensionsv1.CustomResourceValidation{
							OpenAPIV3Schema: openapi.SchemaFrom(reflect.TypeFor[v1.App]()),
						},
						AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{
							{Name: "status", Type: "string", JSONPath: ".status.msg"},
						},
					},
				},
			},
		},
	}
}
