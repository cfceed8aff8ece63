// Package controller has the example's reconciler.
package controller

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	examplesv1 "hangar.dev/examples/memo/api/v1"
)

const finalizer = "examples.hangar.dev/memo"

var keptTotal = prometheus.NewCounter(prometheus.CounterOpts{Name: "memo_kept_total", Help: "ConfigMaps that were created"})

func init() { metrics.Registry.MustRegister(keptTotal) }

// MemoReconciler keeps a ConfigMap for each Memo.
type MemoReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder record.EventRecorder
}

// Reconcile makes the ConfigMap of one Memo match the Memo.
func (r *MemoReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	log := logf.FromContext(ctx)
	memo := &examplesv1.Memo{}
	if err := r.Get(ctx, request.NamespacedName, memo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !memo.DeletionTimestamp.IsZero() {
		log.Info("forgotten")
		controllerutil.RemoveFinalizer(memo, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, memo))
	}
	if controllerutil.AddFinalizer(memo, finalizer) {
		if err := r.Update(ctx, memo); err != nil {
			return ctrl.Result{}, err
		}
	}

	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: memo.Name, Namespace: memo.Namespace}}
	outcome, err := controllerutil.CreateOrUpdate(ctx, r.Client, kept, func() error {
		kept.Data = map[string]string{"text": memo.Spec.Text}
		return controllerutil.SetControllerReference(memo, kept, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	log.Info("reconciled", "configMap", outcome)
	if outcome == controllerutil.OperationResultCreated {
		keptTotal.Inc()
		r.Recorder.Event(memo, corev1.EventTypeNormal, "Kept", "the text is in a ConfigMap")
	}

	// From the second look at one generation on, only the passing of time can be the reason.
	if memo.Spec.RevisitSeconds > 0 && memo.Status.ObservedGeneration == memo.Generation &&
		outcome == controllerutil.OperationResultNone {
		memo.Status.Visits++
	}
	memo.Status.ObservedGeneration = memo.Generation
	memo.Status.Words = int64(len(strings.Fields(memo.Spec.Text)))
	if err := r.Status().Update(ctx, memo); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: time.Duration(memo.Spec.RevisitSeconds) * time.Second}, nil
}

// SetupWithManager makes the manager run it.
func (r *MemoReconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		// Its own changes of the status are no reason to look again.
		For(&examplesv1.Memo{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Named("memo").
		Complete(r)
}
