// A flight that renders a Helm chart with the values that it reads.
package main

import (
	"embed"
	"fmt"
	"io"
	"os"

	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/helm"
)

//go:embed all:chart
var files embed.FS

var options = []helm.RenderOption{helm.IsInstall, helm.Revision(1), helm.KubeVersion("v1.37.0")}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer) error {
	var values Values
	if err := helm.ReadValues(input, &values); err != nil {
		return err
	}
	chart, err := helm.LoadChartFromFS(files)
	if err != nil {
		return err
	}
	rendered, err := chart.Render(flight.Release(), flight.Namespace(), values, options...)
	if err != nil {
		return err
	}
	answer := make(flight.Resources, 0, len(rendered))
	for _, resource := range rendered {
		answer = append(answer, resource)
	}
	return flight.Write(output, answer)
}
