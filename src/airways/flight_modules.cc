#include "airways/flight_modules.h"

#include "airways/internal/digest.h"
#include "base/limits.h"
#include "base/result.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "modules/fetcher.h"
#include "modules/reference.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/module.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>

namespace hangar::airways {

namespace {

// Pages come back from the page cache when the module runs again, within 2 ms: no memory for code
// that nobody runs.
constexpr std::chrono::seconds kPagesKeptUnused{2};
// Loading again costs a checksum of the code, some 40 ms: more than mapping, but not for ever.
constexpr std::chrono::minutes kKeptUnused{5};

// Some thousand flights.
constexpr std::uint64_t kIndexBytesMax = 4 * limits::kMiB;

}  // namespace

FlightModules::FlightModules(Parts parts) : parts_(std::move(parts)) {}

void FlightModules::open() {
  if (parts_.index_file.empty()) return;
  const Result<std::string> text = io::read_file(parts_.index_file, kIndexBytesMax);
  const Result<json::Value> index = text ? json::parse(*text) : std::unexpected(text.error());
  const json::Object* const entries = index ? index->if_object() : nullptr;
  if (entries == nullptr) return;
  for (const auto& entry : *entries) {
    prepared_[entry.key()] = {
        .sha256 = std::string(json::string_at(entry.value(), {"sha256"})),
        .sha1 = std::string(json::string_at(entry.value(), {"sha1"})),
        .resolved = std::string(json::string_at(entry.value(), {"resolved"}))};
  }
}

io::Task<void> FlightModules::remember(std::string key, FlightModule module) {
  if (prepared_.size() >= limits::kModuleReferencesMax) prepared_.clear();  // Costs a look each.
  prepared_[std::move(key)] = std::move(module);
  if (parts_.index_file.empty()) co_return;
  json::Object index;
  for (const auto& [known, prepared] : prepared_) {
    index[known] = json::Object{
        {"sha256", prepared.sha256}, {"sha1", prepared.sha1}, {"resolved", prepared.resolved}};
  }
  std::string text = json::dump(index);
  // Too large an index would not be read again; a failed write costs time at the next start.
  if (text.size() > kIndexBytesMax) co_return;
  std::ignore = co_await parts_.workers.run(
      [path = parts_.index_file, text = std::move(text)] { return io::write_file(path, text); });
}

io::Task<Result<FlightModule>> FlightModules::prepare(FlightSource source, std::stop_token stop) {
  HANGAR_CO_TRY(parts_.allow_list.check(source.url));
  modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(source.url));
  const std::string display = reference.display();
  const std::string key = (source.insecure ? "insecure:" : "") + reference.key();
  modules::FetchOptions options{.expected_sha256 = std::move(source.checksum),
                                .insecure = source.insecure};
  FlightModule known;
  if (const auto seen = prepared_.find(key); seen != prepared_.end()) {
    known = seen->second;
    const Result<wasm::Digest> digest = wasm::Digest::from_hex(known.sha256);
    if (digest && parts_.code_cache.has(*digest)) options.have_sha256 = known.sha256;
  }
  modules::Fetched fetched =
      HANGAR_CO_TRY(co_await parts_.fetcher.fetch(std::move(reference), std::move(options), stop));
  if (fetched.is_unchanged) co_return known;

  FlightModule module{.sha256 = fetched.sha256, .resolved = fetched.resolved};
  const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(module.sha256));
  const auto bytes = std::make_shared<const std::string>(std::move(fetched.wasm));
  module.sha1 = co_await parts_.workers.run([bytes] { return internal::sha1_hex(*bytes); });
  const Result<std::shared_ptr<const wasm::Module>> code =
      co_await parts_.code_cache.load(digest, bytes, stop);
  const Result<> checked = code ? parts_.runtime.check(**code) : std::unexpected(code.error());
  if (!checked) {
    co_return std::unexpected(Error(checked.error()).in(fmt::format("module {}", display)));
  }
  co_await remember(key, module);
  co_return module;
}

io::Task<Result<std::shared_ptr<const wasm::Module>>> FlightModules::load(FlightModule module,
                                                                          std::stop_token stop) {
  if (const auto found = kept_.find(module.sha256); found != kept_.end()) {
    found->second.last_used = io::Loop::now();
    found->second.has_pages = true;
    watch_pages();
    co_return found->second.module;
  }
  const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(module.sha256));
  std::shared_ptr<const wasm::Module> loaded =
      HANGAR_CO_TRY(co_await parts_.code_cache.load(digest, nullptr, std::move(stop)));
  watch_pages();
  kept_[module.sha256] = {.module = loaded, .last_used = io::Loop::now()};
  co_return loaded;
}

void FlightModules::watch_pages() {
  if (std::exchange(is_watching_pages_, true)) return;
  release_timer_ = parts_.loop.after(kPagesKeptUnused, [this] { release_unused(); });
}

void FlightModules::release_unused() {
  const Instant now = io::Loop::now();
  std::erase_if(kept_,
                [now](const auto& entry) { return entry.second.last_used + kKeptUnused <= now; });
  is_watching_pages_ = false;
  bool have_pages = false;
  for (auto& [sha256, kept] : kept_) {
    if (kept.has_pages && kept.last_used + kPagesKeptUnused <= now) {
      kept.has_pages = false;
      parts_.workers.submit([module = kept.module] { module->release_pages(); });
    }
    have_pages = have_pages || kept.has_pages;
  }
  if (have_pages) {
    watch_pages();
  } else if (!kept_.empty()) {
    // An idle host is idle: no look every other second at modules that are only mapped.
    release_timer_ = parts_.loop.after(kKeptUnused, [this] { release_unused(); });
  }
}

}  // namespace hangar::airways
