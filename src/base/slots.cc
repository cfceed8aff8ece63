#include "base/slots.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

// A sanitizer sees a use after free only when every slot is a separate allocation.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HANGAR_SLOTS_ARE_ALLOCATIONS 1
#else
#define HANGAR_SLOTS_ARE_ALLOCATIONS 0
#endif

namespace hangar::slots {

namespace {

// Small enough that a few slots of each size cost little, large enough that system calls are rare.
constexpr std::size_t kSlabBytes = std::size_t{64} << 10U;

// The steps between slot sizes: from some size on a slot wastes a sixteenth at most. Larger
// requests go to the heap.
struct Steps {
  std::size_t up_to;
  std::size_t step;
};
constexpr std::array kSteps = {Steps{.up_to = 256, .step = 16}, Steps{.up_to = 2048, .step = 64},
                               Steps{.up_to = 8192, .step = 256}};
constexpr std::size_t kSlotBytesMax = kSteps.back().up_to;

struct SlotSize {
  std::size_t index = 0;  // Among all sizes of slots.
  std::size_t bytes = 0;
};

// The smallest slot that `size` fits into; for a request that goes to the heap, `size` itself.
constexpr SlotSize slot_for(std::size_t size) {
  std::size_t index = 0;
  std::size_t from = 0;
  for (const auto& [up_to, step] : kSteps) {
    if (size <= up_to) {
      const std::size_t steps = (size - from + step - 1) / step;
      return {.index = index + steps - 1, .bytes = from + steps * step};
    }
    index += (up_to - from) / step;
    from = up_to;
  }
  return {.index = index, .bytes = size};
}
constexpr std::size_t kSizeCount = slot_for(kSlotBytesMax).index + 1;
static_assert(slot_for(1).index == 0 && slot_for(16).index == 0 && slot_for(17).index == 1);
static_assert(slot_for(256).index == 15 && slot_for(257).index == 16 && slot_for(320).index == 16);
static_assert(kSizeCount == 256 / 16 + (2048 - 256) / 64 + (8192 - 2048) / 256);

std::atomic<std::size_t> mapped_bytes = 0;

// The header of a slab of 64 KiB. Slabs are aligned to their size, so that a slot's address leads
// to its slab.
struct alignas(16) Slab {
  struct FreeSlot {
    FreeSlot* next;
  };

  Slab* next = nullptr;  // The next slab of this size with room.
  Slab* previous = nullptr;
  FreeSlot* freed = nullptr;
  std::uint32_t used = 0;
  std::uint32_t untouched = sizeof(Slab);  // The offset of the first slot that was never taken.

  static Slab* of(void* slot) {
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(slot) & (kSlabBytes - 1);
    return reinterpret_cast<Slab*>(static_cast<std::byte*>(slot) - offset);
  }
  static Slab* map();
  // False when the kernel refuses to split the mapping in two: a process may have a limited number.
  bool unmap();

  [[nodiscard]] bool has_room(std::size_t size) const {
    return freed != nullptr || untouched + size <= kSlabBytes;
  }
  void* take(std::size_t size) {
    ++used;
    if (freed != nullptr) return std::exchange(freed, freed->next);
    void* const slot = reinterpret_cast<std::byte*>(this) + untouched;
    untouched += static_cast<std::uint32_t>(size);
    return slot;
  }
  void give_back(void* slot) {
    --used;
    freed = std::construct_at(static_cast<FreeSlot*>(slot), freed);
  }
};

Slab* Slab::map() {
  // A mapping of twice the size contains an aligned slab.
  void* const mapping =
      ::mmap(nullptr, 2 * kSlabBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapping);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) & (kSlabBytes - 1);
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + kSlabBytes, kSlabBytes - before);
  // A huge page for a few objects is what slabs exist to avoid.
  ::madvise(begin + before, kSlabBytes, MADV_NOHUGEPAGE);
  mapped_bytes += kSlabBytes;
  return std::construct_at(reinterpret_cast<Slab*>(begin + before));
}

bool Slab::unmap() {
  if (::munmap(this, kSlabBytes) != 0) return false;
  mapped_bytes -= kSlabBytes;
  return true;
}

// The slabs of one size.
class Shelf {
 public:
  void* take(std::size_t size) {
    const std::scoped_lock lock(mutex_);
    if (with_room_ == nullptr) put_in_front(Slab::map());
    Slab* const slab = with_room_;
    void* const slot = slab->take(size);
    if (!slab->has_room(size)) remove(slab);
    return slot;
  }

  void give_back(void* slot, std::size_t size) {
    const std::scoped_lock lock(mutex_);
    Slab* const slab = Slab::of(slot);
    const bool had_room = slab->has_room(size);
    slab->give_back(slot);
    // Behind the first slab, which is filled up first.
    if (!had_room) put_second(slab);
    // The last slab with room stays mapped: the next object would only map it again.
    const bool is_only_one = with_room_ == slab && slab->next == nullptr;
    if (slab->used == 0 && !is_only_one) {
      remove(slab);
      if (!slab->unmap()) put_second(slab);
    }
  }

 private:
  void put_in_front(Slab* slab) {
    slab->next = with_room_;
    if (with_room_ != nullptr) with_room_->previous = slab;
    with_room_ = slab;
  }
  void put_second(Slab* slab) {
    if (with_room_ == nullptr) return put_in_front(slab);
    slab->previous = with_room_;
    slab->next = with_room_->next;
    if (slab->next != nullptr) slab->next->previous = slab;
    with_room_->next = slab;
  }
  void remove(Slab* slab) {
    (slab->previous != nullptr ? slab->previous->next : with_room_) = slab->next;
    if (slab->next != nullptr) slab->next->previous = slab->previous;
    slab->next = slab->previous = nullptr;
  }

  std::mutex mutex_;
  Slab* with_room_ = nullptr;
};

// Never destroyed: static objects elsewhere may free slots until the process exits.
std::array<Shelf, kSizeCount>& shelves() {
  using Shelves = std::array<Shelf, kSizeCount>;
  alignas(Shelves) static std::byte memory[sizeof(Shelves)];
  static auto* const all = std::construct_at(reinterpret_cast<Shelves*>(memory));
  return *all;
}

bool is_allocation(std::size_t size) {
  return HANGAR_SLOTS_ARE_ALLOCATIONS != 0 || size == 0 || size > kSlotBytesMax;
}

}  // namespace

void* take(std::size_t size) {
  if (is_allocation(size)) return ::operator new(size);
  const SlotSize slot = slot_for(size);
  return shelves()[slot.index].take(slot.bytes);
}

void give_back(void* slot, std::size_t size) noexcept {
  if (is_allocation(size)) return ::operator delete(slot);
  const SlotSize sized = slot_for(size);
  shelves()[sized.index].give_back(slot, sized.bytes);
}

std::size_t slot_size(std::size_t size) {
  return slot_for(size).bytes;
}

std::size_t slab_bytes() {
  return mapped_bytes;
}

}  // namespace hangar::slots
