// Package host is the one place where a flight meets its host: the two functions that it imports, or
// their replacement where there is no host.
package host

// Imports are the functions of the module "host". Each returns the state that the host set and the
// bytes it placed: a document if the state is zero, else a message. The error is for an answer that
// breaks the contract.
type Imports interface {
	Lookup(name, namespace, kind, apiVersion string) (state uint32, answer []byte, err error)
	RestMapping(groupOrAPIVersion, kind string) (state uint32, answer []byte, err error)
}

// Current is the host that the flight asks. Only tests replace it.
var Current Imports = platform{}
