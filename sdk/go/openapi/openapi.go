// Package openapi derives the schema of a CustomResourceDefinition from the Go type that a flight
// decodes its instances into, so that the two cannot disagree.
//
// The schema is structural, as the API server demands of v1 CustomResourceDefinitions. It follows
// encoding/json: names, embedding, "-", omitempty, omitzero and string mean what they mean there.
//
//   - A field is required unless it is a pointer or its tag says omitempty or omitzero. The status of
//     a custom resource, and the fields of the status, are always optional.
//   - A tag description:"..." or Description:"..." is kept as the field's description. The tags Enum,
//     Default, Minimum, Maximum, Pattern, XValidations and the others of tags.go narrow the field.
//   - A type with a method OpenAPISchema() *apiextensionsv1.JSONSchemaProps describes itself, and so,
//     as Go promotes methods, does a struct that embeds it.
//   - A type whose JSON form cannot be known (an interface, json.RawMessage, a type with its own
//     MarshalJSON that is not one of Kubernetes' well-known ones, a type inside itself) accepts
//     any value.
package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Schemer is a type that knows its own schema better than reflection does.
type Schemer interface {
	OpenAPISchema() *apiextensionsv1.JSONSchemaProps
}

// SchemaFor returns the schema of T.
func SchemaFor[T any]() *apiextensionsv1.JSONSchemaProps {
	return SchemaFrom(reflect.TypeFor[T]())
}

// SchemaFrom returns the schema of a type.
//
// It panics if the type has no JSON form at all (a channel, a function, a map whose keys are not
// text), or if a tag of a field is wrong: that is a mistake in the program, and the program that calls
// this runs at build time.
func SchemaFrom(typ reflect.Type) *apiextensionsv1.JSONSchemaProps {
	schema := builder{}.schema(typ)
	freeStatus(&schema)
	return &schema
}

// freeStatus makes the status of a custom resource, and everything directly in it, optional. An
// instance has no status when it is created, and the host writes it first, with conditions only: a
// required field of the flight's status would refuse that write.
func freeStatus(schema *apiextensionsv1.JSONSchemaProps) {
	status, hasStatus := schema.Properties["status"]
	if _, hasMetadata := schema.Properties["metadata"]; !hasStatus || !hasMetadata {
		return
	}
	schema.Required = slices.DeleteFunc(schema.Required, func(name string) bool { return name == "status" })
	status.Required = nil
	schema.Properties["status"] = status
}

// builder walks a type. It holds the types between the root and the current one, because a structural
// schema is a tree and a type that contains itself has no finite one.
type builder struct {
	open []reflect.Type
}

func (b builder) schema(typ reflect.Type) apiextensionsv1.JSONSchemaProps {
	if typ.Kind() == reflect.Pointer {
		return b.schema(typ.Elem())
	}
	if schema, ok := describedByItself(typ); ok {
		return schema
	}
	if schema, ok := wellKnown(typ); ok {
		return schema
	}
	if encodes[json.Marshaler](typ) {
		return anything()
	}
	if encodes[encoding.TextMarshaler](typ) {
		return apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	if slices.Contains(b.open, typ) {
		return anything()
	}
	b.open = append(slices.Clone(b.open), typ)

	switch typ.Kind() {
	case reflect.Bool:
		return apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	case reflect.String:
		return apiextensionsv1.JSONSchemaProps{Type: "string"}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}
	case reflect.Int, reflect.Int64:
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		// An unsigned number has no format of its own: int64 would refuse the upper half of uint64.
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Minimum: new(float64)}
	case reflect.Float32, reflect.Float64:
		return apiextensionsv1.JSONSchemaProps{Type: "number"}
	case reflect.Interface:
		return anything()
	case reflect.Map:
		return b.mapSchema(typ)
	case reflect.Array, reflect.Slice:
		return b.listSchema(typ)
	case reflect.Struct:
		return b.structSchema(typ)
	}
	panic(fmt.Sprintf("openapi: %s has no JSON form", typ))
}

func (b builder) mapSchema(typ reflect.Type) apiextensionsv1.JSONSchemaProps {
	switch key := typ.Key(); {
	case encodes[encoding.TextMarshaler](key):
	case key.Kind() == reflect.String:
	case key.Kind() >= reflect.Int && key.Kind() <= reflect.Uintptr:
	default:
		panic(fmt.Sprintf("openapi: keys of %s have no JSON form", typ))
	}
	values := b.schema(typ.Elem())
	return apiextensionsv1.JSONSchemaProps{
		Type:                 "object",
		AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values},
	}
}

func (b builder) listSchema(typ reflect.Type) apiextensionsv1.JSONSchemaProps {
	if typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Uint8 {
		return apiextensionsv1.JSONSchemaProps{Type: "string", Format: "byte"}
	}
	items := b.schema(typ.Elem())
	schema := apiextensionsv1.JSONSchemaProps{
		Type:  "array",
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items},
	}
	if typ.Kind() == reflect.Array {
		length := int64(typ.Len())
		schema.MinItems, schema.MaxItems = &length, &length
	}
	return schema
}

func (b builder) structSchema(typ reflect.Type) apiextensionsv1.JSONSchemaProps {
	schema := apiextensionsv1.JSONSchemaProps{Type: "object"}
	for _, field := range fieldsOf(typ) {
		property := b.schema(field.typ)
		if field.quoted {
			property = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		if err := narrow(&property, field.tag); err != nil {
			panic(fmt.Sprintf("openapi: field %s of %s: %v", field.goName, typ, err))
		}
		if schema.Properties == nil {
			schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		schema.Properties[field.name] = property
		if field.required {
			schema.Required = append(schema.Required, field.name)
		}
	}
	slices.Sort(schema.Required)
	return schema
}

func describedByItself(typ reflect.Type) (apiextensionsv1.JSONSchemaProps, bool) {
	if typ.Kind() == reflect.Interface {
		return apiextensionsv1.JSONSchemaProps{}, false
	}
	if schemer, ok := reflect.New(typ).Interface().(Schemer); ok {
		return *schemer.OpenAPISchema(), true
	}
	return apiextensionsv1.JSONSchemaProps{}, false
}

// wellKnown returns the schemas of types whose Go fields do not show their JSON form.
func wellKnown(typ reflect.Type) (apiextensionsv1.JSONSchemaProps, bool) {
	switch typ {
	case reflect.TypeFor[metav1.ObjectMeta]():
		// The API server knows the schema of metadata, and permits no more than this.
		return apiextensionsv1.JSONSchemaProps{Type: "object"}, true
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[time.Time]():
		return apiextensionsv1.JSONSchemaProps{Type: "string", Format: "date-time"}, true
	case reflect.TypeFor[metav1.Duration]():
		return apiextensionsv1.JSONSchemaProps{Type: "string"}, true
	case reflect.TypeFor[intstr.IntOrString]():
		return apiextensionsv1.JSONSchemaProps{
			XIntOrString: true,
			AnyOf:        []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}},
		}, true
	case reflect.TypeFor[resource.Quantity]():
		return apiextensionsv1.JSONSchemaProps{
			XIntOrString: true,
			AnyOf:        []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}},
			Pattern:      `^[+-]?([0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`,
		}, true
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[unstructured.Unstructured]():
		preserve := true
		return apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}, true
	}
	return apiextensionsv1.JSONSchemaProps{}, false
}

func anything() apiextensionsv1.JSONSchemaProps {
	preserve := true
	return apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: &preserve}
}

// encodes reports whether encoding/json would encode values of the type by a method of the type.
func encodes[I any](typ reflect.Type) bool {
	encoder := reflect.TypeFor[I]()
	return typ.Kind() != reflect.Interface && reflect.PointerTo(typ).Implements(encoder)
}
