package guest

import (
	"fmt"
	"unsafe"
)

// malloc is the export that the host calls to place an answer in the module's memory.
//
//go:wasmexport malloc
func malloc(size uint32) uint64 {
	if size == 0 {
		return 0
	}
	memory := make([]byte, size)
	return uint64(pending.Put(address(memory), memory))
}

// Receive takes ownership of a buffer that an import returned.
func Receive(buffer uint64) ([]byte, error) {
	return pending.Take(Buffer(buffer))
}

// Arguments are strings laid out for one import call. They are copied into one block on the heap,
// because the host's call of malloc may move the stack, and with it any string on it. The caller
// keeps the Arguments alive until the import has returned.
type Arguments struct {
	memory  []byte
	offsets []int
}

// MakeArguments copies the strings.
func MakeArguments(values ...string) (*Arguments, error) {
	arguments := &Arguments{offsets: []int{0}}
	for _, value := range values {
		if uint64(len(value)) > 1<<31-1 {
			return nil, fmt.Errorf("argument of %d bytes is too long", len(value))
		}
		arguments.memory = append(arguments.memory, value...)
		arguments.offsets = append(arguments.offsets, len(arguments.memory))
	}
	return arguments, nil
}

// At returns the buffer of the string with the given index.
func (arguments *Arguments) At(index int) uint64 {
	value := arguments.memory[arguments.offsets[index]:arguments.offsets[index+1]]
	return uint64(MakeBuffer(address(value), uint32(len(value))))
}

func address(memory []byte) uint32 {
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
}
