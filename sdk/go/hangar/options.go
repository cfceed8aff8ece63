package hangar

import (
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Options returns options of a manager without what would keep it awake, or what the host does for it, and
// logs what it changed. Outside of hangar it returns them as they are.
//
//   - Leader election: the host has it, for all of its operators. A Lease of one's own is a write every two seconds.
//   - The endpoints of metrics, health and pprof: nobody could reach them.
//   - The priority queue: it wakes the program every half second. The plain queue takes its place.
func Options(options ctrl.Options) ctrl.Options {
	if !IsGuest {
		return options
	}
	changed := quieten(&options)
	if len(changed) > 0 {
		ctrl.Log.WithName("hangar").Info("options are changed, because the host does this", "off", strings.Join(changed, ", "))
	}
	return options
}

// quieten turns off what Options names and returns what was on.
func quieten(options *ctrl.Options) (changed []string) {
	off := func(name string, isOn bool) {
		if isOn {
			changed = append(changed, name)
		}
	}
	off("leader election", options.LeaderElection)
	off("metrics endpoint", options.Metrics.BindAddress != "0")
	off("health endpoint", options.HealthProbeBindAddress != "" && options.HealthProbeBindAddress != "0")
	off("pprof endpoint", options.PprofBindAddress != "" && options.PprofBindAddress != "0")
	off("priority queue", ptr.Deref(options.Controller.UsePriorityQueue, true))
	options.LeaderElection = false
	options.Metrics.BindAddress = "0"
	options.HealthProbeBindAddress = "0"
	options.PprofBindAddress = "0"
	options.Controller.UsePriorityQueue = ptr.To(false)
	return changed
}

// NewQueue is for controller.Options.NewQueue: client-go's queue without its heartbeat, which would wake the
// program every ten seconds. The heartbeat only mends what a clock does that stands still; hangar's does not.
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
