package host

import (
	"runtime"

	"hangar.dev/sdk/go/flight/wasi/internal/guest"
)

//go:wasmimport host k8s_lookup
func k8sLookup(state *uint32, name, namespace, kind, apiVersion uint64) uint64

//go:wasmimport host k8s_rest_mapping
func k8sRestMapping(state *uint32, groupOrAPIVersion, kind uint64) uint64

type platform struct{}

func (platform) Lookup(name, namespace, kind, apiVersion string) (uint32, []byte, error) {
	arguments, err := guest.MakeArguments(name, namespace, kind, apiVersion)
	if err != nil {
		return 0, nil, err
	}
	state := new(uint32)
	buffer := k8sLookup(state, arguments.At(0), arguments.At(1), arguments.At(2), arguments.At(3))
	runtime.KeepAlive(arguments)
	answer, err := guest.Receive(buffer)
	return *state, answer, err
}

func (platform) RestMapping(groupOrAPIVersion, kind string) (uint32, []byte, error) {
	arguments, err := guest.MakeArguments(groupOrAPIVersion, kind)
	if err != nil {
		return 0, nil, err
	}
	state := new(uint32)
	buffer := k8sRestMapping(state, arguments.At(0), arguments.At(1))
	runtime.KeepAlive(arguments)
	answer, err := guest.Receive(buffer)
	return *state, answer, err
}
