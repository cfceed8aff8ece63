package quiet

import (
	_ "os/signal"
	"sync"
	_ "unsafe"

	_ "k8s.io/client-go/util/workqueue"
)

// There are no signals in a guest. signal.Notify, which ctrl.SetupSignalHandler calls, would start a goroutine
// that waits for a signal by yielding for ever (runtime/lock_wasip1.go of Go 1.26), so that the program is
// never idle.
//
//go:linkname watchSignalLoop os/signal.watchSignalLoop
var watchSignalLoop func()

// Once a provider of metrics is set, client-go's queues count their work, and wake every half second to do so.
// This sync.Once is used up here, so that the provider of controller-runtime is not set.
//
//go:linkname queueMetricsOnce k8s.io/client-go/util/workqueue.setGlobalMetricsProviderOnce
var queueMetricsOnce sync.Once

func init() {
	watchSignalLoop = nil
	queueMetricsOnce.Do(func() {})
}
