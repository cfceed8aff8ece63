#include "wasm/snapshot/memory_slots.h"

#include "base/assert.h"
#include "base/result.h"
#include "wasm/snapshot/base_image.h"
#include "wasm/snapshot/page_range.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <wasmtime/config.h>
#include <wasmtime/error.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace hangar::wasm {

namespace {

// wasmtime's callback for a new memory has no parameter for its content. It is called on the thread
// that makes the instance, so Next passes the content here.
thread_local MemorySlots::Next* next_memory = nullptr;

std::unexpected<Error> failed(std::string_view doing) {
  return fail(ErrorKind::Unavailable,
              fmt::format("{}: {}", doing, std::generic_category().message(errno)));
}

Result<> make_writable(std::byte* address, std::size_t size) {
  if (size == 0 || ::mprotect(address, size, PROT_READ | PROT_WRITE) == 0) return {};
  return failed("make memory for a guest");
}

}  // namespace

// One reservation of address space: guard, memory, guard. Only the first `size` bytes of the memory
// are accessible. A slot is reserved once and then reused, with other contents each time: fill()
// maps the image's extents over anonymous memory, privately, so that a guest's writes go to pages
// of its own and all other pages are shared through the page cache.
struct MemorySlots::Slot {
  Slot(MemorySlots& owner_in, std::byte* mapping_in, std::size_t mapping_bytes_in,
       std::size_t guard_bytes_in, std::size_t capacity_in)
      : owner(owner_in),
        mapping(mapping_in),
        mapping_bytes(mapping_bytes_in),
        guard_bytes(guard_bytes_in),
        capacity(capacity_in) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() { ::munmap(mapping, mapping_bytes); }

  [[nodiscard]] std::byte* memory() const { return mapping + guard_bytes; }

  Result<> fill(const BaseImage& image, std::size_t bytes) {
    size = bytes;  // From here on clear() has something to undo.
    // A written page must cost one small page: a huge one would cost as much as a hundred guests.
    // The result is ignored, since not every kernel has huge pages.
    ::madvise(memory(), capacity, MADV_NOHUGEPAGE);
    HANGAR_TRY(make_writable(memory(), bytes));
    for (const PageRange& extent : image.extents()) {
      const std::size_t begin = std::min(std::size_t{extent.first} * kPageBytes, bytes);
      const std::size_t end = std::min(std::size_t{extent.end()} * kPageBytes, bytes);
      if (begin < end && ::mmap(memory() + begin, end - begin, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, image.descriptor(),
                                static_cast<off_t>(begin)) == MAP_FAILED) {
        return failed("map an image for a guest");
      }
    }
    return {};
  }

  // Drops pages and mappings in one call. False when the kernel refuses: the slot is then unusable.
  bool clear() {
    const std::size_t used = std::exchange(size, 0);
    return used == 0 ||
           ::mmap(memory(), used, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
  }

  MemorySlots& owner;
  std::byte* const mapping;
  const std::size_t mapping_bytes;
  const std::size_t guard_bytes;
  const std::size_t capacity;
  std::size_t size = 0;
};

MemorySlots::MemorySlots() = default;

MemorySlots::~MemorySlots() = default;

wasmtime_memory_creator_t MemorySlots::creator() {
  return {.env = this, .new_memory = &MemorySlots::new_memory, .finalizer = nullptr};
}

MemorySlots::Next::Next(const BaseImage& image, std::uint64_t memory_bytes)
    : image_(image), memory_bytes_(memory_bytes) {
  HANGAR_ASSERT(next_memory == nullptr, "one memory is made at a time");
  next_memory = this;
}

MemorySlots::Next::~Next() {
  next_memory = nullptr;
}

wasmtime_error_t* MemorySlots::new_memory(void* self, const wasm_memorytype_t* /*type*/,
                                          std::size_t minimum, std::size_t /*maximum*/,
                                          std::size_t reserved_bytes, std::size_t guard_bytes,
                                          wasmtime_linear_memory_t* memory) {
  auto& slots = *static_cast<MemorySlots*>(self);
  Next* const next = next_memory;
  if (next == nullptr) return wasmtime_error_new("the contents of this memory were not given");
  const auto refuse = [next](Error error) {
    next->error_ = std::move(error);
    return wasmtime_error_new("cannot map memory for the guest");
  };
  Result<std::unique_ptr<Slot>> slot = slots.take(reserved_bytes, guard_bytes);
  if (!slot) return refuse(std::move(slot).error());
  // A memory from a snapshot may be larger than the module's minimum.
  const std::size_t bytes = std::max<std::size_t>(minimum, next->memory_bytes_);
  if (bytes > (*slot)->capacity) {
    slots.give(*std::move(slot));
    return wasmtime_error_new("the memory exceeds the size of its slot");
  }
  if (Result<> filled = (*slot)->fill(next->image_, bytes); !filled) {
    slots.give(*std::move(slot));
    return refuse(std::move(filled).error());
  }
  memory->env = slot->release();
  memory->get_memory = &MemorySlots::get_memory;
  memory->grow_memory = &MemorySlots::grow_memory;
  memory->finalizer = &MemorySlots::end_memory;
  return nullptr;
}

std::uint8_t* MemorySlots::get_memory(void* slot, std::size_t* size, std::size_t* capacity) {
  const auto& self = *static_cast<const Slot*>(slot);
  *size = self.size;
  *capacity = self.capacity;
  return reinterpret_cast<std::uint8_t*>(self.memory());
}

wasmtime_error_t* MemorySlots::grow_memory(void* slot, std::size_t size) {
  auto& self = *static_cast<Slot*>(slot);
  if (size <= self.size) return nullptr;
  if (size > self.capacity || !make_writable(self.memory() + self.size, size - self.size)) {
    return wasmtime_error_new("no memory");  // memory.grow returns -1 to the guest.
  }
  self.size = size;
  return nullptr;
}

void MemorySlots::end_memory(void* slot) {
  std::unique_ptr<Slot> owned(static_cast<Slot*>(slot));
  MemorySlots& owner = owned->owner;
  owner.give(std::move(owned));
}

Result<std::unique_ptr<MemorySlots::Slot>> MemorySlots::take(std::size_t reserved_bytes,
                                                             std::size_t guard_bytes) {
  {
    const std::scoped_lock lock(mutex_);
    // The engine reserves the same size for all its memories, so any free slot fits.
    if (!free_.empty()) {
      auto slot = std::move(free_.back());
      free_.pop_back();
      return slot;
    }
  }
  const std::size_t bytes = guard_bytes + reserved_bytes + guard_bytes;
  void* const address =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return failed("reserve address space for a guest");
  return std::make_unique<Slot>(*this, static_cast<std::byte*>(address), bytes, guard_bytes,
                                reserved_bytes);
}

void MemorySlots::give(std::unique_ptr<Slot> slot) {
  if (!slot->clear()) return;  // The destructor unmaps all of it.
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(slot));
}

}  // namespace hangar::wasm
