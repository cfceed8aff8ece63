// An ordinary operator of controller-runtime: each Website owns a Deployment, and reports how many of its
// replicas are ready. Two lines belong to hangar; compiled for a container it is the same program.
package main

import (
	"context"
	"flag"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hangar.dev/examples/website/v1"
	"hangar.dev/sdk/go/hangar"
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		ctrl.Log.Error(err, "the operator has failed")
		os.Exit(1)
	}
}

func run() error {
	metricsAddress := flag.String("metrics-bind-address", ":8080", "The address the metrics endpoint binds to.")
	leaderElection := flag.Bool("leader-elect", true, "Enable leader election for controller manager.")
	flag.Parse()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	namespace := os.Getenv("NAMESPACE")
	manager, err := ctrl.NewManager(hangar.GetConfigOrDie(), hangar.Options(ctrl.Options{
		Scheme:           scheme,
		Metrics:          metricsserver.Options{BindAddress: *metricsAddress},
		LeaderElection:   *leaderElection,
		LeaderElectionID: "website.examples.hangar.dev",
		Cache:            cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	}))
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&v1.Website{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{NewQueue: hangar.NewQueue[reconcile.Request]}).
		Complete(&reconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &v1.Website{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	outcome, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		fill(deployment, site)
		return controllerutil.SetControllerReference(site, deployment, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).Info("reconciled", "deployment", outcome)

	before := site.Status
	site.Status = status(site, deployment)
	if equality.Semantic.DeepEqual(before, site.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, site)
}

func fill(deployment *appsv1.Deployment, site *v1.Website) {
	labels := map[string]string{"website": site.Name}
	deployment.Spec.Replicas = &site.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	containers := &deployment.Spec.Template.Spec.Containers
	if len(*containers) == 0 {
		*containers = []corev1.Container{{Name: "server"}}
	}
	(*containers)[0].Image = site.Spec.Image
}

func status(site *v1.Website, deployment *appsv1.Deployment) v1.WebsiteStatus {
	status := v1.WebsiteStatus{
		ObservedGeneration: site.Generation,
		ReadyReplicas:      deployment.Status.ReadyReplicas,
		Conditions:         append([]metav1.Condition(nil), site.Status.Conditions...),
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", ObservedGeneration: site.Generation}
	if status.ReadyReplicas == site.Spec.Replicas {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Available"
	}
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}
