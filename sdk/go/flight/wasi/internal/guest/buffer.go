// Package guest keeps the memory that a flight and its host hand to each other.
//
// A buffer crosses the border as one 64-bit number: its address in the upper half, its length in bytes
// in the lower. What a flight passes stays the flight's and need only live until the call returns. For
// what the host passes back, the host calls the module's malloc while the import is still running,
// fills the memory, and gives up any claim to it.
package guest

import "fmt"

// Buffer names a range of the module's memory: address<<32 | length.
type Buffer uint64

// MakeBuffer packs an address and a length. The empty range is always zero, so that an empty string
// and an empty answer each have one spelling.
func MakeBuffer(address, length uint32) Buffer {
	if length == 0 {
		return 0
	}
	return Buffer(uint64(address)<<32 | uint64(length))
}

// Address returns where the range begins.
func (buffer Buffer) Address() uint32 { return uint32(buffer >> 32) }

// Length returns the size of the range in bytes.
func (buffer Buffer) Length() uint32 { return uint32(buffer) }

// Allocations are the buffers that malloc made and nobody has taken yet. Holding them here is what
// keeps the garbage collector from reusing memory of which only the host knows the address.
type Allocations map[uint32][]byte

// Put remembers memory that begins at the given address.
func (allocations Allocations) Put(address uint32, memory []byte) Buffer {
	if len(memory) == 0 {
		return 0
	}
	allocations[address] = memory
	return MakeBuffer(address, uint32(len(memory)))
}

// Take returns the bytes of a buffer that the host filled, and forgets it. A buffer that Put did not
// make, or that is longer than what Put made, is an error: reading it would be reading someone else's.
func (allocations Allocations) Take(buffer Buffer) ([]byte, error) {
	if buffer.Length() == 0 {
		return nil, nil
	}
	memory, ok := allocations[buffer.Address()]
	if !ok {
		return nil, fmt.Errorf("host returned a buffer at address %d, which was not allocated for it", buffer.Address())
	}
	delete(allocations, buffer.Address())
	if uint64(buffer.Length()) > uint64(len(memory)) {
		return nil, fmt.Errorf("host returned a buffer of %d bytes, of which %d were allocated", buffer.Length(), len(memory))
	}
	return memory[:buffer.Length()], nil
}

// pending is reached by the host through malloc and by the flight through Receive and Free, never at
// once: a module has one thread, and malloc runs inside the import that the flight is waiting for.
var pending = Allocations{}

// Free lets go of a buffer that malloc made and nobody has received. Of any other it does nothing.
func Free(buffer Buffer) { delete(pending, buffer.Address()) }
