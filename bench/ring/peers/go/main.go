// A peer of the ring benchmark: the controllers of examples/ring with client-go, built as the
// published Go controller is: an informer with a resync every 30 s, a rate-limited queue, one worker.
// One difference: objects are created with the copied nonce, not with 0, which would cost the first
// round a resync.
//
//	ring_go -in NAMESPACE -out NAMESPACE        one controller
//	ring_go -count N [-prefix ring]             N controllers in this process: from namespace <prefix>0 to
//	                                            <prefix>1, and so on, the last one to <prefix>0
//
// Prints "ready" to standard output when every controller has its first list, and runs until it
// is killed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hop is the task of one controller: it copies changes from one namespace to the other.
type hop struct{ in, out string }

func run(ctx context.Context) error {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the cluster")
	in := flag.String("in", os.Getenv("IN_NAMESPACE"), "namespace to watch")
	out := flag.String("out", os.Getenv("OUT_NAMESPACE"), "namespace to copy to")
	count := flag.Int("count", 0, "controllers in this process, instead of -in and -out")
	prefix := flag.String("prefix", "ring", "of the namespaces' names, with -count")
	flag.Parse()

	hops := []hop{{*in, *out}}
	if *count > 0 {
		hops = nil
		for i := range *count {
			hops = append(hops, hop{fmt.Sprint(*prefix, i), fmt.Sprint(*prefix, (i+1)%*count)})
		}
	} else if *in == "" || *out == "" {
		return fmt.Errorf("-in and -out, or -count, are needed")
	}

	client, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	var synced []cache.InformerSynced
	for _, hop := range hops {
		controller := newController(client, hop)
		synced = append(synced, controller.informer.HasSynced)
		group.Go(func() error { return controller.run(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return group.Wait()
	}
	fmt.Println("ready")
	return group.Wait()
}

func newClient(kubeconfig string) (rest.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	addToScheme(scheme)
	config.GroupVersion = &groupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	// The default of 5 requests a second counts per process, and would dominate the measurement.
	config.QPS = -1
	return rest.RESTClientFor(config)
}
