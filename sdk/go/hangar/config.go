//go:build !wasip1

package hangar

import (
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// IsGuest says whether this program runs in hangar.
const IsGuest = false

// GetConfigOrDie is controller-runtime's: the kubeconfig of a flag, the environment or the cluster. In hangar
// it returns a configuration whose requests the host sends, as the operator's ServiceAccount.
func GetConfigOrDie() *rest.Config { return ctrl.GetConfigOrDie() }
