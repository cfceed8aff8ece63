package hangar

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func TestOptionsTellWhatTheyTurnOff(t *testing.T) {
	options := ctrl.Options{LeaderElection: true, LeaderElectionID: "x", HealthProbeBindAddress: ":8081",
		Metrics: server.Options{BindAddress: ":8080"}}

	changed := hangarTurnOff(&options)

	want := []string{"leader election", "metrics endpoint", "health endpoint", "priority queue", "resync of caches"}
	if !slices.Equal(changed, want) {
		t.Errorf("changed %v, want %v", changed, want)
	}
	if options.LeaderElection || options.Metrics.BindAddress != "0" || options.HealthProbeBindAddress != "0" ||
		ptr.Deref(options.Controller.UsePriorityQueue, true) || ptr.Deref(options.Cache.SyncPeriod, time.Hour) != 0 {
		t.Errorf("something is on: %+v", options)
	}
	if options.LeaderElectionID != "x" {
		t.Error("what is not named was changed")
	}
}

func TestOptionsThatAreQuietAreLeftAlone(t *testing.T) {
	options := ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{UsePriorityQueue: ptr.To(false)},
		Cache: cache.Options{SyncPeriod: ptr.To(time.Hour)}}

	if changed := hangarTurnOff(&options); len(changed) > 0 || *options.Cache.SyncPeriod != time.Hour {
		t.Errorf("changed %v; the caches' period is %v", changed, *options.Cache.SyncPeriod)
	}
}

func TestWebhooksNeedNoCertificate(t *testing.T) {
	options := ctrl.Options{WebhookServer: webhook.NewServer(webhook.Options{CertDir: "/not-there"})}
	hangarTurnOff(&options)
	hangarTurnOff(&options) // As by Options and by a copy of controller-runtime in one program.

	server, isOff := options.WebhookServer.(hangarWebhooks)
	if !isOff {
		t.Fatalf("the server is %T", options.WebhookServer)
	}
	if _, isTwice := server.Server.(hangarWebhooks); isTwice {
		t.Error("what is off was turned off again")
	}
	server.Register("/mutate", http.NotFoundHandler())
	if _, pattern := server.WebhookMux().Handler(&http.Request{URL: &url.URL{Path: "/mutate"}}); pattern != "/mutate" {
		t.Errorf("the webhook is registered as %q", pattern)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Start(ctx) }()
	if err := server.StartedChecker()(nil); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("a server without a certificate ended with %v", err)
	}
}

func TestWebhooksMayBeRegisteredAfterTheServerHasStarted(t *testing.T) {
	options := ctrl.Options{}
	hangarTurnOff(&options)
	answered := func() int {
		written := httptest.NewRecorder()
		options.WebhookServer.(http.Handler).ServeHTTP(written, httptest.NewRequest(http.MethodPost, "/late", nil))
		return written.Code
	}

	before := answered()
	options.WebhookServer.Register("/late", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	if after := answered(); before != http.StatusNotFound || after != http.StatusOK {
		t.Errorf("answered %d, then %d", before, after)
	}
}

func TestOutsideOfHangarOptionsAreAsTheyWere(t *testing.T) {
	if options := Options(ctrl.Options{LeaderElection: true}); !options.LeaderElection {
		t.Error("leader election was turned off")
	}
}

func TestAQueueWithoutHeartbeatDelaysAndRetries(t *testing.T) {
	queue := NewQueue("test", workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	queue.AddAfter("later", 1)
	queue.AddRateLimited("again")

	got := map[string]bool{}
	for range 2 {
		item, _ := queue.Get()
		got[item] = true
		queue.Done(item)
	}
	if !got["later"] || !got["again"] {
		t.Errorf("got %v", got)
	}
}
