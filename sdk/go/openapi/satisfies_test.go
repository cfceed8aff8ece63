package openapi_test

import (
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"hangar.dev/sdk/go/openapi"
)

func TestSatisfies(t *testing.T) {
	type item struct {
		Name string `json:"name"`
	}
	type list struct {
		Items []item `json:"items"`
	}
	tests := map[string]struct {
		has, demanded reflect.Type
		want          string // empty: satisfied
	}{
		"itself":          {reflect.TypeFor[list](), reflect.TypeFor[list](), ""},
		"more":            {reflect.TypeFor[struct{ A, B int }](), reflect.TypeFor[struct{ A int }](), ""},
		"another type":    {reflect.TypeFor[struct{ A string }](), reflect.TypeFor[struct{ A int }](), `A: has the type "string", not "integer"`},
		"not required":    {reflect.TypeFor[struct{ A *int }](), reflect.TypeFor[struct{ A int }](), `does not require "A"`},
		"not there":       {reflect.TypeFor[struct{}](), reflect.TypeFor[struct{ A *int }](), `has no property "A"`},
		"items lack it":   {reflect.TypeFor[[]struct{}](), reflect.TypeFor[[]item](), `items: does not require "name"`},
		"items of a list": {reflect.TypeFor[list](), reflect.TypeFor[struct{ Items []int }](), `does not require "Items"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := openapi.Satisfies(*openapi.SchemaFrom(test.has), *openapi.SchemaFrom(test.demanded))
			if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}

	unsaid := apiextensionsv1.JSONSchemaProps{Type: "array"}
	if err := openapi.Satisfies(unsaid, *openapi.SchemaFor[[]item]()); err == nil {
		t.Error("a list of anything satisfies a list of items")
	}
	if err := openapi.Satisfies(*openapi.SchemaFor[[]item](), unsaid); err != nil {
		t.Errorf("a list of items does not satisfy a list of anything: %v", err)
	}
}
