package helm

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"
)

// ReadValues reads a document of values, YAML or JSON, into a type with JSON methods, such as one that
// `hangar flight from-chart` generates. No document means no values.
func ReadValues(input io.Reader, into any) error {
	document, err := io.ReadAll(input)
	if err != nil {
		return fmt.Errorf("read the values: %w", err)
	}
	object, err := yaml.YAMLToJSON(document)
	if err == nil {
		err = json.Unmarshal(object, into)
	}
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	return nil
}

// UnmarshalValues reads an object into a struct whose fields are pointers, maps, slices and interfaces,
// so that an absent value is nil. A member that the struct cannot hold exactly (one with another name,
// null, a text for a number) goes into rest: the chart decides whether it accepts it. A type's
// UnmarshalJSON calls this function.
func UnmarshalValues(document []byte, into any, rest *map[string]any) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil {
		return err
	}
	fields := fieldsOf(reflect.ValueOf(into).Elem())
	for name, member := range members {
		if field, ok := fields[name]; ok && fill(field, member) {
			delete(*rest, name)
			continue
		}
		var value any
		if err := json.Unmarshal(member, &value); err != nil {
			return err
		}
		if *rest == nil {
			*rest = map[string]any{}
		}
		(*rest)[name] = value
	}
	return nil
}

// MarshalValues writes such a struct: its fields that are not nil, and the members of rest that no
// field holds. A type's MarshalJSON calls it.
func MarshalValues(from any, rest map[string]any) ([]byte, error) {
	members := map[string]any{}
	for name, value := range rest {
		members[name] = value
	}
	for name, field := range fieldsOf(reflect.ValueOf(from)) {
		if !field.IsZero() {
			members[name] = field.Interface()
		}
	}
	return json.Marshal(members)
}

// fieldsOf returns the fields of a struct by the names in their tags.
func fieldsOf(object reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for index := range object.NumField() {
		if name, _, _ := strings.Cut(object.Type().Field(index).Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = object.Field(index)
		}
	}
	return fields
}

// fill reads a member into a field, and reports whether the field holds it exactly. If not, the field
// is nil.
func fill(field reflect.Value, member json.RawMessage) bool {
	read := reflect.New(field.Type())
	if json.Unmarshal(member, read.Interface()) == nil {
		if written, err := json.Marshal(read.Interface()); err == nil && !read.Elem().IsZero() && sameJSON(member, written) {
			field.Set(read.Elem())
			return true
		}
	}
	field.SetZero()
	return false
}

func sameJSON(left, right []byte) bool {
	var leftValue, rightValue any
	return json.Unmarshal(left, &leftValue) == nil && json.Unmarshal(right, &rightValue) == nil &&
		reflect.DeepEqual(leftValue, rightValue)
}
