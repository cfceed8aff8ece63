// Makes `new` allocate in slots (base/slots.h), for classes with thousands of long-lived objects.
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
