#include "operators/start_place.h"

#include "operators/limits.h"

#include <utility>

namespace hangar::operators {

using budget::FairSlots;

io::Task<Result<std::unique_ptr<StartPlace>>> StartPlace::acquire(Among among,
                                                                  budget::Consumer consumer,
                                                                  std::uint64_t memory_bytes_min,
                                                                  std::stop_token stop) {
  std::optional<FairSlots::Slot> of_large;
  Duration wait = limits::kOperatorStartWait;
  if (memory_bytes_min >= limits::kLargeGuestBytes) {
    of_large.emplace(HANGAR_CO_TRY(co_await among.large.acquire(consumer, {}, stop)));
    wait = limits::kLargeStartWait;
  }
  FairSlots::Slot slot = HANGAR_CO_TRY(co_await among.all.acquire(consumer, {}, stop));
  co_return std::make_unique<StartPlace>(among.loop, std::move(slot), std::move(of_large), wait);
}

StartPlace::StartPlace(io::Loop& loop, FairSlots::Slot slot,
                       std::optional<FairSlots::Slot> of_large, Duration for_long)
    : slot_(std::move(slot)), of_large_(std::move(of_large)), until_(loop.after(for_long, [this] {
        of_large_.reset();
        slot_.reset();
      })) {}

}  // namespace hangar::operators
