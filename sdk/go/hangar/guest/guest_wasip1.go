package guest

import (
	"os"
	"sync"
	"syscall"
	"unsafe"
)

//go:wasmimport http-proxy-abi request
func hostRequest(at unsafe.Pointer, size uint32, stream uint32) uint64

//go:wasmimport turn-abi idle_descriptor
func hostIdleDescriptor() uint32

//go:wasmimport turn-abi cancel
func hostCancel(id uint64)

// Main is the program's main, which Go's runtime calls by itself in commands only. It is set before the host first
// calls the module: by a file that `hangar build go` adds to package main, or by package hangar.
var Main func()

var (
	idle    syscall.RawConn
	started bool

	// Memory that the host has asked for and not passed back yet, by address: the collector must not free it.
	allocated = map[uintptr][]byte{}

	calls = struct {
		sync.Mutex
		byID map[uint64]*call
	}{byID: map[uint64]*call{}}
)

func init() {
	var err error
	// The host reports it as non-blocking, so that the runtime polls for it.
	if idle, err = os.NewFile(uintptr(hostIdleDescriptor()), "idle").SyscallConn(); err != nil {
		panic("hangar: the idle descriptor cannot be polled: " + err.Error())
	}
}

//go:wasmexport allocate
func allocate(size uint32) uint32 {
	// A block of size zero has an address too.
	block := make([]byte, size, max(size, 1))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(block)))
	allocated[at] = block
	return uint32(at)
}

//go:wasmexport wakeup
func wakeup(id uint64, finished uint32, at uint32, _ uint32) {
	block := allocated[uintptr(at)]
	delete(allocated, uintptr(at))
	if isInbound(id, block) || isReview(id, block) {
		return
	}
	calls.Lock()
	call := calls.byID[id]
	if finished != 0 {
		delete(calls.byID, id)
	}
	calls.Unlock()
	if call != nil {
		call.deliver(block, finished != 0)
	}
}

// Returns when every other goroutine waits: the runtime polls only then, and the host says that the idle
// descriptor can be read only to a poll that would block.
//
//go:wasmexport run_until_idle
func runUntilIdle() {
	if !started {
		started = true
		if Main == nil {
			panic("hangar: guest.Main is not set: build the program with `hangar build go`, or set it in an init of package main")
		}
		go func() {
			Main()
			os.Exit(0)
		}()
	}
	waitUntilIdle()
	// After everything else, so that metrics include what this turn has done.
	if beginAnswers() {
		waitUntilIdle()
	}
}

func waitUntilIdle() {
	hasPolled := false
	err := idle.Read(func(uintptr) bool {
		defer func() { hasPolled = true }()
		return hasPolled
	})
	if err != nil {
		panic("hangar: the idle descriptor cannot be polled: " + err.Error())
	}
}
