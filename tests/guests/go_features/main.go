// An operator of three controllers in one manager that uses what examples/memo does not. All objects are ConfigMaps of one
// namespace (WATCH_NAMESPACE), by their label "role", but for Secrets and Leases.
//
//	shelves   `Watches` with a predicate and a map function, a field index, server-side apply: keeps NAME-catalogue for each
//	          shelf, with the titles of the books whose data name it
//	guests    a metadata-only watch of Secrets, and a conflict with a retry: writes the annotation "entry" of each into the
//	          ConfigMap ledger
//	counts    unstructured objects and a list in pages: writes how many Leases there are into a ConfigMap of the role count
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const shelfField = "data.shelf"

func hasRole(role string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()["role"] == role })
}

type shelves struct{ client.Client }

func (s shelves) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	shelf := &corev1.ConfigMap{}
	if err := s.Get(ctx, request.NamespacedName, shelf); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	books := &corev1.ConfigMapList{}
	if err := s.List(ctx, books, client.InNamespace(request.Namespace), client.MatchingFields{shelfField: shelf.Name}); err != nil {
		return ctrl.Result{}, err
	}
	titles := map[string]string{}
	for _, book := range books.Items {
		titles[book.Name] = fmt.Sprintf("%s (%s)", book.Data["title"], book.Data["note"])
	}
	catalogue := corev1apply.ConfigMap(shelf.Name+"-catalogue", shelf.Namespace).WithData(titles)
	return ctrl.Result{}, s.Apply(ctx, catalogue, client.FieldOwner("librarian"), client.ForceOwnership)
}

func (s shelves) setUp(manager ctrl.Manager) error {
	shelfOf := func(object client.Object) []string {
		if shelf := object.(*corev1.ConfigMap).Data["shelf"]; shelf != "" {
			return []string{shelf}
		}
		return nil
	}
	if err := manager.GetFieldIndexer().IndexField(context.Background(), &corev1.ConfigMap{}, shelfField, shelfOf); err != nil {
		return err
	}
	toShelf := func(_ context.Context, object client.Object) (requests []reconcile.Request) {
		for _, shelf := range shelfOf(object) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: shelf}})
		}
		return requests
	}
	// A change of the note alone is none.
	isAnother := predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, after := maps.Clone(update.ObjectOld.(*corev1.ConfigMap).Data), maps.Clone(update.ObjectNew.(*corev1.ConfigMap).Data)
		delete(before, "note")
		delete(after, "note")
		return !maps.Equal(before, after)
	}}
	return ctrl.NewControllerManagedBy(manager).Named("shelves").
		For(&corev1.ConfigMap{}, builder.WithPredicates(hasRole("shelf"))).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(toShelf), builder.WithPredicates(hasRole("book"), isAnother)).
		Complete(s)
}

type guests struct {
	client.Client
	live client.Reader
}

func (g guests) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := g.Get(ctx, request.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	entry := secret.Annotations["entry"]
	if entry == "" {
		return ctrl.Result{}, nil
	}
	conflicts := 0
	return ctrl.Result{}, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		ledger := &corev1.ConfigMap{}
		if err := g.live.Get(ctx, types.NamespacedName{Namespace: secret.Namespace, Name: "ledger"}, ledger); err != nil {
			return err
		}
		if ledger.Data[secret.Name] == entry {
			return nil
		}
		if ledger.Data == nil {
			ledger.Data = map[string]string{}
		}
		if conflicts == 0 {
			quicker := ledger.DeepCopy()
			quicker.Data["quicker"] = entry
			if err := g.Update(ctx, quicker); err != nil {
				return err
			}
		}
		ledger.Data[secret.Name] = entry
		ledger.Data["conflicts"] = strconv.Itoa(conflicts)
		err := g.Update(ctx, ledger)
		if apierrors.IsConflict(err) {
			conflicts++
		}
		return err
	})
}

func (g guests) setUp(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).Named("guests").For(&corev1.Secret{}, builder.OnlyMetadata).Complete(g)
}

type counts struct {
	client.Client
	live client.Reader
}

func newConfigMap() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return object
}

func (c counts) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	count := newConfigMap()
	if err := c.Get(ctx, request.NamespacedName, count); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	items, pages := 0, 0
	for next := ""; pages == 0 || next != ""; pages++ {
		leases := &unstructured.UnstructuredList{}
		leases.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "LeaseList"})
		if err := c.live.List(ctx, leases, client.InNamespace(request.Namespace), client.Limit(500), client.Continue(next)); err != nil {
			return ctrl.Result{}, err
		}
		items, next = items+len(leases.Items), leases.GetContinue()
	}
	found := fmt.Sprintf("%d in %d pages", items, pages)
	if before, _, _ := unstructured.NestedString(count.Object, "data", "found"); before == found {
		return ctrl.Result{}, nil
	}
	if err := unstructured.SetNestedField(count.Object, found, "data", "found"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, c.Update(ctx, count)
}

func (c counts) setUp(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).Named("counts").For(newConfigMap(), builder.WithPredicates(hasRole("count"))).Complete(c)
}

func run() error {
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{os.Getenv("WATCH_NAMESPACE"): {}}},
	})
	if err != nil {
		return err
	}
	for _, controller := range []interface{ setUp(ctrl.Manager) error }{
		shelves{manager.GetClient()},
		guests{manager.GetClient(), manager.GetAPIReader()},
		counts{manager.GetClient(), manager.GetAPIReader()},
	} {
		if err := controller.setUp(manager); err != nil {
			return err
		}
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
