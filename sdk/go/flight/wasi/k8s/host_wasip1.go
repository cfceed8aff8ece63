package k8s

import (
	"runtime"

	"hangar.dev/sdk/go/flight/wasi/internal/guest"
)

//go:wasmimport host k8s_lookup
func hostLookup(state *uint32, name, namespace, kind, apiVersion uint64) uint64

//go:wasmimport host k8s_rest_mapping
func hostRestMapping(state *uint32, groupOrAPIVersion, kind uint64) uint64

var host imports = wasmHost{}

type wasmHost struct{}

func (wasmHost) lookup(identifier ResourceIdentifier) (State, []byte, error) {
	arguments, err := guest.MakeArguments(identifier.Name, identifier.Namespace, identifier.Kind, identifier.ApiVersion)
	if err != nil {
		return 0, nil, err
	}
	state := new(uint32)
	buffer := hostLookup(state, arguments.At(0), arguments.At(1), arguments.At(2), arguments.At(3))
	runtime.KeepAlive(arguments)
	document, err := guest.Receive(buffer)
	return State(*state), document, err
}

func (wasmHost) restMapping(groupOrAPIVersion, kind string) (State, []byte, error) {
	arguments, err := guest.MakeArguments(groupOrAPIVersion, kind)
	if err != nil {
		return 0, nil, err
	}
	state := new(uint32)
	buffer := hostRestMapping(state, arguments.At(0), arguments.At(1))
	runtime.KeepAlive(arguments)
	document, err := guest.Receive(buffer)
	return State(*state), document, err
}
