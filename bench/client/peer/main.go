// The peer of the cache benchmarks: informers of client-go. It also fills the cluster, because no other
// program here does that as fast.
//
//	peer fill -count N            N objects in the namespace, ConfigMaps and Pods in turn
//	peer crowd -namespaces N -pods N -secrets N
//	                              namespaces crowd-000, crowd-001 ... with so many of both in each; one of a
//	                              hundred has the label example.com/watched
//	peer touch -count N           changes N of the ConfigMaps
//	peer cache -objects KIND      obeys one command a line on stdin, answers with a line of JSON:
//	    connect        one request to the API server
//	    sync           starts informers for the resources, waits until they have everything
//	    settle         collects garbage and returns memory to the system
//	    watch N        waits until N changes have arrived
//
// KIND: typed (protobuf, as Kubernetes' own controllers do it), stripped (the same without managedFields),
// unstructured (JSON, as programs do it that handle kinds they do not know).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) < 2 {
		return fmt.Errorf("usage: %s fill|crowd|touch|cache", os.Args[0])
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "the cluster")
	namespace := flags.String("namespace", "bench", "where the objects are")
	count := flags.Int("count", 20000, "how many objects")
	kind := flags.String("objects", "typed", "typed, stripped or unstructured")
	resources := flags.String("resources", "configmaps,pods", "what the informers are for, of the core group")
	namespaces := flags.Int("namespaces", 100, "how many namespaces of a crowd")
	pods := flags.Int("pods", 1000, "how many Pods in each namespace of a crowd")
	secrets := flags.Int("secrets", 300, "how many Secrets in each namespace of a crowd")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // not limited here
	switch os.Args[1] {
	case "fill":
		return fill(ctx, config, *namespace, *count)
	case "touch":
		return touch(ctx, config, *namespace, *count)
	case "crowd":
		return crowd(ctx, config, *namespaces, *pods, *secrets)
	case "cache":
		return obey(ctx, &cache{config: config, namespace: *namespace, kind: *kind, resources: strings.Split(*resources, ",")})
	}
	return fmt.Errorf("unknown command %s", os.Args[1])
}

func obey(ctx context.Context, cache *cache) error {
	cache.config = rest.CopyConfig(cache.config)
	if cache.kind != "unstructured" {
		cache.config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
		cache.config.ContentType = "application/vnd.kubernetes.protobuf"
	}
	answers := json.NewEncoder(os.Stdout)
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		words := strings.Fields(commands.Text())
		if len(words) == 0 {
			return fmt.Errorf("empty command")
		}
		var answer any
		var err error
		switch words[0] {
		case "connect":
			answer, err = cache.connect(ctx)
		case "sync":
			answer, err = cache.sync(ctx)
		case "settle":
			answer = settle()
		case "watch":
			var wanted int64
			if wanted, err = strconv.ParseInt(words[len(words)-1], 10, 64); err == nil {
				answer = cache.watch(wanted)
			}
		default:
			err = fmt.Errorf("unknown command")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", commands.Text(), err)
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}
