package hangar

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Options returns options of a manager without features that would keep it awake or that the host provides, and logs
// its changes. Outside of hangar it returns them unchanged.
//
//   - Leader election: the host has it, for all of its operators. A Lease of one's own is a write every two seconds.
//   - The endpoints of metrics, health and pprof: nobody could reach them. The host serves the metrics instead.
//   - The priority queue: it wakes the program every half second. The plain queue takes its place.
//   - The resync of caches, every ten hours: it gives each object to the controllers again. A period of the program's
//     own (Cache.SyncPeriod) stays.
//   - The listener of webhooks and its certificate: the host has both, and hands the reviews over.
func Options(options ctrl.Options) ctrl.Options {
	if !IsGuest {
		return options
	}
	return hangarOptions(options)
}

// NewQueue is for controller.Options.NewQueue: client-go's queue without its heartbeat, which would wake the program
// every ten seconds. The heartbeat only corrects for a clock that stands still; hangar's does not.
func NewQueue[T comparable](name string, limiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{
		Name: name, Clock: clockWithoutTicks{},
	})
}

type clockWithoutTicks struct{ clock.RealClock }

func (clockWithoutTicks) NewTicker(d time.Duration) clock.Ticker { return noTicks{} }

type noTicks struct{}

func (noTicks) C() <-chan time.Time { return nil }
func (noTicks) Stop()               {}
