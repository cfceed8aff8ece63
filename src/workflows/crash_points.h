// Where a test can end the process as kill -9 would: between any two steps that the outside world
// can tell apart.
//
// HANGAR_CRASH_AT=effect-done:3 ends it when it passes that point for the third time. Only builds
// with HANGAR_CRASH_POINTS have them; in others a point is nothing.
#pragma once

#include <string_view>

namespace hangar::workflows {

enum class CrashPoint : unsigned char {
  Decided,         // A machine has decided; nothing is written.
  BeforeWrite,     // The status is about to be written.
  AfterWrite,      // It was.
  BeforeEffect,    // An action is about to change the cluster.
  EffectDone,      // It did; nobody was told.
  Acknowledged,    // Its event is taken in; nothing is written.
  SignalsWritten,  // Signals are taken in and written; their annotations are still there.
};

#ifdef HANGAR_CRASH_POINTS
void pass(CrashPoint point);
#else
inline void pass(CrashPoint /*point*/) {}
#endif

}  // namespace hangar::workflows
