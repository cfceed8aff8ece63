package hangar

import (
	"k8s.io/client-go/rest"

	"hangar.dev/sdk/go/hangar/guest"
	_ "hangar.dev/sdk/go/hangar/internal/quiet"
)

// IsGuest says whether this program runs in hangar.
const IsGuest = true

// GetConfigOrDie returns a configuration whose requests the host sends, as the operator's ServiceAccount.
// Elsewhere it is controller-runtime's.
func GetConfigOrDie() *rest.Config {
	return &rest.Config{
		Host:      "http://" + guest.APIServer,
		Transport: guest.Transport{},
		QPS:       -1, // The host limits requests, as the Operator's spec says.
		ContentConfig: rest.ContentConfig{
			// The host answers from its cache with JSON.
			ContentType:        "application/json",
			AcceptContentTypes: "application/json",
		},
	}
}
