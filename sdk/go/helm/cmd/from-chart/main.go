// from-chart makes the source of a flight out of a Helm chart. `hangar flight from-chart` runs it; its flags
// are that command's.
package main

import (
	"flag"
	"fmt"
	"os"

	"hangar.dev/sdk/go/helm/internal/fromchart"
)

func main() {
	var options fromchart.Options
	flag.StringVar(&options.Out, "out", "", "directory that is made")
	flag.StringVar(&options.SDK, "sdk", "", "directory of the SDK's source")
	flag.StringVar(&options.Module, "module", "", "name of the Go module (default: the chart's)")
	flag.StringVar(&options.KubeVersion, "kube-version", "", "Kubernetes that the chart is rendered for")
	flag.BoolVar(&options.IncludeCRDs, "include-crds", false, "render the chart's CustomResourceDefinitions as well")
	flag.BoolVar(&options.NoHooks, "no-hooks", false, "leave out hooks")
	flag.Parse()
	if flag.NArg() != 1 || options.Out == "" || options.SDK == "" {
		flag.Usage()
		os.Exit(2)
	}
	options.Chart = flag.Arg(0)
	loaded, err := fromchart.Generate(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(loaded.CRDObjects()) > 0 && !options.IncludeCRDs {
		fmt.Fprintln(os.Stderr, "note: the chart's CustomResourceDefinitions are not rendered; --include-crds does")
	}
}
