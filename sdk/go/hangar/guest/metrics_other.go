//go:build !wasip1

package guest

import "net/http"

// ServeMetrics gives the host the program's metrics, as the handler writes them, when it asks. Outside of hangar
// it does nothing.
func ServeMetrics(http.Handler) {}
