package quiet

import (
	_ "os/signal"
	"sync"
	_ "unsafe"

	_ "k8s.io/client-go/util/workqueue"
)

// There are no signals in a guest. signal.Notify, which ctrl.SetupSignalHandler calls, would start a goroutine
// that waits for one by yielding for ever (runtime/lock_wasip1.go of Go 1.26), so that the program is never idle.
//
//go:linkname watchSignalLoop os/signal.watchSignalLoop
var watchSignalLoop func()

// client-go's queues count what they do, and wake every half second for it, once a provider of metrics is set.
// Of this once nothing is left for the one that controller-runtime sets.
//
//go:linkname queueMetricsOnce k8s.io/client-go/util/workqueue.setGlobalMetricsProviderOnce
var queueMetricsOnce sync.Once

func init() {
	watchSignalLoop = nil
	queueMetricsOnce.Do(func() {})
}
