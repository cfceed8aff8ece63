package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// narrowings are the tags that restrict a field's schema further than its type does. Each is named as
// the field of JSONSchemaProps that it sets.
var narrowings = []struct {
	tag string
	set func(schema *apiextensionsv1.JSONSchemaProps, value string) error
}{
	{"description", setText(func(schema *apiextensionsv1.JSONSchemaProps) *string { return &schema.Description })},
	{"Description", setText(func(schema *apiextensionsv1.JSONSchemaProps) *string { return &schema.Description })},
	{"Format", setText(func(schema *apiextensionsv1.JSONSchemaProps) *string { return &schema.Format })},
	{"Pattern", setText(func(schema *apiextensionsv1.JSONSchemaProps) *string { return &schema.Pattern })},
	{"Maximum", setNumber(func(schema *apiextensionsv1.JSONSchemaProps) **float64 { return &schema.Maximum })},
	{"Minimum", setNumber(func(schema *apiextensionsv1.JSONSchemaProps) **float64 { return &schema.Minimum })},
	{"MultipleOf", setNumber(func(schema *apiextensionsv1.JSONSchemaProps) **float64 { return &schema.MultipleOf })},
	{"MaxLength", setCount(func(schema *apiextensionsv1.JSONSchemaProps) **int64 { return &schema.MaxLength })},
	{"MinLength", setCount(func(schema *apiextensionsv1.JSONSchemaProps) **int64 { return &schema.MinLength })},
	{"MaxItems", setCount(func(schema *apiextensionsv1.JSONSchemaProps) **int64 { return &schema.MaxItems })},
	{"MinItems", setCount(func(schema *apiextensionsv1.JSONSchemaProps) **int64 { return &schema.MinItems })},
	{"UniqueItems", setFlag(func(schema *apiextensionsv1.JSONSchemaProps) *bool { return &schema.UniqueItems })},
	{"ExclusiveMaximum", setFlag(func(schema *apiextensionsv1.JSONSchemaProps) *bool { return &schema.ExclusiveMaximum })},
	{"ExclusiveMinimum", setFlag(func(schema *apiextensionsv1.JSONSchemaProps) *bool { return &schema.ExclusiveMinimum })},
	{"Enum", setEnum},
	{"Default", setDefault},
	{"XValidations", setRules},
}

// narrow applies the tags of a field to the schema of its type.
func narrow(schema *apiextensionsv1.JSONSchemaProps, tags reflect.StructTag) error {
	for _, narrowing := range narrowings {
		if value, ok := tags.Lookup(narrowing.tag); ok {
			if err := narrowing.set(schema, value); err != nil {
				return fmt.Errorf("tag %s: %w", narrowing.tag, err)
			}
		}
	}
	return nil
}

func setText(member func(*apiextensionsv1.JSONSchemaProps) *string) func(*apiextensionsv1.JSONSchemaProps, string) error {
	return func(schema *apiextensionsv1.JSONSchemaProps, value string) error {
		// An empty value counts as none: it does not remove what the type says itself.
		*member(schema) = cmp.Or(value, *member(schema))
		return nil
	}
}

func setNumber(member func(*apiextensionsv1.JSONSchemaProps) **float64) func(*apiextensionsv1.JSONSchemaProps, string) error {
	return func(schema *apiextensionsv1.JSONSchemaProps, value string) error {
		number, err := strconv.ParseFloat(value, 64)
		*member(schema) = &number
		return err
	}
}

func setCount(member func(*apiextensionsv1.JSONSchemaProps) **int64) func(*apiextensionsv1.JSONSchemaProps, string) error {
	return func(schema *apiextensionsv1.JSONSchemaProps, value string) error {
		count, err := strconv.ParseInt(value, 0, 64)
		*member(schema) = &count
		return err
	}
}

func setFlag(member func(*apiextensionsv1.JSONSchemaProps) *bool) func(*apiextensionsv1.JSONSchemaProps, string) error {
	return func(schema *apiextensionsv1.JSONSchemaProps, value string) (err error) {
		*member(schema), err = strconv.ParseBool(value)
		return err
	}
}

// setEnum takes values with commas between them: text as it is, anything else as JSON.
func setEnum(schema *apiextensionsv1.JSONSchemaProps, value string) error {
	schema.Enum = nil
	for element := range strings.SplitSeq(value, ",") {
		raw := []byte(element)
		if schema.Type == "string" {
			var err error
			if raw, err = json.Marshal(element); err != nil {
				return err
			}
		} else if !json.Valid(raw) {
			return fmt.Errorf("%q is not JSON", element)
		}
		schema.Enum = append(schema.Enum, apiextensionsv1.JSON{Raw: raw})
	}
	return nil
}

func setDefault(schema *apiextensionsv1.JSONSchemaProps, value string) error {
	if !json.Valid([]byte(value)) {
		return fmt.Errorf("%q is not JSON; text has quotes", value)
	}
	schema.Default = &apiextensionsv1.JSON{Raw: []byte(value)}
	return nil
}

// setRules takes a list of rules as JSON, in the form that they have in a schema.
func setRules(schema *apiextensionsv1.JSONSchemaProps, value string) error {
	var rules apiextensionsv1.ValidationRules
	err := json.Unmarshal([]byte(value), &rules)
	schema.XValidations = rules
	return err
}
