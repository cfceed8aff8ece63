// Package flight is a flight's view of its host: the release it is evaluated for, and the form of
// its answer.
//
// A flight is a program. It reads a custom resource from standard input and writes the resources that
// should exist to standard output; for that it needs this package only for the types that make a wrong
// answer fail to compile.
package flight

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path"
	"reflect"

	// Writes the same as encoding/json, but lazily: encoding/json prepares for all types that a
	// field could lead to before it writes a first byte, which is half of the cost of a flight with
	// a Deployment.
	json "github.com/go-json-experiment/json/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is one Kubernetes object that a flight emits. Every type of k8s.io/api is one, so is
// unstructured.Unstructured, and so is any struct that embeds metav1.TypeMeta and metav1.ObjectMeta.
type Resource interface {
	metav1.Object
	GroupVersionKind() schema.GroupVersionKind
}

// Resources is a flight's usual answer: all objects are applied at once, Namespaces and
// CustomResourceDefinitions ahead of the others.
//
// An empty answer is valid: it asks the host to remove everything that the release owns. A nil
// Resources is therefore written as [], never as null. A nil resource is left out, so that a flight can
// list resources that it makes in some cases only.
type Resources []Resource

// MarshalJSON writes the resources as a JSON array.
func (resources Resources) MarshalJSON() ([]byte, error) {
	written := make([]Resource, 0, len(resources))
	for _, resource := range resources {
		if !isNil(resource) {
			written = append(written, resource)
		}
	}
	return json.Marshal(written)
}

func isNil(resource Resource) bool {
	value := reflect.ValueOf(resource)
	return resource == nil || value.Kind() == reflect.Pointer && value.IsNil()
}

// Stages is an ordered answer: a stage is applied once everything in the one before it is ready.
type Stages []Resources

// MarshalJSON writes the stages as a JSON array of arrays.
func (stages Stages) MarshalJSON() ([]byte, error) {
	if stages == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Resources(stages))
}

// Write encodes an answer as the one JSON document that a flight may write to its output.
func Write[T Resources | Stages](output io.Writer, answer T) error {
	return json.NewEncoder(output).Encode(answer)
}

// JSONEncodeWithError writes a value, and returns the error that it was given, joined with that of
// writing. A flight that fails can report that in the status of its instance with one statement:
//
//	return flight.JSONEncodeWithError(os.Stdout, instance, err)
func JSONEncodeWithError(output io.Writer, value any, err error) error {
	return errors.Join(err, json.NewEncoder(output).Encode(value))
}

// Annotations of an instance that choose another flight, or another mode, than its Airway has.
const (
	AnnotationOverrideFlight = "overrides.yoke.cd/flight"
	AnnotationOverrideMode   = "overrides.yoke.cd/mode"
)

// Release returns the name of the release under evaluation, without a path in front of it. For an
// instance of an Airway that is group.Kind.namespace.name, or group.Kind.name when the kind is cluster
// scoped: a name for labels and messages, but not a valid name for every kind of object.
func Release() string {
	if _, release := path.Split(os.Getenv("YOKE_RELEASE")); release != "" {
		return release
	}
	_, release := path.Split(os.Args[0])
	return release
}

// Namespace returns the namespace of the release: where the host puts a namespaced resource that has no
// namespace of its own.
func Namespace() string {
	return cmp.Or(os.Getenv("YOKE_NAMESPACE"), os.Getenv("NAMESPACE"))
}

// YokeVersion returns the release of yoke whose contract the host keeps, such as "v0.20.12", "(devel)"
// under a yoke that was built without a version, and the empty string where there is no host.
func YokeVersion() string {
	return os.Getenv("YOKE_VERSION")
}

// HangarVersion returns the version of hangar, such as "0.1.0", and the empty string under other hosts.
func HangarVersion() string {
	return os.Getenv("HANGAR_VERSION")
}
