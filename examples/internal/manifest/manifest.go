// Package manifest prints an Airway as the YAML that kubectl applies.
package manifest

import (
	"flag"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"

	"hangar.dev/sdk/go/apis/v1alpha1"
)

// Main is the whole of a program that prints an Airway. The server of its module differs between
// clusters, so the command line names it.
func Main(airway v1alpha1.Airway) {
	spec := &airway.Spec
	flag.StringVar(&spec.WasmURLs.Flight, "flight", spec.WasmURLs.Flight, "where the module is: a path, an http(s) or an oci URL")
	flag.StringVar(&spec.WasmURLs.FlightChecksum, "checksum", spec.WasmURLs.FlightChecksum, "SHA-256 of the module, in hexadecimal")
	flag.BoolVar(&spec.Insecure, "insecure", spec.Insecure, "fetch the module without TLS verification, or by plain HTTP from a registry")
	flag.Parse()
	if err := Write(os.Stdout, airway); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Write encodes an Airway as YAML.
func Write(output io.Writer, airway v1alpha1.Airway) error {
	document, err := yaml.Marshal(airway)
	if err != nil {
		return fmt.Errorf("encode airway %s: %w", airway.Name, err)
	}
	_, err = output.Write(document)
	return err
}
