// Memory for what there are thousands of and what lives long: the objects of caches.
//
// The heap puts such things wherever there is room, between what a burst of work needs for a
// moment; when that is freed, the pages stay for what lies between. Here they share pages only with
// their like: slots of about the same size lie in slabs, and a slab goes back to the system when
// nothing is left in it.
#pragma once

#include <cstddef>
#include <limits>
#include <new>

namespace hangar::slots {

// At least `size` bytes, aligned for any type. Any thread. Throws std::bad_alloc.
[[nodiscard]] void* take(std::size_t size);
// What take(size) returned. Any thread.
void give_back(void* slot, std::size_t size) noexcept;

// What a slot for `size` bytes takes up.
[[nodiscard]] std::size_t slot_size(std::size_t size);
// Slabs that are there now, in bytes. Any thread.
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
