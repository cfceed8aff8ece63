// The settings of code generation, in one place for both programs: hangar-compile, which makes
// native code, and hangar, which loads it. wasmtime refuses code that was made with other settings.
#pragma once

#include "base/limits.h"

#include <wasm.h>
#include <wasmtime/conf.h>
#include <wasmtime/config.h>

#include <cstdint>
#include <string_view>

#ifdef WASMTIME_FEATURE_GC
#error "the C API was built with garbage collection: its types have other sizes than expected here"
#endif

namespace hangar::wasm {

// Part of the cache's key. Change it together with anything below, with the output of
// link_plugin(), and with every update of wasmtime.
#ifndef HANGAR_OTHER_ENGINE
inline constexpr std::string_view kCodeVersion = "wasmtime-48.0.8-config-2";
inline constexpr bool kIsOtherEngine = false;
#else
// tests/engine: sleeping guests do not depend on the engine.
inline constexpr std::string_view kCodeVersion = "wasmtime-48.0.8-other";
inline constexpr bool kIsOtherEngine = true;
#endif

// A whole 32-bit memory is reserved and guarded, so that loads and stores need no bounds checks.
inline constexpr std::uint64_t kMemoryReservationBytes = 4096 * limits::kMiB;
inline constexpr std::uint64_t kMemoryGuardBytes = (kIsOtherEngine ? 64 : 32) * limits::kMiB;

inline void apply_code_config(wasm_config_t* config) {
  wasmtime_config_epoch_interruption_set(config, true);
  wasmtime_config_consume_fuel_set(config, false);
  wasmtime_config_memory_init_cow_set(config, true);
  wasmtime_config_memory_reservation_set(config, kMemoryReservationBytes);
  wasmtime_config_memory_guard_size_set(config, kMemoryGuardBytes);
  wasmtime_config_memory_may_move_set(config, false);
  wasmtime_config_signals_based_traps_set(config, true);
  // Only wasmtime unwinds through guests, with its own tables: this makes code 10 % smaller.
  wasmtime_config_native_unwind_info_set(config, kIsOtherEngine);
  wasmtime_config_debug_info_set(config, false);
  wasmtime_config_gc_support_set(config, false);
  wasmtime_config_wasm_simd_set(config, true);
  wasmtime_config_wasm_relaxed_simd_set(config, true);
  wasmtime_config_wasm_relaxed_simd_deterministic_set(config, true);
  wasmtime_config_wasm_bulk_memory_set(config, true);
  wasmtime_config_wasm_multi_value_set(config, true);
  wasmtime_config_wasm_tail_call_set(config, true);
  // Features that no guest of a published contract uses stay off, to expose less of wasmtime.
  wasmtime_config_shared_memory_set(config, false);
  wasmtime_config_wasm_multi_memory_set(config, false);
  wasmtime_config_wasm_memory64_set(config, false);
  wasmtime_config_wasm_custom_page_sizes_set(config, false);
  wasmtime_config_wasm_wide_arithmetic_set(config, false);
}

}  // namespace hangar::wasm
