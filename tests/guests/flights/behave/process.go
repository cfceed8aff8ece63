package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"hangar.dev/tests/guests/flights/internal/object"
)

func raw(cr *instance) error {
	_, err := os.Stdout.WriteString(cr.Spec.Stdout)
	return err
}

func repeat(cr *instance) error {
	output := bufio.NewWriter(os.Stdout)
	for range cr.Spec.Count {
		if _, err := output.WriteString(cr.Spec.Stdout); err != nil {
			return err
		}
	}
	return output.Flush()
}

func dump(cr *instance) error {
	arguments, err := json.Marshal(os.Args)
	if err != nil {
		return err
	}
	environment := slices.Sorted(slices.Values(os.Environ()))
	return emit(object.ConfigMap(cr.Metadata.Name, map[string]string{
		"argv":  string(arguments),
		"env":   strings.Join(environment, "\n"),
		"stdin": string(cr.text),
	}))
}

// clocks proves that time passes and that randomness is random, as far as one evaluation can tell.
func clocks(cr *instance) error {
	started := time.Now()
	time.Sleep(10 * time.Millisecond)
	var bytes [16]byte
	if _, err := rand.Read(bytes[:]); err != nil {
		return err
	}
	return emit(object.ConfigMap(cr.Metadata.Name, map[string]string{
		"wall":    started.UTC().Format(time.RFC3339Nano),
		"elapsed": fmt.Sprint(time.Since(started) >= 10*time.Millisecond),
		"random":  hex.EncodeToString(bytes[:]),
	}))
}

func sleep(cr *instance) error {
	time.Sleep(time.Duration(cr.Spec.Milliseconds) * time.Millisecond)
	return basic(cr)
}

// spins is a variable so that a compiler may not remove the loop below.
var spins uint64

func endless(*instance) error {
	for {
		spins++
	}
}

// hoard keeps the allocations of memory alive to the end.
var hoard [][]byte

func memory(cr *instance) error {
	const mib, page = 1 << 20, 4096
	for range cr.Spec.Mib {
		block := make([]byte, mib)
		for offset := 0; offset < mib; offset += page {
			block[offset] = 1
		}
		hoard = append(hoard, block)
	}
	return basic(cr)
}

// hugeStdout writes a well-formed ConfigMap, so that only its size is wrong.
func hugeStdout(cr *instance) error {
	output := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(output, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"huge":"`, cr.Metadata.Name)
	block := strings.Repeat("x", 1<<20)
	for range cr.Spec.Mib {
		if _, err := output.WriteString(block); err != nil {
			return err
		}
	}
	output.WriteString(`"}}`)
	return output.Flush()
}

func panics(cr *instance) error {
	panic("behaviour panic of " + cr.Metadata.Name)
}

func recurse(*instance) error {
	fmt.Fprintln(os.Stderr, descend(1))
	return nil
}

func descend(depth int) int {
	return descend(depth+1) + 1
}
