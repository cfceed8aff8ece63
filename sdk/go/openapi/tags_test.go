package openapi_test

import (
	"reflect"
	"strings"
	"testing"

	"hangar.dev/sdk/go/openapi"
)

func TestTagsNarrowAField(t *testing.T) {
	tests := map[string]struct {
		typ  reflect.Type
		want string
	}{
		"text": {reflect.TypeFor[struct {
			A string `json:"a,omitzero" Description:"words" Format:"date" Pattern:"^a" MinLength:"1" MaxLength:"0x10"`
		}](), `{"type":"string","description":"words","format":"date","pattern":"^a","minLength":1,"maxLength":16}`},
		"numbers": {reflect.TypeFor[struct {
			A float64 `json:"a,omitzero" Minimum:"-1.5" Maximum:"2" MultipleOf:"0.5" ExclusiveMinimum:"true" ExclusiveMaximum:"1"`
		}](), `{"type":"number","minimum":-1.5,"maximum":2,"multipleOf":0.5,"exclusiveMinimum":true,"exclusiveMaximum":true}`},
		"lists": {reflect.TypeFor[struct {
			A []bool `json:"a,omitzero" MinItems:"1" MaxItems:"2" UniqueItems:"true"`
		}](), `{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2,"uniqueItems":true}`},
		"enum of text": {reflect.TypeFor[struct {
			A string `json:"a,omitzero" Enum:"yes,no,1"`
		}](), `{"type":"string","enum":["yes","no","1"]}`},
		"enum of numbers": {reflect.TypeFor[struct {
			A uint8 `json:"a,omitzero" Enum:"1,2"`
		}](), `{"type":"integer","minimum":0,"enum":[1,2]}`},
		"default": {reflect.TypeFor[struct {
			A *string `json:"a" Default:"\"b\""`
		}](), `{"type":"string","default":"b"}`},
		"rules": {reflect.TypeFor[struct {
			A map[string]bool `json:"a,omitzero" XValidations:"[{\"rule\":\"has(self.b)\",\"message\":\"b is missing\"}]"`
		}](), `{"type":"object","additionalProperties":{"type":"boolean"},"x-kubernetes-validations":[{"rule":"has(self.b)","message":"b is missing"}]}`},
		"over what the type says": {reflect.TypeFor[struct {
			A int32 `json:"a,omitzero" Format:"int64" description:""`
		}](), `{"type":"integer","format":"int64"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := openapi.SchemaFrom(test.typ).Properties["a"]
			expectSchema(t, &got, test.want)
		})
	}
}

func TestAWrongTagNamesItself(t *testing.T) {
	tests := map[string]struct {
		typ  reflect.Type
		want string
	}{
		"not a number": {reflect.TypeFor[struct {
			A int `json:"a" Maximum:"hello"`
		}](), `field A of struct { A int "json:\"a\" Maximum:\"hello\"" }: tag Maximum: `},
		"not a count": {reflect.TypeFor[struct {
			A string `MaxLength:"1.5"`
		}](), "tag MaxLength: "},
		"not a flag": {reflect.TypeFor[struct {
			A []int `UniqueItems:"maybe"`
		}](), "tag UniqueItems: "},
		"a default without quotes": {reflect.TypeFor[struct {
			A string `Default:"hello"`
		}](), `tag Default: "hello" is not JSON; text has quotes`},
		"an enum of no numbers": {reflect.TypeFor[struct {
			A int `Enum:"1,two"`
		}](), `tag Enum: "two" is not JSON`},
		"rules that are no list": {reflect.TypeFor[struct {
			A int `XValidations:"{}"`
		}](), "tag XValidations: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "openapi: field A of ") || !strings.Contains(text, test.want) {
					t.Errorf("panics with %q, want %q in it", text, test.want)
				}
			}()
			openapi.SchemaFrom(test.typ)
		})
	}
}
