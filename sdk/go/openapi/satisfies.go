package openapi

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Satisfies returns an error if values of one schema may lack something that another one demands: a
// required field, or a field of another type. It compares types, properties, required fields and
// items, and nothing else.
func Satisfies(has, demanded apiextensionsv1.JSONSchemaProps) error {
	if has.Type != demanded.Type {
		return fmt.Errorf("has the type %q, not %q", has.Type, demanded.Type)
	}
	for _, name := range demanded.Required {
		if !slices.Contains(has.Required, name) {
			return fmt.Errorf("does not require %q", name)
		}
	}
	for name, property := range demanded.Properties {
		own, ok := has.Properties[name]
		if !ok {
			return fmt.Errorf("has no property %q", name)
		}
		if err := Satisfies(own, property); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if wanted := itemsOf(demanded); wanted != nil {
		own := itemsOf(has)
		if own == nil {
			return fmt.Errorf("does not say what its items are")
		}
		if err := Satisfies(*own, *wanted); err != nil {
			return fmt.Errorf("items: %w", err)
		}
	}
	return nil
}

func itemsOf(schema apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}
