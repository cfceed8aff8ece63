package openapi_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"hangar.dev/sdk/go/openapi"
)

type color string

func (color) OpenAPISchema() *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"red"`)}}}
}

type textual struct{ _ int }

func (textual) MarshalText() ([]byte, error) { return nil, nil }

type opaque struct{ _ int }

func (*opaque) MarshalJSON() ([]byte, error) { return nil, nil }

type tree struct {
	Name     string `json:"name"`
	Children []tree `json:"children,omitempty"`
}

type base struct {
	Kept   string `json:"kept"`
	Hidden int    `json:"hidden"`
}

type otherBase struct {
	Clash string
}

type thirdBase struct {
	Clash bool
}

func TestSchemaFrom(t *testing.T) {
	const anything = `{"x-kubernetes-preserve-unknown-fields":true}`
	tests := map[string]struct {
		typ  reflect.Type
		want string
	}{
		"bool":             {reflect.TypeFor[bool](), `{"type":"boolean"}`},
		"string":           {reflect.TypeFor[string](), `{"type":"string"}`},
		"int":              {reflect.TypeFor[int](), `{"type":"integer","format":"int64"}`},
		"int32":            {reflect.TypeFor[int32](), `{"type":"integer","format":"int32"}`},
		"uint64":           {reflect.TypeFor[uint64](), `{"type":"integer","minimum":0}`},
		"float":            {reflect.TypeFor[float32](), `{"type":"number"}`},
		"pointer":          {reflect.TypeFor[**bool](), `{"type":"boolean"}`},
		"bytes":            {reflect.TypeFor[[]byte](), `{"type":"string","format":"byte"}`},
		"slice":            {reflect.TypeFor[[]bool](), `{"type":"array","items":{"type":"boolean"}}`},
		"array":            {reflect.TypeFor[[2]bool](), `{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2}`},
		"array of bytes":   {reflect.TypeFor[[2]byte](), `{"type":"array","items":{"type":"integer","minimum":0},"minItems":2,"maxItems":2}`},
		"map":              {reflect.TypeFor[map[string]int32](), `{"type":"object","additionalProperties":{"type":"integer","format":"int32"}}`},
		"map by number":    {reflect.TypeFor[map[int]bool](), `{"type":"object","additionalProperties":{"type":"boolean"}}`},
		"interface":        {reflect.TypeFor[any](), anything},
		"raw JSON":         {reflect.TypeFor[json.RawMessage](), anything},
		"own JSON":         {reflect.TypeFor[opaque](), anything},
		"own text":         {reflect.TypeFor[textual](), `{"type":"string"}`},
		"own schema":       {reflect.TypeFor[*color](), `{"type":"string","enum":["red"]}`},
		"time":             {reflect.TypeFor[time.Time](), `{"type":"string","format":"date-time"}`},
		"metav1.Time":      {reflect.TypeFor[metav1.Time](), `{"type":"string","format":"date-time"}`},
		"metav1.Duration":  {reflect.TypeFor[metav1.Duration](), `{"type":"string"}`},
		"int or string":    {reflect.TypeFor[intstr.IntOrString](), `{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`},
		"raw extension":    {reflect.TypeFor[runtime.RawExtension](), `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`},
		"unstructured":     {reflect.TypeFor[unstructured.Unstructured](), `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`},
		"object metadata":  {reflect.TypeFor[metav1.ObjectMeta](), `{"type":"object"}`},
		"nothing in it":    {reflect.TypeFor[struct{}](), `{"type":"object"}`},
		"a type in itself": {reflect.TypeFor[tree](), `{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"children":{"type":"array","items":` + anything + `}}}`},
		"names and options": {reflect.TypeFor[struct {
			Plain    string
			Named    string  `json:"named" description:"what it is for"`
			Empty    string  `json:"empty,omitempty"`
			Zero     string  `json:",omitzero"`
			Pointer  *string `json:"pointer"`
			Quoted   int     `json:"quoted,string"`
			Dash     string  `json:"-,"`
			Skipped  string  `json:"-"`
			unlisted string
		}](), `{"type":"object","required":["-","Plain","named","quoted"],"properties":{
			"Plain":{"type":"string"}, "named":{"type":"string","description":"what it is for"}, "empty":{"type":"string"},
			"Zero":{"type":"string"}, "pointer":{"type":"string"}, "quoted":{"type":"string"}, "-":{"type":"string"}}}`},
		"embedded struct": {reflect.TypeFor[struct {
			base
			Hidden string `json:"hidden"`
		}](), `{"type":"object","required":["hidden","kept"],"properties":{"kept":{"type":"string"},"hidden":{"type":"string"}}}`},
		"embedded pointer": {reflect.TypeFor[struct{ *base }](), `{"type":"object","properties":{"kept":{"type":"string"},"hidden":{"type":"integer","format":"int64"}}}`},
		"embedded inline": {reflect.TypeFor[struct {
			base `json:",inline"`
		}](), `{"type":"object","required":["hidden","kept"],"properties":{"kept":{"type":"string"},"hidden":{"type":"integer","format":"int64"}}}`},
		"embedded under a name": {reflect.TypeFor[struct {
			Base base `json:"base"`
		}](), `{"type":"object","required":["base"],"properties":{"base":{"type":"object","required":["hidden","kept"],
			"properties":{"kept":{"type":"string"},"hidden":{"type":"integer","format":"int64"}}}}}`},
		"equals cancel out": {reflect.TypeFor[struct {
			otherBase
			thirdBase
		}](), `{"type":"object"}`},
		"custom resource": {reflect.TypeFor[struct {
			metav1.TypeMeta
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct{} `json:"spec,omitzero"`
			Status            struct {
				Msg  string `json:"msg"`
				Step base   `json:"step"`
			} `json:"status"`
		}](), `{"type":"object","required":["metadata"],"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},"spec":{"type":"object"},
			"status":{"type":"object","properties":{"msg":{"type":"string"},"step":{"type":"object","required":["hidden","kept"],
			"properties":{"kept":{"type":"string"},"hidden":{"type":"integer","format":"int64"}}}}}}}`},
		"a status without metadata": {reflect.TypeFor[struct {
			Status string `json:"status"`
		}](), `{"type":"object","required":["status"],"properties":{"status":{"type":"string"}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expectSchema(t, openapi.SchemaFrom(test.typ), test.want)
		})
	}
}

func TestQuantitiesAreNumbersOrTextsOfOneForm(t *testing.T) {
	schema := openapi.SchemaFor[resource.Quantity]()

	if !schema.XIntOrString || len(schema.AnyOf) != 2 || schema.Pattern == "" {
		t.Errorf("schema %+v", schema)
	}
}

func TestTypesOfTheAPIHaveASchema(t *testing.T) {
	schema := openapi.SchemaFor[corev1.PodSpec]()

	port := schema.Properties["containers"].Items.Schema.Properties["ports"].Items.Schema.Properties["containerPort"]
	if port.Type != "integer" || port.Format != "int32" {
		t.Errorf("containerPort is %+v", port)
	}
}

func TestTypesWithoutAJSONFormPanic(t *testing.T) {
	tests := map[string]reflect.Type{
		"channel":          reflect.TypeFor[struct{ Events chan int }](),
		"function":         reflect.TypeFor[func()](),
		"map by structure": reflect.TypeFor[map[struct{}]string](),
	}
	for name, typ := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if reason, _ := recover().(string); !strings.HasPrefix(reason, "openapi: ") {
					t.Errorf("recovered %q", reason)
				}
			}()
			openapi.SchemaFrom(typ)
		})
	}
}

func expectSchema(t *testing.T, schema *apiextensionsv1.JSONSchemaProps, want string) {
	t.Helper()
	got, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	if !sameJSON(t, string(got), want) {
		t.Errorf("schema %s\n  want %s", got, want)
	}
}

func sameJSON(t *testing.T, left, right string) bool {
	t.Helper()
	var leftDocument, rightDocument any
	if err := json.Unmarshal([]byte(left), &leftDocument); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(right), &rightDocument); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(leftDocument, rightDocument)
}
