// For classes with thousands of long-lived objects: `new` allocates them in slots.
#pragma once

#include "base/slots.h"

#include <cstddef>

namespace hangar::slots {

// A base class. A class that is deleted through a pointer to another base needs a
// virtual destructor.
struct InSlot {
  static void* operator new(std::size_t size) { return take(size); }
  static void operator delete(void* at, std::size_t size) noexcept { give_back(at, size); }
};

}  // namespace hangar::slots
