package openapi

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// field is one member of the JSON object that a struct encodes as.
type field struct {
	name     string
	goName   string
	typ      reflect.Type
	tag      reflect.StructTag
	required bool
	quoted   bool // ",string": a number or boolean that travels as text

	depth  int
	tagged bool
}

// fieldsOf returns the members in the order in which Go declares them. As in encoding/json, the
// members of an embedded struct are members of the outer one; where two have the same name the
// shallower wins, then the one with a tag, and otherwise neither exists.
func fieldsOf(typ reflect.Type) []field {
	candidates := collect(typ, 0, true, nil)
	var fields []field
	for index, candidate := range candidates {
		isDominant := true
		for other, rival := range candidates {
			if other != index && rival.name == candidate.name && !candidate.dominates(rival) {
				isDominant = false
			}
		}
		if isDominant {
			fields = append(fields, candidate)
		}
	}
	return fields
}

func (f field) dominates(rival field) bool {
	if f.depth != rival.depth {
		return f.depth < rival.depth
	}
	return f.tagged && !rival.tagged
}

// collect lists all members, hidden ones included. A member reached through an embedded pointer is
// absent when that is nil, so it is never required. outer holds the structs around this one: a struct
// that embeds itself by pointer has no members of its own beyond the first level.
func collect(typ reflect.Type, depth int, mayRequire bool, outer []reflect.Type) []field {
	if slices.Contains(outer, typ) {
		return nil
	}
	outer = append(slices.Clone(outer), typ)

	var fields []field
	for index := range typ.NumField() {
		member := typ.Field(index)
		tag := member.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, rest, _ := strings.Cut(tag, ",")
		options := strings.Split(rest, ",")

		target, isPointer := member.Type, false
		if target.Kind() == reflect.Pointer {
			target, isPointer = target.Elem(), true
		}
		if member.Anonymous && name == "" && target.Kind() == reflect.Struct {
			fields = append(fields, collect(target, depth+1, mayRequire && !isPointer, outer)...)
			continue
		}
		if !member.IsExported() {
			continue
		}
		fields = append(fields, field{
			name:   cmp.Or(name, member.Name),
			goName: member.Name,
			typ:    member.Type,
			tag:    member.Tag,
			required: mayRequire && !isPointer &&
				!slices.Contains(options, "omitempty") && !slices.Contains(options, "omitzero"),
			quoted: slices.Contains(options, "string") && isScalar(target.Kind()),
			depth:  depth,
			tagged: name != "",
		})
	}
	return fields
}

func isScalar(kind reflect.Kind) bool {
	return kind >= reflect.Bool && kind <= reflect.Float64 || kind == reflect.String
}
