#include "workflows/crash_points.h"

#ifdef HANGAR_CRASH_POINTS

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string>

namespace hangar::workflows {

namespace {

std::string_view name_of(CrashPoint point) {
  switch (point) {
    case CrashPoint::Decided:
      return "decided";
    case CrashPoint::BeforeWrite:
      return "before-write";
    case CrashPoint::AfterWrite:
      return "after-write";
    case CrashPoint::BeforeEffect:
      return "before-effect";
    case CrashPoint::EffectDone:
      return "effect-done";
    case CrashPoint::Acknowledged:
      return "acknowledged";
    case CrashPoint::SignalsWritten:
      return "signals-written";
  }
  return "";
}

struct Wanted {
  std::string name;
  unsigned passes = 1;  // The number of passes until the crash.
};

Wanted read_wanted() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment.
  const char* const variable = std::getenv("HANGAR_CRASH_AT");
  const std::string_view text = variable == nullptr ? "" : variable;
  Wanted wanted;
  const std::size_t colon = text.find(':');
  wanted.name = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), wanted.passes);
  }
  return wanted;
}

}  // namespace

// Loop thread only, like its callers.
void pass(CrashPoint point) {
  static Wanted wanted = read_wanted();
  if (wanted.name != name_of(point) || wanted.passes == 0) return;
  if (--wanted.passes == 0) std::raise(SIGKILL);
}

}  // namespace hangar::workflows

#endif
