// Package cluster lets a flight look at the cluster through its host. It needs no types of Kubernetes: a
// flight that decodes into structs or maps of its own stays small. A flight with those types uses the
// package k8s, which includes everything here.
//
// A flight holds no credentials and opens no connections: it names an object, and the host answers with
// the object or with a reason. The host remembers the lookup, even if the object does not exist, and in
// the modes dynamic and subscription a later change to it evaluates the flight again. So a flight never
// waits; it prints what should exist now, and returns.
//
// Compiled for anything but GOOS=wasip1 there is no host, and every call returns
// ErrorClusterAccessNotGranted. Under go test, the package k8stest gives a flight a cluster.
package cluster

import (
	"fmt"

	json "github.com/go-json-experiment/json/v1"

	"hangar.dev/sdk/go/flight/wasi/internal/host"
)

// ResourceIdentifier names one object. Namespace may be empty: a namespaced kind is then looked up in the
// namespace "default", whatever the namespace of the release is.
type ResourceIdentifier struct {
	Name       string
	Namespace  string
	Kind       string
	ApiVersion string
}

func (identifier ResourceIdentifier) String() string {
	name := identifier.Name
	if identifier.Namespace != "" {
		name = identifier.Namespace + "/" + name
	}
	return identifier.ApiVersion + " " + identifier.Kind + " " + name
}

// Lookup fetches an object as it is in the cluster now.
//
// Errors: ErrorNotFound, ErrorForbidden, ErrorUnauthenticated and ErrorClusterAccessNotGranted, for which
// IsErrNotFound and its sisters test; any other means that the host could not answer. On any error the
// result is nil.
func Lookup[T any](identifier ResourceIdentifier) (*T, error) {
	document, err := answer(host.Current.Lookup(identifier.Name, identifier.Namespace, identifier.Kind, identifier.ApiVersion))
	if err != nil {
		return nil, err
	}
	var object T
	if err := json.Unmarshal(document, &object); err != nil {
		return nil, fmt.Errorf("decode %s: %w", identifier, err)
	}
	return &object, nil
}

// RestMapping says how the API server serves a kind. Its field names are those of the document that
// the host sends.
type RestMapping struct {
	Group      string
	Version    string
	Kind       string
	Resource   string
	Namespaced bool
}

// GetRestMapping asks whether, and how, the cluster serves a kind. The first parameter is a group
// ("apps", for the version that the server prefers) or a group and version ("apps/v1"). For the core
// group it is "" or "/v1": the host takes a bare "v1" for the name of a group.
func GetRestMapping(groupOrAPIVersion, kind string) (*RestMapping, error) {
	document, err := answer(host.Current.RestMapping(groupOrAPIVersion, kind))
	if err != nil {
		return nil, err
	}
	var mapping RestMapping
	if err := json.Unmarshal(document, &mapping); err != nil {
		return nil, fmt.Errorf("decode mapping of %s %s: %w", groupOrAPIVersion, kind, err)
	}
	return &mapping, nil
}

// answer converts the results of an import into a document or an error.
func answer(state uint32, document []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if State(state) != StateOK {
		return nil, errorOf(State(state), string(document))
	}
	return document, nil
}
