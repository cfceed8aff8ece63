// Package k8s lets a flight look at the cluster through its host, with the types of Kubernetes. The package
// cluster documents the parts that it takes from there.
package k8s

import (
	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/flight/wasi/cluster"
)

// The question, and the host's answer.
type (
	ResourceIdentifier   = cluster.ResourceIdentifier
	RestMapping          = cluster.RestMapping
	State                = cluster.State
	ErrorNotFound        = cluster.ErrorNotFound
	ErrorUnauthenticated = cluster.ErrorUnauthenticated
	ErrorForbidden       = cluster.ErrorForbidden
)

// The possible results of a call.
const (
	StateOK                = cluster.StateOK
	StateFeatureNotGranted = cluster.StateFeatureNotGranted
	StateError             = cluster.StateError
	StateNotFound          = cluster.StateNotFound
	StateUnauthenticated   = cluster.StateUnauthenticated
	StateForbidden         = cluster.StateForbidden
)

// ErrorClusterAccessNotGranted is the error of every call of a flight without access to the cluster.
var ErrorClusterAccessNotGranted = cluster.ErrorClusterAccessNotGranted

// IsErrFeatureNotGranted reports whether the flight runs without access to the cluster.
func IsErrFeatureNotGranted(err error) bool { return cluster.IsErrFeatureNotGranted(err) }

// IsErrNotFound reports whether the object does not exist.
func IsErrNotFound(err error) bool { return cluster.IsErrNotFound(err) }

// IsErrUnauthenticated reports whether the cluster does not accept the host's credentials.
func IsErrUnauthenticated(err error) bool { return cluster.IsErrUnauthenticated(err) }

// IsErrForbidden reports whether the flight may not see the object.
func IsErrForbidden(err error) bool { return cluster.IsErrForbidden(err) }

// Lookup fetches an object as it is in the cluster now. On any error the result is nil.
func Lookup[T any](identifier ResourceIdentifier) (*T, error) {
	return cluster.Lookup[T](identifier)
}

// GetRestMapping asks whether, and how, the cluster serves a kind.
func GetRestMapping(groupOrAPIVersion, kind string) (*RestMapping, error) {
	return cluster.GetRestMapping(groupOrAPIVersion, kind)
}

// object is a pointer to a type of resources: what Lookup returns for the type.
type object[T any] interface {
	*T
	flight.Resource
}

// LookupResource fetches the live version of an object that the flight is about to emit. An object without
// a namespace is looked up in the namespace of the release, because the host will put it there.
//
// Errors: as Lookup. The argument is not changed.
func LookupResource[T any, P object[T]](resource P) (P, error) {
	apiVersion, kind := resource.GroupVersionKind().ToAPIVersionAndKind()
	namespace := resource.GetNamespace()
	if namespace == "" {
		namespace = flight.Namespace()
	}
	return Lookup[T](ResourceIdentifier{
		Name:       resource.GetName(),
		Namespace:  namespace,
		Kind:       kind,
		ApiVersion: apiVersion,
	})
}
