// The peer of the flights benchmark: the same flights, run by wazero the way yoke's Air Traffic Controller
// runs them, without a cluster.
//
// That way is: a runtime and a compiled module for each flight, with wazero's compilation cache on disk; for
// each evaluation a new instance, ended by a context with a deadline, that is closed afterwards. The host
// functions answer with bytes from a file. Compiled modules are kept by strong references, or by weak ones
// with the module's bytes gzipped on disk, so that the garbage collector decides which ones stay loaded.
//
// It obeys one command a line on stdin and answers each with one line of JSON:
//
//	load           loads every module
//	run SECONDS    evaluates in turn with all workers
//	settle         collects garbage and returns memory to the system
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	directory := flag.String("cache", "", "where compiled modules and gzipped bytes are kept")
	references := flag.String("references", "strong", "strong or weak")
	workers := flag.Int("workers", 2, "evaluations at a time")
	input := flag.String("input", "", "file with the custom resource")
	lookup := flag.String("lookup", "", "file with the answer to every lookup; none without")
	converter := flag.Bool("converter", false, "the modules are converters, and the input is a ConversionReview")
	flag.Parse()

	fleet := fleet{workers: *workers, program: flightProgram}
	if *converter {
		fleet.program = converterProgram
	}
	var err error
	if fleet.input, err = os.ReadFile(*input); err != nil {
		return err
	}
	if *lookup != "" {
		if fleet.answer, err = os.ReadFile(*lookup); err != nil {
			return err
		}
	}
	for _, path := range flag.Args() {
		fleet.flights = append(fleet.flights, newSource(path, *directory, *references == "weak"))
	}

	answers := json.NewEncoder(os.Stdout)
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		words := strings.Fields(commands.Text())
		answer, err := fleet.obey(words)
		if err != nil {
			return fmt.Errorf("%s: %w", commands.Text(), err)
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	return commands.Err()
}

// fleet is the flights and the input of each evaluation.
type fleet struct {
	flights       []*source
	workers       int
	input, answer []byte
	program       program
}

func (fleet *fleet) obey(words []string) (any, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("empty command")
	}
	switch words[0] {
	case "load":
		began := time.Now()
		for _, flight := range fleet.flights {
			if _, err := flight.module(fleet.answer); err != nil {
				return nil, err
			}
		}
		return map[string]any{"seconds": time.Since(began).Seconds()}, nil
	case "run":
		seconds, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil {
			return nil, err
		}
		return fleet.run(time.Duration(seconds * float64(time.Second)))
	case "settle":
		// Twice, because the second one frees objects with a finalizer.
		runtime.GC()
		time.Sleep(100 * time.Millisecond)
		debug.FreeOSMemory()
		return map[string]any{}, nil
	}
	return nil, fmt.Errorf("unknown command")
}

type result struct {
	Runs       int     `json:"runs"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	Loads      int64   `json:"loads"`
	MedianMS   float64 `json:"median_ms"`
	P99MS      float64 `json:"p99_ms"`
	Output     string  `json:"output"` // of one evaluation: the proof that it did its work
}

// run evaluates all flights in turn until the time is over.
func (fleet *fleet) run(duration time.Duration) (result, error) {
	loadsBefore := fleet.loads()
	cpuBefore := cpuTime()
	began := time.Now()

	var (
		next  atomic.Int64
		group sync.WaitGroup
		took  = make([][]time.Duration, fleet.workers)
		last  = make([][]byte, fleet.workers)
		errs  = make([]error, fleet.workers)
	)
	for worker := range fleet.workers {
		group.Go(func() {
			for time.Since(began) < duration {
				flight := fleet.flights[int(next.Add(1)-1)%len(fleet.flights)]
				started := time.Now()
				module, err := flight.module(fleet.answer)
				if err == nil {
					last[worker], err = module.evaluate(fleet.program, fleet.input)
				}
				if err != nil {
					errs[worker] = err
					return
				}
				took[worker] = append(took[worker], time.Since(started))
			}
		})
	}
	group.Wait()

	all := slices.Concat(took...)
	slices.Sort(all)
	for _, err := range errs {
		if err != nil {
			return result{}, err
		}
	}
	if len(all) == 0 {
		return result{}, fmt.Errorf("no evaluation ended within %v", duration)
	}
	milliseconds := func(percent int) float64 {
		return float64(all[(len(all)-1)*percent/100].Microseconds()) / 1000
	}
	return result{
		Runs: len(all), Seconds: time.Since(began).Seconds(), CPUSeconds: cpuTime() - cpuBefore,
		Loads: fleet.loads() - loadsBefore, MedianMS: milliseconds(50), P99MS: milliseconds(99), Output: string(last[0]),
	}, nil
}

func (fleet *fleet) loads() (sum int64) {
	for _, flight := range fleet.flights {
		sum += flight.loads.Load()
	}
	return sum
}

// cpuTime is the user and system time of this process in seconds.
func cpuTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
