package main

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

const (
	// Below the host's bound on memory (src/airways/limits.h). Garbage is collected only when this is reached: most
	// answers end long before, and everything that they have allocated goes with them.
	memorySoftMax = 48 << 20
	// What an answer about a large resource allocates. An instance whose memory grows is not used for another answer.
	reservedBytes = 6 << 20
)

// Texts of the host and the answer, so that the collector does not free them.
var (
	given  = map[uint32][]byte{}
	result []byte
)

// The host keeps the memory of the module as it is after this.
func init() {
	debug.SetMemoryLimit(memorySoftMax)
	// The code and the tables that each answer needs are made once.
	warmUp := []byte(`{"name": "it", "script": "return function(it) return it.status.ready ~= nil end"}`)
	answer(warmUp, []byte(`{"metadata": {"name": "it"}, "status": {"ready": true, "list": [1, "a", null]}}`))
	reserve := make([]byte, reservedBytes)
	runtime.KeepAlive(reserve)
	reserve = nil
	runtime.GC()
	debug.SetGCPercent(-1)
}

//go:wasmexport malloc
func malloc(size uint32) uint32 {
	// A block of size zero has an address too.
	block := make([]byte, size, max(size, 1))
	at := address(block)
	given[at] = block
	return at
}

// handle_event has the types of a state machine with one result: address << 32 | size.
//
//go:wasmexport handle_event
func handleEvent(ruleAt, ruleSize, resourceAt, resourceSize uint32) uint64 {
	result = answer(given[ruleAt][:ruleSize], given[resourceAt][:resourceSize])
	return uint64(address(result))<<32 | uint64(len(result))
}

func address(block []byte) uint32 {
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(block))))
}
