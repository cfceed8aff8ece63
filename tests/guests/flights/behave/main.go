// One flight for many behaviours, each chosen by the instance's spec.behaviour. A test's instance says
// what its flight does, so the test needs neither a module nor an Airway of its own.
//
//	basic           ConfigMap <name> with spec.data
//	children        ConfigMaps named by spec.names; of these, spec.lookups are looked up
//	crossns         ConfigMap <name> in each of spec.namespaces
//	lookup          ConfigMap <name> with the outcome of looking up spec.lookup; see lookup
//	restMapping     ConfigMap <name> with the mapping of spec.apiVersion and spec.kind
//	status          the instance with spec.status as its status, and ConfigMap <name> with spec.data
//	identity        nothing but the instance, with spec.status as its status
//	stages          three stages, the first with a Namespace and a CRD; see stages
//	job             Job <name> that runs for a moment
//	neverReady      Deployment <name> that no node will run
//	raw             spec.stdout, byte for byte
//	repeat          spec.stdout, spec.count times
//	dump            ConfigMap <name> with argv, env and stdin
//	clocks          ConfigMap <name> with the values of clocks and of the random source
//	sleep           ConfigMap <name> after spec.milliseconds
//	endless         never returns
//	memory          allocates spec.mib MiB, touches each page, then ConfigMap <name>
//	hugeStdout      writes spec.mib MiB of one ConfigMap
//	panic           ends in a Go panic
//	recurse         exhausts the stack
//
// Whatever the behaviour, spec.stderr is written to standard error before it, and a spec.exitCode other
// than zero ends the program after it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// instance is the custom resource, as text and with the fields that behaviours read.
type instance struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec spec `json:"spec"`

	text []byte
}

type spec struct {
	Behaviour    string            `json:"behaviour"`
	Data         map[string]string `json:"data"`
	Names        []string          `json:"names"`
	Lookups      []string          `json:"lookups"`
	Namespaces   []string          `json:"namespaces"`
	Lookup       lookupTarget      `json:"lookup"`
	APIVersion   string            `json:"apiVersion"`
	Kind         string            `json:"kind"`
	Status       json.RawMessage   `json:"status"`
	Stdout       string            `json:"stdout"`
	Stderr       string            `json:"stderr"`
	Count        int               `json:"count"`
	Mib          int               `json:"mib"`
	Milliseconds int               `json:"milliseconds"`
	ExitCode     int               `json:"exitCode"`
}

var behaviours = map[string]func(*instance) error{
	"basic":       basic,
	"children":    children,
	"crossns":     crossns,
	"lookup":      lookup,
	"restMapping": restMapping,
	"status":      status,
	"identity":    identity,
	"stages":      stages,
	"job":         job,
	"neverReady":  neverReady,
	"raw":         raw,
	"repeat":      repeat,
	"dump":        dump,
	"clocks":      clocks,
	"sleep":       sleep,
	"endless":     endless,
	"memory":      memory,
	"hugeStdout":  hugeStdout,
	"panic":       panics,
	"recurse":     recurse,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fmt.Errorf("read stdin: %w", err)
	}
	cr := &instance{text: text}
	if err := json.Unmarshal(text, cr); err != nil {
		return fmt.Errorf("decode stdin: %w", err)
	}
	behave, ok := behaviours[cr.Spec.Behaviour]
	if !ok {
		return fmt.Errorf("spec.behaviour %q is none of %q", cr.Spec.Behaviour, slices.Sorted(maps.Keys(behaviours)))
	}

	fmt.Fprint(os.Stderr, cr.Spec.Stderr)
	if err := behave(cr); err != nil {
		return err
	}
	os.Exit(cr.Spec.ExitCode)
	return nil
}

// emit writes the flight's answer.
func emit(resources ...any) error {
	return json.NewEncoder(os.Stdout).Encode(resources)
}
