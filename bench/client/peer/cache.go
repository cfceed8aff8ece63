package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// cache is an informer with a handler for each resource, as a controller has them.
type cache struct {
	config          *rest.Config
	namespace, kind string
	resources       []string
	informers       []toolscache.SharedIndexInformer
	changes         atomic.Int64 // since the last watch command
}

// usage is the answer to every command.
type usage struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	HeapBytes  uint64  `json:"heap_bytes"`
	Objects    int     `json:"objects"`
}

func (cache *cache) connect(ctx context.Context) (usage, error) {
	began, cpu := time.Now(), cpuTime()
	client, err := discovery.NewDiscoveryClientForConfig(cache.config)
	if err != nil {
		return usage{}, err
	}
	if _, err := client.ServerVersion(); err != nil {
		return usage{}, err
	}
	return cache.since(began, cpu), nil
}

func (cache *cache) sync(ctx context.Context) (usage, error) {
	began, cpu := time.Now(), cpuTime()
	if err := cache.makeInformers(); err != nil {
		return usage{}, err
	}
	handler := toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { cache.changes.Add(1) }}
	var registrations []toolscache.InformerSynced
	for _, informer := range cache.informers {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return usage{}, err
		}
		registrations = append(registrations, registration.HasSynced)
		go informer.Run(ctx.Done())
	}
	// Until the handlers have seen everything: a controller waits for the same.
	for _, synced := range registrations {
		for !synced() {
			time.Sleep(time.Millisecond)
		}
	}
	return cache.since(began, cpu), nil
}

func (cache *cache) makeInformers() error {
	if cache.kind == "unstructured" {
		client, err := dynamic.NewForConfig(cache.config)
		if err != nil {
			return err
		}
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, cache.namespace, nil)
		for _, resource := range cache.resources {
			cache.informers = append(cache.informers, factory.ForResource(core(resource)).Informer())
		}
		return nil
	}
	client, err := kubernetes.NewForConfig(cache.config)
	if err != nil {
		return err
	}
	options := []informers.SharedInformerOption{informers.WithNamespace(cache.namespace)}
	switch cache.kind {
	case "typed":
	case "stripped":
		options = append(options, informers.WithTransform(stripManagedFields))
	default:
		return fmt.Errorf("-objects must be typed, stripped or unstructured")
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
	for _, resource := range cache.resources {
		informer, err := factory.ForResource(core(resource))
		if err != nil {
			return err
		}
		cache.informers = append(cache.informers, informer.Informer())
	}
	return nil
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func stripManagedFields(object any) (any, error) {
	if described, err := meta.Accessor(object); err == nil {
		described.SetManagedFields(nil)
	}
	return object, nil
}

// watch waits until `wanted` changes have arrived since the last time.
func (cache *cache) watch(wanted int64) usage {
	began, cpu := time.Now(), cpuTime()
	for cache.changes.Load() < wanted {
		time.Sleep(time.Millisecond)
	}
	cache.changes.Add(-wanted)
	return cache.since(began, cpu)
}

func settle() usage {
	runtime.GC()
	time.Sleep(100 * time.Millisecond)
	debug.FreeOSMemory()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return usage{HeapBytes: memory.HeapAlloc}
}

func (cache *cache) since(began time.Time, cpu float64) usage {
	objects := 0
	for _, informer := range cache.informers {
		objects += len(informer.GetStore().ListKeys())
	}
	return usage{Seconds: time.Since(began).Seconds(), CPUSeconds: cpuTime() - cpu, Objects: objects}
}

// cpuTime is the user and system time of this process in seconds.
func cpuTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
