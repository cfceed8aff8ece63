// A plan for the time in which a guest is idle: how long it stays in memory, and when it is loaded
// ahead. All times are seconds since it became idle.
#pragma once

#include <limits>

namespace hangar::foresight {

// The price worth paying to avoid a late wake, in seconds of the guest's memory. An operator whose
// wakes cannot be predicted stays in memory if they are closer together than this.
inline constexpr float kLatePrice = 60;

inline constexpr float kNever = std::numeric_limits<float>::infinity();

// Costs and goals of a guest's sleep.
struct Terms {
  // The time for which the guest's memory costs as much as the processor time of one suspend
  // and resume.
  float break_even = 1;
  // An upper bound that nearly all resumes keep.
  float resume = 0;
  // A wake that takes longer is late.
  float latency = 0;
  // Idle time of the policy Idle, with which the choices are compared.
  float idle_after = 1;
  // Whether the guest can be brought into memory before it is needed.
  bool can_load_ahead = true;

  // Whether a wake is late if the guest sleeps at that time.
  [[nodiscard]] bool resumes_late() const { return resume > latency; }
  [[nodiscard]] bool loads_ahead() const { return can_load_ahead && resumes_late(); }
  // The price of a wake for which the guest sleeps.
  [[nodiscard]] float missed() const { return break_even + (resumes_late() ? kLatePrice : 0); }
};

struct Plan {
  float keep = 0;          // The guest leaves memory then,
  float load_at = kNever;  // is loaded then, after `keep`,
  float drop_at = kNever;  // and leaves memory again.

  [[nodiscard]] bool loads_ahead() const { return load_at < kNever; }
};

// When a wake is expected. `spread`: nearly all wakes come within at - spread and at + spread.
struct Guess {
  float at = 0;
  float spread = 0;

  [[nodiscard]] bool contains(float gap) const { return gap >= at - spread && gap <= at + spread; }
};

// The cheapest plan if the guess is right.
[[nodiscard]] Plan plan_for(const Guess& guess, const Terms& terms);

struct Price {
  float cost = 0;        // In seconds of the guest's memory.
  bool is_late = false;  // The guest was not in memory, and resumes too slowly.
};
// The cost of the plan if the wake comes `gap` seconds after the guest became idle.
[[nodiscard]] Price price_of(const Plan& plan, float gap, const Terms& terms);

}  // namespace hangar::foresight
