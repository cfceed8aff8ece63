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
	flag.StringVar(&options.Out, "out", "", "directory to create; an existing one must be empty")
	flag.StringVar(&options.SDK, "sdk", "", "directory of the SDK's source")
	flag.StringVar(&options.Module, "module", "", "name of the Go module (default: the chart's name)")
	flag.StringVar(&options.KubeVersion, "kube-version", "", "Kubernetes version to render the chart for (default: Helm's)")
	flag.BoolVar(&options.IncludeCRDs, "include-crds", false, "render the chart's CustomResourceDefinitions as well")
	flag.BoolVar(&options.NoHooks, "no-hooks", false, "leave out the chart's hooks")
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
