// The peer for bench/kubernetes.py: controller-runtime doing one event, one decision, one status write per object.
//
// It prints "ready" when its cache has synced, waits until every one of -objects Samples is settled, and prints
// one JSON line with the CPU it used in between. The no-op pass that its own write causes is included, as it is
// for the other programs.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"
)

type reconciler struct {
	client  client.Client
	settled *atomic.Int64
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var sample Sample
	if err := r.client.Get(ctx, req.NamespacedName, &sample); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if sample.Status.Phase == "Ready" {
		r.settled.Add(1)
		return ctrl.Result{}, nil
	}
	before := sample.DeepCopy()
	sample.Status.Phase = "Ready"
	meta.SetStatusCondition(&sample.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Settled", Message: "every replica is up to date",
		ObservedGeneration: sample.Generation,
	})
	return ctrl.Result{}, client.IgnoreNotFound(r.client.Status().Patch(ctx, &sample, client.MergeFrom(before)))
}

type countingTransport struct {
	inner  http.RoundTripper
	writes *atomic.Int64
}

func (c countingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		c.writes.Add(1)
	}
	return c.inner.RoundTrip(req)
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	objects := flag.Int64("objects", 300, "how many Samples to settle")
	flag.Parse()
	log.SetLogger(logr.Discard())

	config, err := ctrl.GetConfig() // reads controller-runtime's own -kubeconfig flag
	check(err)
	config.QPS = -1
	var writes, settled atomic.Int64
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return countingTransport{inner, &writes} })
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(groupVersion, &Sample{}, &SampleList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	check(err)
	check(ctrl.NewControllerManagedBy(manager).For(&Sample{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 16}).
		Complete(&reconciler{client: manager.GetClient(), settled: &settled}))

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { check(manager.Start(ctx)) }()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		check(fmt.Errorf("the cache did not sync"))
	}
	time.Sleep(500 * time.Millisecond)
	startCPU, start := cpuSeconds(), time.Now()
	fmt.Println("ready")
	deadline := time.Now().Add(5 * time.Minute)
	for settled.Load() < *objects {
		if time.Now().After(deadline) {
			check(fmt.Errorf("settled %d of %d", settled.Load(), *objects))
		}
		time.Sleep(20 * time.Millisecond)
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"cpu_seconds": cpuSeconds() - startCPU, "wall_seconds": time.Since(start).Seconds(), "writes": writes.Load(),
	}))
}
