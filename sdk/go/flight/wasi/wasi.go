// Package wasi exports malloc, which a host calls to pass an answer to a flight. A flight that looks at the
// cluster has it already; one with other imports from the host imports this package.
package wasi

import "hangar.dev/sdk/go/flight/wasi/internal/guest"

// Free drops memory that malloc allocated for the host and that was not received.
func Free(buffer guest.Buffer) { guest.Free(buffer) }
