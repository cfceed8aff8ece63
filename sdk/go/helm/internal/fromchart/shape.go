package fromchart

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
)

// shape is the known part of values: their type, as far as a schema or an example shows it.
type shape struct {
	kind        kind
	description string
	fields      map[string]*shape // of an object; none: its members are not known
	items       *shape            // of a list; nil: not known
}

type kind int

const (
	anything kind = iota
	boolean
	integer
	number
	text
	list
	object
)

// shapeDepthMax bounds how deep types are followed. A schema may refer to itself; values below this depth
// are still accepted, as any.
const shapeDepthMax = 12

// shapeOf returns a chart's description of its values: its schema, the other values of its values.yaml,
// and the same of its subcharts under the names that they have here.
func shapeOf(loaded *chart.Chart, schema map[string]any) *shape {
	result := merge(fromSchema(schema, schema, 0), fromValues(loaded.Values, 0))
	if result.kind != object || result.fields == nil {
		result = &shape{kind: object, description: result.description, fields: map[string]*shape{}}
	}
	if _, ok := result.fields["global"]; !ok {
		result.fields["global"] = &shape{kind: object, description: "Values that all subcharts see."}
	}
	return result
}

// addDependency puts the values of a subchart where the chart expects them.
func (parent *shape) addDependency(names []string, values *shape) {
	delete(values.fields, "global")
	if len(values.fields) == 0 {
		return
	}
	for _, name := range names {
		own := parent.fields[name]
		if own == nil {
			own = &shape{}
		}
		parent.fields[name] = merge(own, values)
	}
}

// namesOf returns the names under which a chart has values for a subchart: its aliases, or else its name.
func namesOf(parent, dependency *chart.Chart) []string {
	var names []string
	for _, declared := range parent.Metadata.Dependencies {
		if declared != nil && declared.Name == dependency.Name() {
			names = append(names, cmp.Or(declared.Alias, declared.Name))
		}
	}
	if names == nil {
		names = []string{dependency.Name()}
	}
	return names
}

// merge prefers the first where they disagree, and adds what only the second has.
func merge(first, second *shape) *shape {
	if first.kind == anything {
		return &shape{kind: second.kind, description: cmp.Or(first.description, second.description), fields: second.fields, items: second.items}
	}
	if second.kind != first.kind {
		return first
	}
	merged := &shape{kind: first.kind, description: cmp.Or(first.description, second.description), items: cmp.Or(first.items, second.items)}
	if first.fields != nil || second.fields != nil {
		merged.fields = map[string]*shape{}
	}
	for name, field := range second.fields {
		merged.fields[name] = field
	}
	for name, field := range first.fields {
		if other, ok := merged.fields[name]; ok {
			field = merge(field, other)
		}
		merged.fields[name] = field
	}
	return merged
}

// fromValues derives a shape from a document of values as an example.
func fromValues(value any, depth int) *shape {
	if depth > shapeDepthMax {
		return &shape{}
	}
	switch value := value.(type) {
	case bool:
		return &shape{kind: boolean}
	case float64:
		if value == math.Trunc(value) {
			return &shape{kind: integer}
		}
		return &shape{kind: number}
	case string:
		return &shape{kind: text}
	case []any:
		return &shape{kind: list, items: common(value)}
	case map[string]any:
		result := &shape{kind: object}
		for name, member := range value {
			if result.fields == nil {
				result.fields = map[string]*shape{}
			}
			result.fields[name] = fromValues(member, depth+1)
		}
		return result
	}
	return &shape{}
}

// common returns the shape that all elements of a list have. Objects are not followed: those of an
// example rarely have all the possible fields.
func common(elements []any) *shape {
	var result *shape
	for _, element := range elements {
		own := &shape{kind: fromValues(element, shapeDepthMax).kind}
		if result != nil && result.kind != own.kind {
			return nil
		}
		result = own
	}
	return result
}

// fromSchema reads a JSON schema. A part that it does not understand becomes any.
func fromSchema(document any, root map[string]any, depth int) *shape {
	schema, ok := document.(map[string]any)
	if !ok || depth > shapeDepthMax {
		return &shape{}
	}
	result := &shape{}
	result.description, _ = schema["description"].(string)
	if reference, ok := schema["$ref"].(string); ok {
		return merge(result, fromSchema(resolve(root, reference), root, depth+1))
	}
	properties, _ := schema["properties"].(map[string]any)
	result.kind = kindOf(schema["type"], properties != nil)
	switch result.kind {
	case object:
		if properties != nil {
			result.fields = map[string]*shape{}
		}
		for name, property := range properties {
			result.fields[name] = fromSchema(property, root, depth+1)
		}
	case list:
		if items, ok := schema["items"].(map[string]any); ok {
			result.items = fromSchema(items, root, depth+1)
		}
	}
	parts, _ := schema["allOf"].([]any)
	for _, part := range parts {
		result = merge(result, fromSchema(part, root, depth+1))
	}
	return result
}

// kindOf reads "type", which may be a list: with null it is the other one, because every field
// is optional.
func kindOf(value any, hasProperties bool) kind {
	kinds := map[string]kind{"boolean": boolean, "integer": integer, "number": number, "string": text, "array": list, "object": object}
	switch value := value.(type) {
	case string:
		return kinds[value]
	case []any:
		names := slices.DeleteFunc(slices.Clone(value), func(name any) bool { return name == "null" })
		if len(names) == 1 {
			name, _ := names[0].(string)
			return kinds[name]
		}
		return anything
	}
	if hasProperties {
		return object
	}
	return anything
}

// resolve follows a reference within the document: #/definitions/name.
func resolve(root map[string]any, reference string) any {
	pointer, ok := strings.CutPrefix(reference, "#")
	if !ok {
		return nil
	}
	var value any = root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if part == "" {
			continue
		}
		members, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = members[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return value
}
