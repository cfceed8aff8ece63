// An allocator for long-lived objects that exist by the thousand, such as those of caches.
//
// The heap would place them wherever there is room, between the short-lived allocations of a burst
// of work; when those are freed, the long-lived objects keep the pages in use. Slots share pages
// only with other slots of about the same size: they lie in slabs, and a slab is unmapped when its
// last slot is freed.
#pragma once

#include <cstddef>
#include <limits>
#include <new>

namespace hangar::slots {

// At least `size` bytes, aligned for any type. Any thread. Throws std::bad_alloc.
[[nodiscard]] void* take(std::size_t size);
// Frees what take(size) returned. Any thread.
void give_back(void* slot, std::size_t size) noexcept;

// The bytes that a slot for `size` bytes occupies.
[[nodiscard]] std::size_t slot_size(std::size_t size);
// The bytes of all slabs that are mapped now. Any thread.
[[nodiscard]] std::size_t slab_bytes();

// For containers and std::allocate_shared.
template <class T>
struct Allocator {
  using value_type = T;

  Allocator() = default;
  template <class U>
  explicit(false) Allocator(const Allocator<U>& /*other*/) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    return static_cast<T*>(take(count * sizeof(T)));
  }
  void deallocate(T* at, std::size_t count) noexcept { give_back(at, count * sizeof(T)); }

  bool operator==(const Allocator& /*other*/) const = default;
};

}  // namespace hangar::slots
