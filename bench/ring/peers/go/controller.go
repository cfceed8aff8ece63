package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// resync is the value of the published controller.
const resync = 30 * time.Second

type controller struct {
	client   rest.Interface
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]
	out      string
}

func newController(client rest.Interface, hop hop) *controller {
	source := cache.NewListWatchFromClient(client, resource, hop.in, fields.Everything())
	c := &controller{
		client:   client,
		informer: cache.NewSharedIndexInformer(source, &TestResource{}, resync, cache.Indexers{}),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		out:      hop.out,
	}
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	// Adding a handler to an informer that has not started does not fail.
	_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	})
	utilruntime.Must(err)
	return c
}

func (c *controller) run(ctx context.Context) error {
	go c.informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced) {
		return nil
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return nil
		}
		if err := c.reconcile(ctx, key); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "reconcile", "key", key)
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// reconcile copies the nonce to the object of the same name in the next namespace, if it is larger there.
func (c *controller) reconcile(ctx context.Context, key string) error {
	object, exists, err := c.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return err
	}
	source := object.(*TestResource)

	target := &TestResource{}
	err = c.client.Get().Namespace(c.out).Resource(resource).Name(source.Name).Do(ctx).Into(target)
	if apierrors.IsNotFound(err) {
		target = &TestResource{
			TypeMeta:   metav1.TypeMeta{APIVersion: groupVersion.String(), Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: c.out},
			Spec:       TestResourceSpec{Nonce: source.Spec.Nonce, UpdatedAt: metav1.NowMicro()},
		}
		err = c.client.Post().Namespace(c.out).Resource(resource).Body(target).Do(ctx).Error()
		return wrap("create", err)
	}
	if err != nil {
		return wrap("get", err)
	}
	if source.Spec.Nonce <= target.Spec.Nonce {
		return nil
	}
	target.Spec.Nonce = source.Spec.Nonce
	target.Spec.UpdatedAt = metav1.NowMicro()
	err = c.client.Put().Namespace(c.out).Resource(resource).Name(target.Name).Body(target).Do(ctx).Error()
	return wrap("update", err)
}

func wrap(action string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", action, err)
}
