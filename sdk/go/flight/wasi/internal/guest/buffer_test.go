package guest

import "testing"

func TestBufferPacksAddressAboveLength(t *testing.T) {
	tests := map[string]struct {
		address, length uint32
		want            Buffer
	}{
		"small":                   {0x10, 0x20, 0x0000_0010_0000_0020},
		"highest address":         {0xffff_fff0, 0xf, 0xffff_fff0_0000_000f},
		"longest":                 {0x1, 0xffff_ffff, 0x0000_0001_ffff_ffff},
		"empty has no address":    {0x1234, 0, 0},
		"empty at address zero":   {0, 0, 0},
		"bytes at address zero":   {0, 7, 7},
		"sign bit of the address": {0x8000_0000, 1, 0x8000_0000_0000_0001},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			buffer := MakeBuffer(test.address, test.length)
			if buffer != test.want {
				t.Fatalf("MakeBuffer(%#x, %#x) = %#x, want %#x", test.address, test.length, uint64(buffer), uint64(test.want))
			}
			if test.length != 0 && (buffer.Address() != test.address || buffer.Length() != test.length) {
				t.Errorf("%#x unpacks to (%#x, %#x)", uint64(buffer), buffer.Address(), buffer.Length())
			}
		})
	}
}

func TestTakeReturnsABufferOnce(t *testing.T) {
	allocations := Allocations{}
	buffer := allocations.Put(64, []byte("four"))

	got, err := allocations.Take(buffer)
	if err != nil || string(got) != "four" {
		t.Fatalf("Take = %q, %v", got, err)
	}
	if len(allocations) != 0 {
		t.Error("a taken buffer is still held")
	}
	if _, err := allocations.Take(buffer); err == nil {
		t.Error("a buffer was handed out twice")
	}
}

func TestTakeAcceptsAShorterAnswerThanWasAllocated(t *testing.T) {
	allocations := Allocations{}
	allocations.Put(64, []byte("four"))

	got, err := allocations.Take(MakeBuffer(64, 2))

	if err != nil || string(got) != "fo" {
		t.Errorf("Take = %q, %v", got, err)
	}
}

func TestTakeRefusesWhatWasNotAllocated(t *testing.T) {
	tests := map[string]Buffer{
		"another address": MakeBuffer(65, 2),
		"too long":        MakeBuffer(64, 5),
	}
	for name, buffer := range tests {
		t.Run(name, func(t *testing.T) {
			allocations := Allocations{}
			allocations.Put(64, []byte("four"))
			if got, err := allocations.Take(buffer); err == nil {
				t.Errorf("Take = %q, want an error", got)
			}
		})
	}
}

func TestEmptyBuffersNeedNoMemory(t *testing.T) {
	allocations := Allocations{}

	if buffer := allocations.Put(64, nil); buffer != 0 || len(allocations) != 0 {
		t.Errorf("Put of nothing = %#x, holds %d", uint64(buffer), len(allocations))
	}
	if got, err := allocations.Take(0); err != nil || len(got) != 0 {
		t.Errorf("Take(0) = %q, %v", got, err)
	}
}

func TestAFreedBufferIsNoLongerHeld(t *testing.T) {
	t.Cleanup(func() { pending = Allocations{} })
	freed, kept := pending.Put(64, []byte("four")), pending.Put(128, []byte("kept"))

	Free(freed)
	Free(MakeBuffer(200, 4))

	if _, err := pending.Take(freed); err == nil {
		t.Error("a freed buffer is still held")
	}
	if got, err := pending.Take(kept); err != nil || string(got) != "kept" {
		t.Errorf("Take = %q, %v", got, err)
	}
}
