// Package apis has the functions that types of custom resources need besides their fields.
package apis

import (
	"fmt"
	"reflect"
)

// DeepCopy copies a value and all that it refers to. It is what a type of custom resources needs for
// DeepCopyObject, and with it for the clients of Kubernetes, if nobody generates one:
//
//	func (app *App) DeepCopyObject() runtime.Object { return apis.DeepCopy(app) }
//
// A value that refers to itself never ends. Unexported fields are copied as they are. Channels and
// functions panic: they have no JSON form, so they cannot be part of a resource.
func DeepCopy[T any](in T) T {
	// Through a pointer, because a T that is an interface would lose its type in reflect.ValueOf. A
	// nil interface has no type, and is copied as it is.
	copied, _ := deepCopy(reflect.ValueOf(&in).Elem()).Interface().(T)
	return copied
}

func deepCopy(from reflect.Value) reflect.Value {
	switch from.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		if from.IsNil() {
			return from
		}
	}
	to := reflect.New(from.Type()).Elem()
	switch from.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(from.Type().Elem()))
		to.Elem().Set(deepCopy(from.Elem()))
	case reflect.Interface:
		to.Set(deepCopy(from.Elem()))
	case reflect.Map:
		to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		for entries := from.MapRange(); entries.Next(); {
			to.SetMapIndex(deepCopy(entries.Key()), deepCopy(entries.Value()))
		}
	case reflect.Slice:
		to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		copyElements(to, from)
	case reflect.Array:
		copyElements(to, from)
	case reflect.Struct:
		to.Set(from)
		for index := range from.NumField() {
			if from.Type().Field(index).IsExported() {
				to.Field(index).Set(deepCopy(from.Field(index)))
			}
		}
	case reflect.Chan, reflect.Func:
		panic(fmt.Sprintf("apis: %s cannot be copied", from.Type()))
	default:
		return from
	}
	return to
}

func copyElements(to, from reflect.Value) {
	for index := range from.Len() {
		to.Index(index).Set(deepCopy(from.Index(index)))
	}
}
