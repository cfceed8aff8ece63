// Package validation checks values against the schemas of package openapi, with the validator and
// the messages of the API server.
//
// It is a module of its own, because the API server's validator brings many others. A flight with
// it is some 20 MB larger.
package validation

import (
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

// Validate returns an error that names each violation, in alphabetical order, or nil. value is what
// encoding/json decodes into an any, or a struct, which counts as the JSON that it encodes to.
// Fields that the schema does not know are no violation. Rules in CEL are not evaluated.
func Validate(schema *apiextensionsv1.JSONSchemaProps, value any) error {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &internal, nil); err != nil {
		return err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return err
	}
	var found violations
	for _, violation := range validation.ValidateCustomResource(nil, value, validator) {
		found = append(found, violation)
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return found
}

// ValidateStrict is Validate with Strict(schema): unknown fields are violations.
func ValidateStrict(schema *apiextensionsv1.JSONSchemaProps, value any) error {
	return Validate(Strict(schema), value)
}

// Strict returns a copy of the schema in which objects have no other fields than those that it
// names. Objects that keep unknown fields, or whose other fields have a schema, stay open.
func Strict(schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	closed := schema.DeepCopy()
	closeObjects(closed)
	return closed
}

func closeObjects(schema *apiextensionsv1.JSONSchemaProps) {
	if schema == nil {
		return
	}
	keepsUnknown := schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
	others := schema.AdditionalProperties
	switch {
	case others != nil && others.Schema != nil:
		closeObjects(others.Schema)
	case schema.Type == "object" && !keepsUnknown && (others == nil || !others.Allows):
		schema.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: false}
	}
	for name, property := range schema.Properties {
		closeObjects(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		closeObjects(schema.Items.Schema)
		for index := range schema.Items.JSONSchemas {
			closeObjects(&schema.Items.JSONSchemas[index])
		}
	}
}

// violations has the text of yoke's lists of errors.
type violations []error

func (v violations) Error() string {
	if len(v) == 1 {
		return v[0].Error()
	}
	lines := []string{"errors:"}
	for _, violation := range v {
		lines = append(lines, "  - "+strings.ReplaceAll(violation.Error(), "\n", "\n  "))
	}
	return strings.Join(lines, "\n")
}

func (v violations) Unwrap() []error { return v }
