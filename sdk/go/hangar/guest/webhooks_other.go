//go:build !wasip1

package guest

import "net/http"

// ServeWebhooks gives the host the answers of the handler to reviews and conversions that the API server sends to
// this program, and ends when done is closed. Outside of hangar it only waits for that.
func ServeWebhooks(_ http.Handler, done <-chan struct{}) { <-done }
