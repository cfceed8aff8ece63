#include "airways/flight_modules.h"

#include "airways/airway.h"
#include "airways/ownership.h"
#include "archive/copies.h"
#include "archive/copy_format.h"
#include "archive/limits.h"
#include "archive/module_archive.h"
#include "base/consumer.h"
#include "base/digest.h"
#include "base/limits.h"
#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "modules/limits.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/module.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::airways {

namespace {

// When the module runs again, its pages come back from the page cache within 2 ms, so idle code
// need not take memory.
constexpr std::chrono::seconds kPagesKeptUnused{2};
// Loading again costs a checksum of the code, about 40 ms: more than mapping pages again.
constexpr std::chrono::minutes kKeptUnused{5};

// Enough for some thousand flights.
constexpr std::uint64_t kIndexBytesMax = 4 * limits::kMiB;

}  // namespace

archive::CopyFormat airway_copies() {
  return {.label = "hangar.dev/flight",
          .name_prefix = "flight-",
          .field_manager = std::string(kControllerFieldManager),
          .parts_max = limits::kCopyPartsMax};
}

archive::CopyFormat cluster_flight_copies() {
  return {.label = "hangar.dev/cluster-flight",
          .name_prefix = "cluster-flight-",
          .field_manager = std::string(kControllerFieldManager),
          .parts_max = limits::kCopyPartsMax};
}

archive::CopyFormat flight_copies() {
  return {.label = "hangar.dev/flight-module",
          .name_prefix = "flight-module-",
          .field_manager = std::string(kControllerFieldManager),
          .parts_max = limits::kCopyPartsMax,
          .objects_max = limits::kCopyObjectsMax};
}

modules::Source converter_of(const Airway& airway) {
  return {.reference = airway.converter_url,
          .sha256 = airway.converter_checksum,
          .insecure = airway.terms.flight.insecure};
}

FlightModules::FlightModules(Parts parts)
    : parts_(std::move(parts)), supply_(parts_.sources, *this) {}

void FlightModules::open() {
  if (parts_.index_file.empty()) return;
  const Result<std::string> text = io::read_file(parts_.index_file, kIndexBytesMax);
  const Result<json::Value> index = text ? json::parse(*text) : std::unexpected(text.error());
  const json::Object* const entries = index ? index->if_object() : nullptr;
  if (entries == nullptr) return;
  for (const auto& entry : *entries) {
    FlightModule module{.sha256 = std::string(json::string_at(entry.value(), {"sha256"})),
                        .sha1 = std::string(json::string_at(entry.value(), {"sha1"})),
                        .resolved = {}};
    know(std::move(module));
  }
}

void FlightModules::know(FlightModule module) {
  const auto made = std::make_shared<const FlightModule>(std::move(module));
  made_.insert_or_assign(made->sha256, made);
}

io::Task<void> FlightModules::remember(FlightModule module, budget::Beneficiaries beneficiaries) {
  if (made_.size() >= limits::kModuleReferencesMax) made_.clear();  // They are read again then.
  know(std::move(module));
  if (parts_.index_file.empty()) co_return;
  json::Object index;
  for (const auto& [sha256, made] : made_)
    index[sha256] = json::Object{{"sha256", made->sha256}, {"sha1", made->sha1}};
  std::string text = json::dump(index);
  // An index that is too large would not be read again; a failed write costs time at the next
  // start.
  if (text.size() > kIndexBytesMax) co_return;
  std::ignore = co_await parts_.sources.workers.run_for_any(
      beneficiaries.all(), [path = parts_.index_file, text = std::move(text)] {
        return io::write_file(path, text, io::Durability::None);
      });
}

FlightModule FlightModules::module_of(const modules::Supplied& supplied) {
  FlightModule module = *std::static_pointer_cast<const FlightModule>(supplied.product);
  module.resolved = supplied.resolved;
  return module;
}

Result<> FlightModules::check_allowed(std::string_view reference) const {
  return parts_.sources.allow_list.check(HANGAR_TRY(modules::Reference::parse(reference)));
}

io::Task<Result<std::string>> FlightModules::recall(modules::Requester requester,
                                                    std::string sha256, std::stop_token stop) {
  // A tenant who knows a digest must not thereby get the module: only copies in the tenant's own
  // namespace count, and only for that tenant.
  const std::string tenant = requester.tenant();
  Result<std::string> copy = co_await Maker::recall(std::move(requester), sha256, stop);
  for (const CopyPlace& place : std::vector(copies_)) {
    const std::optional<std::string> where = archive::namespace_for(place.kept_in, tenant);
    if (!where) continue;
    copy = co_await place.archive->read({.namespace_ = *where, .sha256 = sha256}, stop);
    const bool is_elsewhere = !copy && (copy.error().kind() == ErrorKind::NotFound ||
                                        copy.error().kind() == ErrorKind::Denied);
    if (!is_elsewhere) break;
  }
  co_return copy;
}

io::Task<Result<FlightModule>> FlightModules::prepare(modules::Wish wish, std::stop_token stop,
                                                      modules::Supply::OnWaiting on_waiting) {
  const modules::Supplied supplied =
      HANGAR_CO_TRY(co_await supply_.get(std::move(wish), std::move(stop), std::move(on_waiting)));
  co_return module_of(supplied);
}

io::Task<Result<FlightModule>> FlightModules::prepare_in_time(modules::Wish wish,
                                                              std::stop_token stop,
                                                              std::function<void()> on_other) {
  const modules::Supplied supplied = HANGAR_CO_TRY(
      co_await supply_.get_in_time(std::move(wish), std::move(stop), std::move(on_other)));
  co_return module_of(supplied);
}

io::Task<Result<>> FlightModules::check_converter(FlightModule module, std::stop_token stop) {
  const std::shared_ptr<const wasm::Module> code = HANGAR_CO_TRY(
      co_await load(std::move(module), modules::Requester::cluster_wide().consumer("converter"),
                    std::move(stop)));
  co_return parts_.runtime.check_converter(*code);
}

modules::Product FlightModules::find(const std::string& sha256) {
  const auto found = made_.find(sha256);
  const Result<wasm::Digest> digest = wasm::Digest::from_hex(sha256);
  if (found == made_.end() || !digest || !parts_.code_cache.has(*digest)) return nullptr;
  return found->second;
}

io::Task<Result<modules::Product>> FlightModules::make(std::string sha256,
                                                       std::shared_ptr<const std::string> bytes,
                                                       budget::Beneficiaries beneficiaries,
                                                       std::stop_token stop) {
  FlightModule module{.sha256 = sha256, .sha1 = {}, .resolved = {}};
  const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(sha256));
  module.sha1 = co_await parts_.sources.workers.run_for_any(beneficiaries.all(),
                                                            [bytes] { return sha1_hex(*bytes); });
  const std::shared_ptr<const wasm::Module> code = HANGAR_CO_TRY(co_await parts_.code_cache.load(
      digest, std::move(bytes), std::move(stop), wasm::Module::Allocation::Pooled, beneficiaries));
  HANGAR_CO_TRY(parts_.runtime.check(*code));
  co_await remember(module, std::move(beneficiaries));
  co_return modules::Product(std::make_shared<const FlightModule>(std::move(module)));
}

io::Task<Result<std::shared_ptr<const void>>> FlightModules::charge(modules::Product product,
                                                                    budget::Consumer consumer) {
  const auto module = std::static_pointer_cast<const FlightModule>(product);
  const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(module->sha256));
  std::ignore = HANGAR_CO_TRY(co_await parts_.code_cache.charge(digest, 0, std::move(consumer)));
  co_return nullptr;
}

io::Task<Result<std::shared_ptr<const wasm::Module>>> FlightModules::load(FlightModule module,
                                                                          budget::Consumer consumer,
                                                                          std::stop_token stop) {
  // The module was supplied under the keys of that time, which may have changed.
  HANGAR_CO_TRY(co_await supply_.verify(module.sha256, consumer, stop));
  if (const auto found = kept_.find(module.sha256); found != kept_.end()) {
    found->second.last_used = io::Loop::now();
    found->second.has_pages = true;
    watch_pages();
    co_return found->second.module;
  }
  const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(module.sha256));
  std::shared_ptr<const wasm::Module> loaded = HANGAR_CO_TRY(co_await parts_.code_cache.load(
      digest, nullptr, std::move(stop), wasm::Module::Allocation::Pooled, std::move(consumer)));
  watch_pages();
  kept_[module.sha256] = {.module = loaded, .last_used = io::Loop::now()};
  co_return loaded;
}

void FlightModules::watch_pages() {
  if (std::exchange(is_watching_pages_, true)) return;
  release_timer_ = parts_.sources.loop.after(kPagesKeptUnused, [this] { release_unused(); });
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
      parts_.sources.workers.submit(budget::Consumer::of_host("pages"),
                                    [module = kept.module] { module->release_pages(); });
    }
    have_pages = have_pages || kept.has_pages;
  }
  if (have_pages) {
    watch_pages();
  } else if (!kept_.empty()) {
    // An idle host does not wake up every other second for modules that are only mapped.
    release_timer_ = parts_.sources.loop.after(kKeptUnused, [this] { release_unused(); });
  }
}

}  // namespace hangar::airways
