package validation

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hangar.dev/sdk/go/openapi"
)

type port struct {
	Number int    `json:"number" Minimum:"1" Maximum:"65535"`
	Name   string `json:"name,omitempty" MaxLength:"5" Pattern:"^[a-z]+$"`
}

type server struct {
	Name   string            `json:"name"`
	Mode   string            `json:"mode,omitempty" Enum:"read,write"`
	Ports  []port            `json:"ports,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Extra  any               `json:"extra,omitempty"`
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	schema := openapi.SchemaFor[server]()
	for _, one := range []struct{ value, want string }{
		{`{"name": "a"}`, ""},
		{`{"name": "a", "mode": "read", "ports": [{"number": 80, "name": "http"}], "labels": {"a": "b"}, "extra": {"any": ["thing"]}}`, ""},
		{`{"name": "a", "unknown": 1, "ports": [{"number": 80, "unknown": 1}]}`, ""},
		{`{}`, "name: Required value"},
		{`{"name": 7}`, `name: Invalid value: "number": name in body must be of type string: "number"`},
		{`{"name": "a", "mode": "fly"}`, `mode: Unsupported value: "fly": supported values: "read", "write"`},
		{`{"name": "a", "ports": [{"number": 0}]}`, "ports[0].number: Invalid value: 0: ports[0].number in body should be greater than or equal to 1"},
		{`{"name": "a", "ports": [{"number": 1, "name": "toolong"}]}`, "ports[0].name: Too long: may not be more than 5 bytes"},
		{`{"name": "a", "ports": [{"number": 1, "name": "A"}]}`, `ports[0].name: Invalid value: "A": ports[0].name in body should match '^[a-z]+$'`},
		{`{"name": "a", "labels": {"a": 1}}`, `labels.a: Invalid value: "number": labels.a in body must be of type string: "number"`},
		{`"text"`, `<nil>: Invalid value: "string":  in body must be of type object: "string"`},
		{`{"mode": "fly", "ports": 1}`, "errors:\n" +
			`  - mode: Unsupported value: "fly": supported values: "read", "write"` + "\n" +
			"  - name: Required value\n" +
			`  - ports: Invalid value: "number": ports in body must be of type array: "number"`},
	} {
		said := ""
		if err := Validate(schema, decoded(t, one.value)); err != nil {
			said = err.Error()
		}
		if said != one.want {
			t.Errorf("%s: %q, want %q", one.value, said, one.want)
		}
	}
}

func TestAStructIsItsJSON(t *testing.T) {
	schema := openapi.SchemaFor[server]()

	if err := Validate(schema, server{Name: "a", Ports: []port{{Number: 80}}}); err != nil {
		t.Error(err)
	}
	err := Validate(schema, server{Name: "a", Mode: "fly", Ports: []port{{Number: 80}}})
	if err == nil || !strings.Contains(err.Error(), "mode: Unsupported value") {
		t.Error(err)
	}
}

func TestAViolationIsAnErrorOfItsField(t *testing.T) {
	err := Validate(openapi.SchemaFor[server](), map[string]any{"mode": "fly"})

	var of *field.Error
	if !errors.As(err, &of) || of.Field != "mode" || of.Type != field.ErrorTypeNotSupported {
		t.Errorf("%v", err)
	}
}

func TestValidateStrictRefusesUnknownFields(t *testing.T) {
	schema := openapi.SchemaFor[server]()
	before := schema.DeepCopy()

	for _, one := range []struct{ value, want string }{
		{`{"name": "a", "ports": [{"number": 80}], "labels": {"any": "name"}, "extra": {"any": ["thing"]}}`, ""},
		{`{"name": "a", "unknown": 1}`, `<nil>: Invalid value: "unknown": .unknown in body is a forbidden property`},
		{`{"name": "a", "ports": [{"number": 80, "unknown": 1}]}`, `ports[0]: Invalid value: "unknown": ports[0].unknown in body is a forbidden property`},
	} {
		said := ""
		if err := ValidateStrict(schema, decoded(t, one.value)); err != nil {
			said = err.Error()
		}
		if said != one.want {
			t.Errorf("%s: %q, want %q", one.value, said, one.want)
		}
	}
	if !reflect.DeepEqual(schema, before) {
		t.Error("the schema itself has changed")
	}
}

func TestStrictClosesObjectsAtEveryDepth(t *testing.T) {
	open := apiextensionsv1.JSONSchemaProps{Type: "object"}
	schema := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"object":  open,
		"list":    {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &open}},
		"without": {Type: "array"},
		"map":     {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &open}},
		"anyMap":  {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}},
		"kept":    {Type: "object", XPreserveUnknownFields: new(true)},
	}}
	value := decoded(t, `{"top": 1, "object": {"a": 1}, "list": [{"a": 1}], "without": [{"a": 1}], "map": {"x": {"a": 1}}, "anyMap": {"a": 1}, "kept": {"a": 1}}`)

	if err := Validate(schema, value); err != nil {
		t.Error(err)
	}
	err := ValidateStrict(schema, value)
	want := strings.Join([]string{
		"errors:",
		`  - <nil>: Invalid value: "top": .top in body is a forbidden property`,
		`  - list[0]: Invalid value: "a": list[0].a in body is a forbidden property`,
		`  - map.x: Invalid value: "a": map.x.a in body is a forbidden property`,
		`  - object: Invalid value: "a": object.a in body is a forbidden property`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if Strict(nil) != nil {
		t.Error("nil has no schema")
	}
}
