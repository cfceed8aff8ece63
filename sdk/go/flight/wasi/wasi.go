// Package wasi exports malloc, which a host calls to hand an answer to a flight. A flight that looks at the
// cluster has it already; one with other imports from the host imports this package.
package wasi

import "hangar.dev/sdk/go/flight/wasi/internal/guest"

// Free lets go of memory that malloc made for the host and nobody has received.
func Free(buffer guest.Buffer) { guest.Free(buffer) }
