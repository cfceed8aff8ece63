// The peer of the workflows benchmark: a state machine's step as the published operator takes it, without
// a cluster.
//
// The published way: wazero runs the module (a JavaScript engine with the bundle, handle_event and malloc). For
// each event an instance is created, the state and the event are written into its memory, handle_event is
// called, and the result is read up to its NUL and parsed. The module is compiled once: the published code
// itself says that it is not meant to be compiled for each event.
//
// It obeys one command a line on stdin and answers each with one line of JSON:
//
//	load           compiles the module
//	run SECONDS    takes machines from their first state to their last, over and over
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	wasm := flag.String("module", "", "the module")
	state := flag.String("state", "", "file with the first state")
	events := flag.String("events", "", "file with the events of one machine's life, one a line")
	workers := flag.Int("workers", 1, "machines at a time")
	flag.Parse()

	machine := machine{workers: *workers}
	var err error
	if machine.wasm, err = os.ReadFile(*wasm); err != nil {
		return err
	}
	if machine.state, err = os.ReadFile(*state); err != nil {
		return err
	}
	lines, err := os.ReadFile(*events)
	if err != nil {
		return err
	}
	machine.state = bytes.TrimSpace(machine.state)
	machine.events = bytes.Split(bytes.TrimSpace(lines), []byte("\n"))

	answers := json.NewEncoder(os.Stdout)
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		answer, err := machine.obey(strings.Fields(commands.Text()))
		if err != nil {
			return fmt.Errorf("%s: %w", commands.Text(), err)
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return commands.Err()
}

type machine struct {
	wasm, state []byte
	events      [][]byte
	workers     int

	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

func (machine *machine) obey(words []string) (any, error) {
	switch {
	case len(words) == 1 && words[0] == "load":
		began := time.Now()
		if err := machine.load(); err != nil {
			return nil, err
		}
		return map[string]any{"seconds": time.Since(began).Seconds()}, nil
	case len(words) == 2 && words[0] == "run":
		seconds, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return nil, err
		}
		return machine.run(time.Duration(seconds * float64(time.Second)))
	}
	return nil, errors.New("unknown command")
}

func (machine *machine) load() error {
	ctx := context.Background()
	machine.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithMemoryLimitPages(1024))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, machine.runtime); err != nil {
		return err
	}
	var err error
	machine.compiled, err = machine.runtime.CompileModule(ctx, machine.wasm)
	return err
}

// step creates an instance, asks it once, and closes it.
func (machine *machine) step(state, event []byte) ([]byte, error) {
	ctx := context.Background()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	instance, err := machine.runtime.InstantiateModule(ctx, machine.compiled, config)
	if err != nil {
		return nil, err
	}
	defer instance.Close(ctx)

	write := func(text []byte) (uint64, error) {
		results, err := instance.ExportedFunction("malloc").Call(ctx, uint64(len(text)))
		if err != nil {
			return 0, err
		}
		if !instance.Memory().Write(uint32(results[0]), text) {
			return 0, errors.New("malloc's result is not in memory")
		}
		return results[0], nil
	}
	statePointer, err := write(state)
	if err != nil {
		return nil, err
	}
	eventPointer, err := write(event)
	if err != nil {
		return nil, err
	}
	results, err := instance.ExportedFunction("handle_event").Call(
		ctx, statePointer, uint64(len(state)), eventPointer, uint64(len(event)))
	if err != nil {
		return nil, err
	}
	answer, ok := instance.Memory().Read(uint32(results[0]), instance.Memory().Size()-uint32(results[0]))
	if !ok {
		return nil, errors.New("the result is not in memory")
	}
	answer, _, _ = bytes.Cut(answer, []byte{0})
	var decision struct {
		NewState json.RawMessage `json:"newState"`
		Actions  []struct {
			Type   string         `json:"type"`
			Params map[string]any `json:"params"`
		} `json:"actions"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(answer, &decision); err != nil {
		return nil, err
	}
	if decision.Error != "" {
		return nil, errors.New(decision.Error)
	}
	return decision.NewState, nil
}

type result struct {
	Steps      int     `json:"steps"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	MedianMS   float64 `json:"median_ms"`
	P99MS      float64 `json:"p99_ms"`
	Value      string  `json:"value"` // of a machine at its end: the proof that it did its work
}

func (machine *machine) run(duration time.Duration) (result, error) {
	cpuBefore, began := cpuTime(), time.Now()
	var (
		group sync.WaitGroup
		took  = make([][]time.Duration, machine.workers)
		last  = make([][]byte, machine.workers)
		errs  = make([]error, machine.workers)
	)
	for worker := range machine.workers {
		group.Go(func() {
			for time.Since(began) < duration {
				state := machine.state
				for _, event := range machine.events {
					started := time.Now()
					next, err := machine.step(state, event)
					if err != nil {
						errs[worker] = fmt.Errorf("%s: %w", event, err)
						return
					}
					took[worker] = append(took[worker], time.Since(started))
					state = next
				}
				last[worker] = state
			}
		})
	}
	group.Wait()

	if err := errors.Join(errs...); err != nil {
		return result{}, err
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	if len(all) == 0 {
		return result{}, fmt.Errorf("no step ended within %v", duration)
	}
	var end struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(last[0], &end); err != nil {
		return result{}, err
	}
	milliseconds := func(percent int) float64 {
		return float64(all[(len(all)-1)*percent/100].Microseconds()) / 1000
	}
	return result{
		Steps: len(all), Seconds: time.Since(began).Seconds(), CPUSeconds: cpuTime() - cpuBefore,
		MedianMS: milliseconds(50), P99MS: milliseconds(99), Value: end.Value,
	}, nil
}

// cpuTime is the user and system time of this process in seconds.
func cpuTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
