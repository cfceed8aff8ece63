package hangar

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"hangar.dev/sdk/go/hangar/guest"
)

// This file is compiled in two places: here, for Options, and in package manager of the copy of controller-runtime
// that `hangar build go` makes for programs whose main does not mention hangar. So it uses nothing else of this
// package, and only functions that controller-runtime 0.20 has too.

// hangarOptions returns the options of a manager without features that would keep it awake or that the host
// provides, and logs its changes. From then on the host gets the program's metrics when it asks.
func hangarOptions(options manager.Options) manager.Options {
	guest.ServeMetrics(promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	changed := hangarTurnOff(&options)
	if len(changed) > 0 {
		log.Log.WithName("hangar").Info("options are changed, because the host does this", "off", strings.Join(changed, ", "))
	}
	return options
}

// hangarTurnOff turns off features that keep a program awake and returns the ones that were on.
func hangarTurnOff(options *manager.Options) (changed []string) {
	off := func(name string, isOn bool) {
		if isOn {
			changed = append(changed, name)
		}
	}
	isEndpoint := func(address string) bool { return address != "" && address != "0" }
	usePriorityQueue := options.Controller.UsePriorityQueue
	off("leader election", options.LeaderElection)
	off("metrics endpoint", options.Metrics.BindAddress != "0")
	off("health endpoint", isEndpoint(options.HealthProbeBindAddress))
	off("pprof endpoint", isEndpoint(options.PprofBindAddress))
	off("priority queue", usePriorityQueue == nil || *usePriorityQueue)
	off("resync of caches", options.Cache.SyncPeriod == nil)
	options.LeaderElection = false
	options.Metrics.BindAddress = "0"
	options.HealthProbeBindAddress = "0"
	options.PprofBindAddress = "0"
	options.Controller.UsePriorityQueue = new(bool)
	if options.Cache.SyncPeriod == nil {
		options.Cache.SyncPeriod = new(time.Duration)
	}
	if _, isOff := options.WebhookServer.(hangarWebhooks); !isOff {
		if options.WebhookServer == nil {
			options.WebhookServer = webhook.NewServer(webhook.Options{})
		}
		options.WebhookServer = hangarWebhooks{options.WebhookServer}
	}
	return changed
}

// hangarWebhooks is a program's webhook server whose requests the host hands over. The host has the connections and
// their certificate; the program needs none.
type hangarWebhooks struct{ webhook.Server }

func (w hangarWebhooks) Start(ctx context.Context) error {
	guest.ServeWebhooks(w, ctx.Done())
	return nil
}

func (w hangarWebhooks) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	// Nil before the first webhook is registered: programs may do that after their manager has started.
	var handler http.Handler = http.NotFoundHandler()
	if mux := w.Server.WebhookMux(); mux != nil {
		handler = mux
	}
	handler.ServeHTTP(response, request)
}

func (hangarWebhooks) StartedChecker() healthz.Checker { return healthz.Ping }
