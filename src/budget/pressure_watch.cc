#include "budget/pressure_watch.h"

#include "base/assert.h"
#include "budget/memory_pressure.h"
#include "io/loop.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace hangar::budget {

PressureWatch::PressureWatch(io::Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)) {
  look_later();
}

PressureWatch::~PressureWatch() {
  HANGAR_ASSERT(listeners_.empty(), "listeners end before the watch");
}

std::unique_ptr<PressureWatch::Listening> PressureWatch::listen(Listener listener) {
  return std::make_unique<Listening>(*this, std::move(listener));
}

void PressureWatch::look_later() {
  timer_ = loop_.after(options_.interval, [this] {
    look();
    look_later();
  });
}

void PressureWatch::look() {
  std::uint64_t guest_bytes = 0;
  for (const Listener* const listener : listeners_)
    if (listener->guest_bytes) guest_bytes += listener->guest_bytes();
  const PressureGuard::Advice advice =
      guard_.on_reading(options_.gauge.read(), guest_bytes, io::Loop::now());
  for (const Listener* const listener : listeners_)
    listener->on_advice(advice);
}

PressureWatch::Listening::Listening(PressureWatch& watch, Listener listener)
    : watch_(watch), listener_(std::move(listener)) {
  watch_.listeners_.push_back(&listener_);
}

PressureWatch::Listening::~Listening() {
  std::erase(watch_.listeners_, &listener_);
}

}  // namespace hangar::budget
