// Package k8stest gives a flight under go test a cluster, in place of its host's.
package k8stest

import (
	"encoding/json"
	"fmt"
	"testing"

	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/flight/wasi/internal/host"
	"hangar.dev/sdk/go/flight/wasi/k8s"
)

// Cluster is what a flight's lookups find. An object that is in neither list does not exist.
type Cluster struct {
	// Objects exist and may be seen. They need their apiVersion and kind.
	Objects []flight.Resource
	// Refused are lookups that end in a state, such as k8s.StateForbidden.
	Refused map[k8s.ResourceIdentifier]k8s.State
	// Mappings are the kinds that the cluster serves, for k8s.GetRestMapping.
	Mappings []k8s.RestMapping
}

// Use answers all lookups of the program from the cluster, until the test ends. Tests that use it must
// not run in parallel.
func Use(t testing.TB, cluster Cluster) {
	t.Helper()
	previous := host.Current
	host.Current = cluster
	t.Cleanup(func() { host.Current = previous })
}

// Lookup answers as a host does; the flight reaches it through k8s.Lookup.
func (cluster Cluster) Lookup(name, namespace, kind, apiVersion string) (uint32, []byte, error) {
	asked := k8s.ResourceIdentifier{Name: name, Namespace: namespace, Kind: kind, ApiVersion: apiVersion}
	if state, ok := cluster.Refused[asked]; ok {
		return uint32(state), fmt.Appendf(nil, "%s: %s", asked, state), nil
	}
	for _, object := range cluster.Objects {
		objectVersion, objectKind := object.GroupVersionKind().ToAPIVersionAndKind()
		if object.GetName() != name || objectKind != kind || objectVersion != apiVersion {
			continue
		}
		// An object without a namespace is cluster scoped, and found whatever the namespace.
		if own := object.GetNamespace(); own != "" && own != namespace && !(namespace == "" && own == "default") {
			continue
		}
		document, err := json.Marshal(object)
		return uint32(k8s.StateOK), document, err
	}
	return uint32(k8s.StateNotFound), fmt.Appendf(nil, "%s not found", asked), nil
}

// RestMapping answers as a host does; the flight reaches it through k8s.GetRestMapping.
func (cluster Cluster) RestMapping(groupOrAPIVersion, kind string) (uint32, []byte, error) {
	for _, mapping := range cluster.Mappings {
		if mapping.Kind == kind && (groupOrAPIVersion == mapping.Group || groupOrAPIVersion == mapping.Group+"/"+mapping.Version) {
			document, err := json.Marshal(mapping)
			return uint32(k8s.StateOK), document, err
		}
	}
	return uint32(k8s.StateError), fmt.Appendf(nil, "no kind %q in %q", kind, groupOrAPIVersion), nil
}
