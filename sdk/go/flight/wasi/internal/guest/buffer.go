// Package guest keeps the memory that a flight and its host pass to each other.
//
// A buffer is passed as one 64-bit number: its address in the upper half, its length in bytes in the
// lower. A buffer that the flight passes stays the flight's and need only live until the call returns.
// To pass one back, the host calls the module's malloc while the import is still running, fills the
// memory, and gives up any claim to it.
package guest

import "fmt"

// Buffer names a range of the module's memory: address<<32 | length.
type Buffer uint64

// MakeBuffer packs an address and a length. The empty range is always zero, so that an empty string
// and an empty answer each have a single encoding.
func MakeBuffer(address, length uint32) Buffer {
	if length == 0 {
		return 0
	}
	return Buffer(uint64(address)<<32 | uint64(length))
}

// Address returns the start of the range.
func (buffer Buffer) Address() uint32 { return uint32(buffer >> 32) }

// Length returns the size of the range in bytes.
func (buffer Buffer) Length() uint32 { return uint32(buffer) }

// Allocations are the buffers that malloc allocated and that were not taken yet. Holding them here
// keeps the garbage collector from reusing memory whose address only the host knows.
type Allocations map[uint32][]byte

// Put records memory that begins at the given address.
func (allocations Allocations) Put(address uint32, memory []byte) Buffer {
	if len(memory) == 0 {
		return 0
	}
	allocations[address] = memory
	return MakeBuffer(address, uint32(len(memory)))
}

// Take returns the bytes of a buffer that the host filled, and forgets it. A buffer that Put did not
// make, or that is longer than that, is an error: reading it would read other memory.
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

// The host reaches pending through malloc and the flight through Receive and Free, never at once: a
// module has one thread, and malloc runs inside the import that the flight is waiting for.
var pending = Allocations{}

// Free drops a buffer that malloc allocated and that was not received. For any other it does nothing.
func Free(buffer Buffer) { delete(pending, buffer.Address()) }
