#include "wasm/code_cache.h"

#include "base/assert.h"
#include "base/result.h"
#include "io/event.h"
#include "io/file.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/compiler_process.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/internal/code_files.h"
#include "wasm/module.h"
#include "wasm/module_header.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

namespace hangar::wasm {

namespace {

// What is cheap to see is seen before a process is started.
Result<> check(const Digest& digest, const std::string& wasm_bytes) {
  const auto bytes = std::as_bytes(std::span(wasm_bytes));
  std::ignore = HANGAR_TRY(read_module_header(bytes));
  if (Digest::of(bytes) != digest) {
    return fail(ErrorKind::InvalidInput, "the module is not the one its digest names");
  }
  return {};
}

}  // namespace

CodeCache::CodeCache(Engine& engine, Options options)
    : engine_(engine), options_(std::move(options)), compiling_(engine.loop(), 1) {}

CodeCache::~CodeCache() {
  HANGAR_ASSERT(loading_.empty(), "loads end before their cache does");
}

Result<> CodeCache::open() {
  HANGAR_TRY(io::make_private_directory(options_.directory));
  internal::remove_leftovers(options_.directory);
  return {};
}

bool CodeCache::has(const Digest& digest) const {
  const auto live = live_.lower_bound({digest, Module::Allocation::Pooled});
  if (live != live_.end() && live->first.first == digest && !live->second.expired()) return true;
  return internal::find_entry(options_.directory, internal::key_of(digest)).has_value();
}

io::Task<Result<std::shared_ptr<const Module>>> CodeCache::load(
    Digest digest, std::shared_ptr<const std::string> wasm_bytes, std::stop_token stop,
    Module::Allocation allocation) {
  const Key key(digest, allocation);
  while (true) {
    if (auto module = find_live(key)) co_return module;
    const auto [waiting, is_first] = loading_.try_emplace(key);
    if (is_first) break;
    // Somebody is at it. If that fails it is tried again here: their bytes, and their reasons to
    // stop, need not be ours.
    const io::OneShot<bool> done(engine_.loop());
    waiting->second.push_back(done);
    co_await done.wait();
    if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopped");
  }
  Loaded loaded = co_await load_alone(key, std::move(wasm_bytes), std::move(stop));
  std::erase_if(live_, [](const auto& entry) { return entry.second.expired(); });
  if (loaded && allocation != Module::Allocation::Sleepable) live_[key] = *loaded;
  const auto waiting = loading_.extract(key);
  for (const io::OneShot<bool>& done : waiting.mapped())
    done.set(true);
  co_return loaded;
}

io::Task<Result<std::shared_ptr<const Module>>> CodeCache::load_alone(
    Key key, std::shared_ptr<const std::string> wasm_bytes, std::stop_token stop) {
  Loaded cached = co_await load_cached(key);
  const bool is_missing = !cached && (cached.error().kind() == ErrorKind::NotFound ||
                                      cached.error().kind() == ErrorKind::Corrupt);
  if (!is_missing) co_return cached;
  if (wasm_bytes == nullptr) {
    co_return fail(ErrorKind::NotFound, "the module's native code is not cached");
  }
  HANGAR_CO_TRY(co_await compile_entry(key.first, std::move(wasm_bytes), std::move(stop)));
  co_return co_await load_cached(key);
}

io::Task<Result<std::shared_ptr<const Module>>> CodeCache::load_cached(Key key) {
  co_return co_await engine_.workers().run([this, key]() -> Loaded {
    const auto& [digest, allocation] = key;
    const auto entry = internal::find_entry(options_.directory, internal::key_of(digest));
    if (!entry) return fail(ErrorKind::NotFound, "the module's native code is not cached");
    return internal::load_entry(engine_, digest, allocation, *entry);
  });
}

io::Task<Result<>> CodeCache::compile_entry(Digest digest,
                                            std::shared_ptr<const std::string> wasm_bytes,
                                            std::stop_token stop) {
  HANGAR_CO_TRY(
      co_await engine_.workers().run([digest, wasm_bytes] { return check(digest, *wasm_bytes); }));
  const io::Semaphore::Slot slot = co_await compiling_.acquire();
  if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopped");

  const std::filesystem::path temporary = internal::temporary_name(options_.directory);
  Result<> done = co_await compile(engine_.loop(), engine_.workers(),
                                   {.program = options_.compile_program,
                                    .wasm_bytes = std::move(wasm_bytes),
                                    .output = temporary,
                                    .deadline = options_.compile_deadline},
                                   stop);
  if (done) {
    ++compiled_count_;
    done = co_await engine_.workers().run([this, temporary, key = internal::key_of(digest)] {
      Result<> published = internal::publish(temporary, key);
      if (published) internal::evict(options_.directory, options_.bytes_max, key);
      return published;
    });
  }
  if (!done) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
  }
  co_return done;
}

std::shared_ptr<const Module> CodeCache::find_live(const Key& key) {
  const auto found = live_.find(key);
  if (found == live_.end()) return nullptr;
  auto module = found->second.lock();
  if (module == nullptr) live_.erase(found);
  return module;
}

}  // namespace hangar::wasm
