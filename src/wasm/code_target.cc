#include "wasm/code_target.h"

#include "wasm/code_config.h"
#include "wasm/digest.h"

#include <fmt/format.h>
#include <sys/auxv.h>

#include <iterator>
#include <string>
#include <string_view>

namespace hangar::wasm {

namespace {

#if defined(__x86_64__)
constexpr std::string_view kArchitecture = "x86_64";
#elif defined(__aarch64__)
constexpr std::string_view kArchitecture = "aarch64";
#else
#error "no native code has been tried on this architecture"
#endif

// The processor features that code generation depends on: a cache on a shared disk, or in a machine
// image, may be used on another processor.
std::string processor_features() {
#if defined(__x86_64__)
  std::string text(kArchitecture);
  const auto add = [&text](std::string_view name, bool has) {
    if (has) fmt::format_to(std::back_inserter(text), " {}", name);
  };
  __builtin_cpu_init();
  add("sse3", __builtin_cpu_supports("sse3"));
  add("ssse3", __builtin_cpu_supports("ssse3"));
  add("sse4.1", __builtin_cpu_supports("sse4.1"));
  add("sse4.2", __builtin_cpu_supports("sse4.2"));
  add("popcnt", __builtin_cpu_supports("popcnt"));
  add("avx", __builtin_cpu_supports("avx"));
  add("avx2", __builtin_cpu_supports("avx2"));
  add("fma", __builtin_cpu_supports("fma"));
  add("bmi", __builtin_cpu_supports("bmi"));
  add("bmi2", __builtin_cpu_supports("bmi2"));
  add("avx512f", __builtin_cpu_supports("avx512f"));
  add("avx512dq", __builtin_cpu_supports("avx512dq"));
  add("avx512vl", __builtin_cpu_supports("avx512vl"));
  add("avx512bitalg", __builtin_cpu_supports("avx512bitalg"));
  add("avx512vbmi", __builtin_cpu_supports("avx512vbmi"));
  return text;
#else
  return fmt::format("{} hwcap {:x} {:x}", kArchitecture, ::getauxval(AT_HWCAP),
                     ::getauxval(AT_HWCAP2));
#endif
}

}  // namespace

CodeTarget CodeTarget::this_machine() {
  return {.engine = std::string(kCodeVersion), .processor = processor_features()};
}

CodeTarget CodeTarget::any_machine() {
  return {.engine = std::string(kCodeVersion), .processor = std::string(kArchitecture)};
}

std::string CodeTarget::id() const {
  return Digest::of(fmt::format("{}\n{}\n", engine, processor)).to_hex().substr(0, 16);
}

}  // namespace hangar::wasm
