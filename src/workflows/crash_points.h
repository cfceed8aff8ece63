// Points at which a test can kill the process as kill -9 would: between any two steps that an
// outside observer can distinguish.
//
// HANGAR_CRASH_AT=effect-done:3 kills the process when it passes that point for the third time.
// Only builds with HANGAR_CRASH_POINTS have these points; in others a point does nothing.
#pragma once

#include <string_view>

namespace hangar::workflows {

enum class CrashPoint : unsigned char {
  Decided,         // The machine has decided; nothing is written.
  BeforeWrite,     // The status is about to be written.
  AfterWrite,      // The status was written.
  BeforeEffect,    // An action is about to change the cluster.
  EffectDone,      // It has changed the cluster; the machine has not been notified.
  Acknowledged,    // Its event is in the ledger; nothing is written.
  SignalsWritten,  // Signals are in the written ledger; their annotations are still there.
};

#ifdef HANGAR_CRASH_POINTS
void pass(CrashPoint point);
#else
inline void pass(CrashPoint /*point*/) {}
#endif

}  // namespace hangar::workflows
