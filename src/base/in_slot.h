// For classes whose objects live long and of which there are thousands: what new makes of them lies
// in a slot.
#pragma once

#include "base/slots.h"

#include <cstddef>

namespace hangar::slots {

// A base class. Who is deleted by a pointer to another base has a virtual destructor.
struct InSlot {
  static void* operator new(std::size_t size) { return take(size); }
  static void operator delete(void* at, std::size_t size) noexcept { give_back(at, size); }
};

}  // namespace hangar::slots
