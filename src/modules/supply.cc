#include "modules/supply.h"

#include "base/backoff.h"
#include "base/digest.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/beneficiaries.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/reservation_queue.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/internal/fetch_memory.h"
#include "modules/internal/gzip.h"
#include "modules/limits.h"
#include "modules/load_slots.h"
#include "modules/module_store.h"
#include "modules/reference.h"
#include "modules/signature_gate.h"
#include "modules/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::modules {

namespace {

// How long a failing source is left alone, doubled after each further failure: at first about as
// long as a deployment of its server takes, in the end the time between two rechecks.
constexpr ExponentialBackoff kRetry{.min = std::chrono::seconds(1), .max = kRecheck};

// How often a listener is notified of progress: each time costs a status write.
constexpr std::chrono::seconds kToldEvery{5};

// How long an answer and its product are kept: as long as a busy host may take to fetch them. A
// later consumer causes another lookup.
constexpr std::chrono::seconds kAnswerKept{30};

// How many copies of a module's bytes exist at a time, the original included: a rewritten one whose
// instances can sleep, on its way to the compiler; or one that is joined to its plugin.
constexpr std::uint64_t kCopiesMade = 2;

// Copies of modules that are read at the same time. A copy has up to 8 MiB (archive/limits.h), and
// tenants decide how many there are.
constexpr std::size_t kRecallsMax = 8;
// The second attempt has the memory that the first one turned out to need.
constexpr int kRecallAttemptsMax = 2;

// The reason of an error: the store no longer has a module that it had.
constexpr std::string_view kLostInStore = "LostInStore";

std::string key_of(const Wish& wish) {
  const auto text_of = [](const Source& source) {
    return fmt::format("{}\n{}\n{}", source.reference, source.sha256, source.insecure);
  };
  // A digest, because references may contain passwords.
  return sha256_hex(fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", wish.requester.id(),
                                wish.requester.public_because(), text_of(wish.module),
                                wish.plugin ? text_of(*wish.plugin) : "", wish.pinned_sha256,
                                static_cast<int>(wish.content), wish.is_look));
}

// The key of a pinned module: for which requester, from which source.
std::string pin_key(const Wish& wish) {
  return sha256_hex(fmt::format("{}\n{}\n{}\n{}", wish.requester.id(), wish.module.reference,
                                wish.module.insecure, wish.pinned_sha256));
}

// The hash of a definition; never zero, which stands for none.
std::size_t hash_of(std::string_view definition) {
  return std::max<std::size_t>(std::hash<std::string_view>()(definition), 1);
}

// "fetching, 3 of 4 MiB" -> "fetching"
std::string_view stage_of(std::string_view doing) {
  return doing.substr(0, doing.find(','));
}

}  // namespace

std::optional<std::string> Maker::missing_plugin(const std::string& /*bytes*/) const {
  return std::nullopt;
}

Result<std::string> Maker::join(const std::string& /*bytes*/, const std::string& /*plugin*/) const {
  return fail(ErrorKind::InvalidInput, "a module of this kind has no plugin");
}

io::Task<Result<std::shared_ptr<const void>>> Maker::charge(Product /*product*/,
                                                            budget::Consumer /*consumer*/) {
  co_return nullptr;
}

io::Task<Result<std::string>> Maker::recall(Requester /*requester*/, std::string sha256,
                                            std::stop_token /*stop*/) {
  co_return fail(ErrorKind::NotFound, fmt::format("there is no copy of sha256:{}", sha256));
}

struct Supply::Entry {
  explicit Entry(Wish wish_in) : wish(std::move(wish_in)) {}

  const Wish wish;
  Instant asked;
  std::map<std::string, std::function<void()>> listeners;

  // The lookup in progress.
  bool is_working = false;
  std::string doing;
  Instant told;
  std::stop_source stop;
  io::Loop::Timer patience;
  bool is_patience_over = false;
  bool is_overdue = false;  // `supplied` is the answer although the lookup continues.
  bool is_asked = false;    // The source was asked: the entry no longer waits for this host.
  // Who runs an earlier module until the lookup ends.
  struct Early {
    std::string sha256;
    std::function<void()> on_other;
  };
  std::vector<Early> early;

  // The last lookup.
  std::optional<Instant> looked;
  std::uint64_t keys = 0;  // Verifier::generation() when the lookup began.
  std::optional<Supplied> supplied;
  std::optional<Error> error;
  std::uint32_t failures = 0;
  Instant retry_at;
};

Supply::Supply(Sources sources, Maker& maker)
    : sources_(std::move(sources)),
      maker_(maker),
      making_(sources_.loop),
      recalls_(sources_.loop, {.slots = kRecallsMax}),
      ended_(sources_.loop) {}

Supply::~Supply() = default;

Supply::Answer Supply::ask(const Wish& wish, Instant since, Listener listener) {
  if (std::optional<Supplied> pinned = find_pinned(wish)) {
    leave(listener.name);
    Answer answer;
    answer.supplied = std::move(pinned);
    return answer;
  }
  std::shared_ptr<Entry>& slot = entries_[key_of(wish)];
  if (!slot) slot = std::make_shared<Entry>(wish);
  const std::shared_ptr<Entry> entry = slot;
  if (const auto other = waiting_.find(listener.name);
      other != waiting_.end() && other->second != entry) {
    leave(listener.name);
  }
  const Instant now = io::Loop::now();
  entry->asked = now;
  const bool has_other_keys =
      sources_.verifier != nullptr && entry->keys != sources_.verifier->generation();
  const bool is_due = !entry->looked || *entry->looked < since || has_other_keys ||
                      (entry->error ? entry->retry_at <= now : !entry->supplied);
  if (!entry->is_working && is_due) begin(entry);

  Answer answer;
  if (entry->is_working) {
    answer.waits_for = entry->doing;
    // A proof ages while its entry waits in the queue.
    if (entry->is_overdue && may_go_on(*entry, entry->supplied->sha256)) {
      answer.supplied = entry->supplied;
    }
    waiting_[listener.name] = entry;
    entry->listeners.insert_or_assign(std::move(listener.name), std::move(listener.changed));
  } else {
    waiting_.erase(listener.name);
    entry->listeners.erase(listener.name);
    answer.supplied = entry->supplied;
    answer.error = entry->error;
    if (entry->error) answer.retry_in = std::max<Duration>(entry->retry_at - now, Duration(0));
  }
  return answer;
}

std::optional<Supplied> Supply::find_pinned(const Wish& wish) {
  if (wish.pinned_sha256.empty()) return std::nullopt;
  const auto trusted = trusted_.find(pin_key(wish));
  const bool is_trusted = trusted != trusted_.end() && io::Loop::now() < trusted->second.until &&
                          trusted->second.generation == sources_.fetcher.proofs_generation();
  if (!is_trusted) {
    if (standing(wish) != Standing::Fresh) return std::nullopt;
    trust(wish, std::min<Duration>(kRecheck, sources_.fetcher.proof_kept()));
  }
  if (!is_verified(wish.pinned_sha256) || !is_admitted(wish, wish.pinned_sha256)) {
    return std::nullopt;
  }
  Product product = maker_.find(wish.pinned_sha256);
  if (!product) return std::nullopt;
  note_given(wish, wish.pinned_sha256);
  const auto charged = charged_.find({wish.requester.id(), product.get()});
  if (std::shared_ptr<const Charged> shared =
          charged == charged_.end() ? nullptr : charged->second.lock()) {
    product = Product(std::move(shared), charged->first.second);
  }
  if (!is_trusted) {
    ++working_;
    sources_.loop.spawn(charge_later(product, wish.requester.consumer("module")));
  }
  return Supplied{.product = std::move(product), .sha256 = wish.pinned_sha256, .resolved = {}};
}

Standing Supply::standing(const Wish& wish) const {
  return standing(wish, wish.pinned_sha256);
}

Standing Supply::standing(const Wish& wish, const std::string& sha256) const {
  const Result<Reference> reference = Reference::parse(wish.module.reference);
  if (!reference) return Standing::None;
  return sources_.fetcher.standing(wish.requester, *reference, wish.module.insecure, sha256);
}

bool Supply::may_go_on(const Entry& entry, const std::string& sha256) const {
  if (entry.is_asked) return true;
  const bool is_pinned = !entry.wish.pinned_sha256.empty();
  if (is_pinned && given_.contains({entry.wish.requester.id(), sha256})) return true;
  return standing(entry.wish, sha256) >= Standing::Stale;
}

void Supply::trust(const Wish& wish, Duration for_long) {
  if (trusted_.size() >= limits::kModuleReferencesMax) trusted_.clear();  // They are proven again.
  trusted_[pin_key(wish)] = {.until = io::Loop::now() + for_long,
                             .generation = sources_.fetcher.proofs_generation()};
}

void Supply::note_given(const Wish& wish, const std::string& sha256) {
  if (!maker_.is_asked_by_digest()) return;
  if (given_.size() >= limits::kModuleReferencesMax) given_.clear();  // They are proven again.
  given_.emplace(wish.requester.id(), sha256);
}

bool Supply::is_verified(const std::string& sha256) const {
  if (sources_.verifier == nullptr) return true;
  const std::optional<Result<>> verdict = sources_.verifier->verdict(sha256);
  return verdict && *verdict;
}

bool Supply::is_admitted(const Wish& wish, const std::string& sha256) const {
  if (sources_.gate == nullptr) return true;
  const Result<Reference> module = Reference::parse(wish.module.reference);
  if (!module) return false;
  if (!wish.plugin) return sources_.gate->is_admitted(*module, sha256);
  const Result<Reference> plugin = Reference::parse(wish.plugin->reference);
  return plugin && sources_.gate->check(*module) &&
         sources_.gate->is_joined(*module, *plugin, sha256);
}

io::Task<Result<>> Supply::recall_admission(std::shared_ptr<Entry> entry, std::string sha256) {
  const Wish& wish = entry->wish;
  if (sources_.gate == nullptr || is_admitted(wish, sha256)) co_return Result<>();
  SignatureGate& gate = *sources_.gate;
  const Reference reference = HANGAR_CO_TRY(Reference::parse(wish.module.reference));
  std::optional<Reference> plugin;
  if (wish.plugin) plugin = HANGAR_CO_TRY(Reference::parse(wish.plugin->reference));
  const bool is_free = gate.requires_nothing(reference);
  if (plugin && is_free && gate.requires_nothing(*plugin)) co_return Result<>();
  // A signature covers a module without its plugin, so a joined module has no signature; only the
  // sources can decide.
  if (plugin && is_free) {
    co_return fail(ErrorKind::Denied,
                   gate.rule_for(*plugin) + ": only its source can confirm the signature");
  }
  HANGAR_CO_TRY(co_await gate.recall(entry->wish.requester.consumer("signature"), reference, sha256,
                                     entry->stop.get_token()));
  HANGAR_CO_TRY(co_await look_by_rule(std::move(entry), reference, sha256, nullptr));
  if (plugin) gate.note_joined(reference, *plugin, sha256);
  co_return Result<>();
}

io::Task<Result<>> Supply::admit(std::shared_ptr<Entry> entry, Reference reference, bool insecure,
                                 std::string manifest, std::string sha256,
                                 std::shared_ptr<const std::string> bytes) {
  HANGAR_CO_TRY(co_await sources_.gate->admit({.requester = entry->wish.requester,
                                               .reference = reference,
                                               .insecure = insecure,
                                               .manifest = std::move(manifest),
                                               .sha256 = sha256},
                                              entry->stop.get_token()));
  co_return co_await look_by_rule(std::move(entry), std::move(reference), std::move(sha256),
                                  std::move(bytes));
}

io::Task<Result<>> Supply::look_by_rule(std::shared_ptr<Entry> entry, Reference reference,
                                        std::string sha256,
                                        std::shared_ptr<const std::string> bytes) {
  Result<> looked =
      co_await look_at(sources_.gate->verifier_for(reference), std::move(sha256), std::move(bytes),
                       entry->wish.requester.consumer("module"), entry->stop.get_token());
  if (looked) co_return looked;
  co_return std::unexpected(std::move(looked).error().in(
      fmt::format("module {}: {}", reference.display(), sources_.gate->rule_for(reference))));
}

io::Task<Result<>> Supply::verify(std::string sha256, budget::Consumer consumer,
                                  std::stop_token stop) {
  return look_at(sources_.verifier, std::move(sha256), nullptr, std::move(consumer),
                 std::move(stop));
}

io::Task<Result<>> Supply::look_at(Verifier* verifier, std::string sha256,
                                   std::shared_ptr<const std::string> bytes,
                                   budget::Consumer consumer, std::stop_token stop) {
  if (verifier == nullptr) co_return Result<>();
  if (std::optional<Result<>> known = verifier->verdict(sha256)) co_return *std::move(known);
  if (!bytes) bytes = HANGAR_CO_TRY(co_await read(consumer, sha256, stop));
  co_return co_await verifier->verify(std::move(sha256), std::move(bytes), std::move(consumer),
                                      std::move(stop));
}

void Supply::leave(std::string_view listener) {
  const auto found = waiting_.find(listener);
  if (found == waiting_.end()) return;
  const std::shared_ptr<Entry> entry = found->second;
  entry->listeners.erase(found->first);
  waiting_.erase(found);
  const bool is_awaited = !entry->listeners.empty() || !entry->early.empty();
  if (entry->is_working && !is_awaited) entry->stop.request_stop();
}

io::Task<Result<Supplied>> Supply::get(Wish wish, std::stop_token stop, OnWaiting on_waiting) {
  return wait_for(std::move(wish), std::move(stop), std::move(on_waiting), nullptr);
}

io::Task<Result<Supplied>> Supply::get_in_time(Wish wish, std::stop_token stop,
                                               std::function<void()> on_other) {
  return wait_for(std::move(wish), std::move(stop), nullptr, std::move(on_other));
}

io::Task<Result<Supplied>> Supply::wait_for(Wish wish, std::stop_token stop, OnWaiting on_waiting,
                                            std::function<void()> on_other) {
  const Instant since = io::Loop::now();
  const std::string name = fmt::format("get {}", ++get_count_);
  while (true) {
    const io::OneShot<bool> changed(sources_.loop);
    const Answer answer =
        ask(wish, since, {.name = name, .changed = [changed] { changed.set(true); }});
    if (answer.error) co_return std::unexpected(*answer.error);
    // The pinned module is the right one, even if its source has not confirmed it yet.
    const bool is_pinned = !wish.pinned_sha256.empty();
    const bool is_there = answer.supplied && (is_pinned || on_other);
    if (is_there && !is_pinned && !answer.is_final()) {
      // So that the lookup goes on.
      entries_.at(key_of(wish))->early.push_back({answer.supplied->sha256, std::move(on_other)});
    }
    if (is_there) leave(name);
    if (answer.is_final() || is_there) co_return *answer.supplied;
    if (on_waiting) on_waiting(answer.waits_for);
    const std::stop_callback on_stop(stop, [&changed] { changed.set(false); });
    if (!co_await changed.wait()) {
      leave(name);
      co_return fail(ErrorKind::Cancelled, "stopping");
    }
  }
}

io::Task<void> Supply::stop() {
  for (const auto& [key, entry] : entries_)
    entry->stop.request_stop();
  while (working_ > 0)
    (void)co_await ended_.wait({});
}

void Supply::begin(const std::shared_ptr<Entry>& entry) {
  entry->is_working = true;
  entry->is_overdue = false;
  entry->is_asked = false;
  entry->is_patience_over = false;
  entry->doing = "asking for the module";
  entry->looked = entry->told = io::Loop::now();
  entry->stop = std::stop_source();
  if (sources_.verifier != nullptr) entry->keys = sources_.verifier->generation();
  // An unverified result does not count, even while the source does not answer.
  if (entry->supplied && !entry->wish.is_look && !is_verified(entry->supplied->sha256)) {
    entry->supplied.reset();
  }
  await_source(entry);
  ++working_;
  plan_sweep();
  sources_.loop.spawn(work(entry));
}

void Supply::await_source(const std::shared_ptr<Entry>& entry) {
  entry->patience =
      sources_.loop.after(sources_.patience, [this, weak = std::weak_ptr<Entry>(entry)] {
        if (std::shared_ptr<Entry> waiting = weak.lock()) {
          waiting->is_patience_over = true;
          sources_.loop.spawn(work_without_source(std::move(waiting)));
        }
      });
}

io::Task<void> Supply::work(std::shared_ptr<Entry> entry) {
  Result<Supplied> result =
      entry->wish.pinned_sha256.empty() ? co_await load(entry) : co_await load_pinned(entry);
  settle(*entry, std::move(result));
  --working_;
  ended_.notify_all();
}

io::Task<void> Supply::work_without_source(std::shared_ptr<Entry> entry) {
  const Wish& wish = entry->wish;
  const Result<Reference> reference = Reference::parse(wish.module.reference);
  const bool is_pinned = !wish.pinned_sha256.empty();
  if (!entry->is_working || !reference || wish.is_look || (wish.plugin && !is_pinned)) co_return;
  // The source may answer in the meantime, and be asked once more.
  const auto is_still_overdue = [&entry, look = entry->looked] {
    return entry->is_working && entry->looked == look && !entry->stop.stop_requested();
  };
  ++working_;
  if (!entry->supplied) {
    std::optional<Resolution> known;
    if (!is_pinned) {
      known = sources_.fetcher.known(
          wish.requester, *reference,
          {.expected_sha256 = wish.module.sha256, .insecure = wish.module.insecure});
    } else if (standing(wish) != Standing::None ||
               given_.contains({wish.requester.id(), wish.pinned_sha256})) {
      known = {.sha256 = wish.pinned_sha256};
    }
    const bool may_run = known && may_go_on(*entry, known->sha256) &&
                         sources_.allow_list.check(*reference) &&
                         co_await recall_admission(entry, known->sha256);
    if (may_run) {
      Result<Product> product = co_await make(entry, known->sha256, nullptr);
      if (product && is_still_overdue()) {
        entry->supplied = Supplied{
            .product = *std::move(product), .sha256 = known->sha256, .resolved = known->resolved};
      }
    }
  }
  if (entry->supplied && is_still_overdue() && may_go_on(*entry, entry->supplied->sha256)) {
    entry->is_overdue = true;
    tell(*entry);
  }
  --working_;
  ended_.notify_all();
}

void Supply::settle(Entry& entry, Result<Supplied> result) {
  entry.patience.cancel();
  entry.is_working = false;
  entry.is_overdue = false;
  entry.doing.clear();
  if (result) {
    entry.supplied = *std::move(result);
    entry.error.reset();
    entry.failures = 0;
  } else if (result.error().kind() == ErrorKind::Cancelled) {
    // As if it had never started: the next consumer that asks starts it again.
    entry.looked.reset();
  } else {
    entry.supplied.reset();
    entry.retry_at = io::Loop::now() + kRetry.delay(entry.failures++);
    entry.error = std::move(result).error();
  }
  tell(entry);
  for (const auto& [name, changed] : std::exchange(entry.listeners, {}))
    waiting_.erase(name);
  for (Entry::Early& early : std::exchange(entry.early, {})) {
    const bool is_other = entry.supplied && entry.supplied->sha256 != early.sha256;
    if (is_other) sources_.loop.post(std::move(early.on_other));
  }
}

void Supply::say(Entry& entry, std::string doing) {
  const bool is_news = stage_of(doing) != stage_of(entry.doing);
  entry.doing = std::move(doing);
  if (is_news || entry.told + kToldEvery <= io::Loop::now()) tell(entry);
}

void Supply::tell(Entry& entry) {
  entry.told = io::Loop::now();
  for (const auto& [name, changed] : entry.listeners)
    sources_.loop.post(changed);
}

// A planned sweep is not postponed, because requests for modules never stop.
void Supply::plan_sweep() {
  if (std::exchange(is_sweep_planned_, true)) return;
  sweep_timer_ = sources_.loop.after(kAnswerKept, [this] {
    is_sweep_planned_ = false;
    sweep();
  });
}

void Supply::sweep() {
  const Instant now = io::Loop::now();
  // A failed entry is remembered until its retry is due: the next delay depends on the last one.
  std::erase_if(entries_, [now](const auto& entry) {
    const Instant used = std::max(entry.second->asked, entry.second->retry_at);
    return !entry.second->is_working && used + kAnswerKept <= now;
  });
  if (!entries_.empty()) plan_sweep();
}

io::Task<Result<Supplied>> Supply::load_pinned(std::shared_ptr<Entry> entry) {
  const Wish& wish = entry->wish;
  const std::string& sha256 = wish.pinned_sha256;
  Result<Product> product = co_await make_pinned(entry);
  if (!product && product.error().kind() == ErrorKind::NotFound) {
    Result<Supplied> asked = co_await load(entry);
    if (asked) {
      trust(wish, kRecheck);
      co_return asked;
    }
    if (asked.error().kind() == ErrorKind::Cancelled) co_return asked;
    product = co_await make_unconfirmed(entry, asked.error());
    const bool is_none = !product && product.error().kind() == ErrorKind::NotFound;
    if (is_none) co_return asked;
  }
  if (!product) {
    co_return std::unexpected(
        std::move(product).error().in(fmt::format("module sha256:{}", sha256)));
  }
  trust(wish, kRecheck);
  note_given(wish, sha256);
  co_return Supplied{.product = *std::move(product), .sha256 = sha256, .resolved = {}};
}

io::Task<Result<Product>> Supply::make_pinned(std::shared_ptr<Entry> entry) {
  const bool is_here = standing(entry->wish) == Standing::Fresh &&
                       co_await recall_admission(entry, entry->wish.pinned_sha256);
  if (is_here) {
    Result<Product> product = co_await make(entry, entry->wish.pinned_sha256, nullptr);
    if (product || product.error().kind() != ErrorKind::NotFound) co_return product;
  }
  co_return co_await recall(std::move(entry));
}

io::Task<Result<Product>> Supply::recall(std::shared_ptr<Entry> entry) {
  const std::string sha256 = entry->wish.pinned_sha256;
  const Result<> kept = co_await take_copy(entry);
  // The source's bytes need as much disk space, so a fetch would fail too.
  if (!kept && budget::is_too_little_disk(kept.error())) co_return std::unexpected(kept.error());
  if (!kept) {
    const ErrorKind kind = kept.error().kind();
    const bool may_pass = kind == ErrorKind::Unavailable || kind == ErrorKind::Cancelled;
    co_return fail(may_pass ? kind : ErrorKind::NotFound, kept.error().message());
  }
  // A fetch may settle it: the source may have a signature that this host does not know.
  const Result<> admitted = co_await recall_admission(entry, sha256);
  if (!admitted) co_return fail(ErrorKind::NotFound, admitted.error().message());
  co_return co_await make(std::move(entry), sha256, nullptr);
}

// The size of a copy is known only when it has arrived. As a fetch does, a recall that is refused
// the memory for it gives everything back, waits for that much, and reads the copy again.
io::Task<Result<>> Supply::take_copy(std::shared_ptr<Entry> entry) {
  const Wish& wish = entry->wish;
  const Reference reference = HANGAR_CO_TRY(Reference::parse(wish.module.reference));
  const budget::Consumer consumer = wish.requester.consumer("copy");
  const std::stop_token stop = entry->stop.get_token();
  FetchMemory memory(sources_.memory, consumer);
  Result<> kept = fail(ErrorKind::LimitExceeded, "");
  for (int attempt = 0; attempt < kRecallAttemptsMax; ++attempt) {
    HANGAR_CO_TRY(co_await memory.wait(stop, {}));
    const budget::FairSlots::Slot slot =
        HANGAR_CO_TRY(co_await recalls_.acquire(consumer, {}, stop));
    std::string copy =
        HANGAR_CO_TRY(co_await maker_.recall(wish.requester, wish.pinned_sha256, stop));
    const std::uint64_t packed_bytes = copy.size();
    std::uint64_t bytes_max =
        is_gzip(copy) ? claimed_size(copy, packed_bytes, limits::kFetchedBytesMax) : packed_bytes;
    kept = memory.grow_to(packed_bytes + bytes_max);
    if (!kept) continue;
    // Without accounting the claimed size need not be trusted.
    if (sources_.memory == nullptr) bytes_max = limits::kFetchedBytesMax;
    kept = co_await sources_.fetcher.accept_copy(wish.requester, reference, wish.module.insecure,
                                                 wish.pinned_sha256, std::move(copy), bytes_max);
    const bool is_none = !kept && !budget::is_too_little_disk(kept.error());
    if (is_none) kept = fail(ErrorKind::NotFound, kept.error().message());
    break;
  }
  co_return kept;
}

io::Task<Result<Product>> Supply::make_unconfirmed(std::shared_ptr<Entry> entry,
                                                   const Error& error) {
  const Wish& wish = entry->wish;
  const bool is_refused = error.reason() == kRefused;
  if (is_refused) {
    // The refusal came from the module's source, or from its plugin's.
    co_await sources_.fetcher.drop(wish.requester,
                                   HANGAR_CO_TRY(Reference::parse(wish.module.reference)),
                                   wish.module.insecure);
  }
  const bool runs = given_.contains({wish.requester.id(), wish.pinned_sha256});
  const Standing needed = entry->is_asked ? Standing::Old : Standing::Stale;
  if (!runs && (is_refused || standing(wish) < needed)) {
    co_return fail(ErrorKind::NotFound, "no proof");
  }
  const Result<> admitted = co_await recall_admission(entry, wish.pinned_sha256);
  if (!admitted) co_return fail(ErrorKind::NotFound, admitted.error().message());
  sources_.log.warning("source did not confirm the module, using the stored copy",
                       {{"module", "sha256:" + wish.pinned_sha256},
                        {"requester", wish.requester.id()},
                        {"error", error.message()}});
  co_return co_await make(std::move(entry), wish.pinned_sha256, nullptr);
}

io::Task<Result<Supplied>> Supply::load(std::shared_ptr<Entry> entry) {
  Result<Supplied> loaded = co_await load_once(entry);
  // The stored bytes were damaged, or removed to make room: the source still has them.
  const bool is_lost = !loaded && loaded.error().reason() == kLostInStore;
  co_return is_lost ? co_await load_once(std::move(entry)) : std::move(loaded);
}

io::Task<Result<Supplied>> Supply::load_once(std::shared_ptr<Entry> entry) {
  const Wish& wish = entry->wish;
  const bool is_pinned = !wish.pinned_sha256.empty();
  const Reference reference = HANGAR_CO_TRY(Reference::parse(wish.module.reference));
  const std::string doing = fmt::format("module {}", reference.display());
  Source source = wish.module;
  if (is_pinned) source.sha256.clear();
  // A pinned module must not be a stale one: other bytes are useless.
  Bytes bytes = HANGAR_CO_TRY(co_await fetch(entry, std::move(source), wish.content, !is_pinned));
  const std::string resolved = bytes.resolved;
  if (wish.is_look) {
    co_return Supplied{.product = nullptr, .sha256 = std::move(bytes.sha256), .resolved = resolved};
  }
  if (wish.plugin && !maker_.find(bytes.sha256)) {
    const bool is_stored = !bytes.bytes;
    if (is_stored)
      bytes.bytes = HANGAR_CO_TRY(
          co_await read(wish.requester.consumer("module"), bytes.sha256, entry->stop.get_token()));
    const std::optional<std::string> missing = co_await sources_.workers.run(
        wish.requester.consumer("module"),
        [&maker = maker_, text = bytes.bytes] { return maker.missing_plugin(*text); });
    // The task holds no bytes while it waits for a server, or for its turn at making.
    if (is_stored) bytes.bytes.reset();
    if (missing) {
      Result<Bytes> both = co_await with_plugin(entry, std::move(bytes));
      if (!both) {
        co_return std::unexpected(std::move(both).error().in(fmt::format(
            "{} is linked dynamically and needs its plugin {} (as the key {} of its ConfigMap, or "
            "with spec.plugin)",
            doing, *missing, kPluginKey)));
      }
      bytes = *std::move(both);
    }
  }
  if (is_pinned) {
    Result<> same = verify_sha256(wish.pinned_sha256, bytes.sha256);
    if (!same) co_return std::unexpected(std::move(same).error().in(doing));
  }
  if (sources_.gate != nullptr && wish.plugin) {
    const Reference plugin = HANGAR_CO_TRY(Reference::parse(wish.plugin->reference));
    sources_.gate->note_joined(reference, plugin, bytes.sha256);
  }
  Result<Product> product = co_await make(entry, bytes.sha256, std::move(bytes.bytes));
  if (!product) co_return std::unexpected(std::move(product).error().in(doing));
  if (maker_.is_asked_by_digest()) {
    note_given(wish, bytes.sha256);
    co_await sources_.fetcher.grant(wish.requester, reference, wish.module.insecure, bytes.sha256);
  }
  co_return Supplied{
      .product = *std::move(product), .sha256 = std::move(bytes.sha256), .resolved = resolved};
}

io::Task<Result<Supply::Bytes>> Supply::fetch(std::shared_ptr<Entry> entry, Source source,
                                              Content content, bool may_be_stale) {
  Reference reference = HANGAR_CO_TRY(Reference::parse(source.reference));
  HANGAR_CO_TRY(sources_.allow_list.check(reference));
  if (sources_.gate != nullptr) HANGAR_CO_TRY(sources_.gate->check(reference));
  entry->is_asked = false;
  FetchOptions options{
      .expected_sha256 = std::move(source.sha256),
      .insecure = source.insecure,
      .content = content,
      .leave_in_store = true,
      .may_be_stale = may_be_stale,
      .on_progress = [this, entry](std::string doing) { say(*entry, std::move(doing)); },
      .on_turn =
          [this, entry] {
            entry->is_asked = true;
            // Without an answer in time, a proof that was too old in the queue now counts.
            if (entry->is_patience_over && !entry->is_overdue) await_source(entry);
          }};
  // Holds the product until the fetch shows whether it is the right one.
  Product present;
  const std::string likely =
      sources_.fetcher.likely_sha256(entry->wish.requester, reference, options);
  if (!likely.empty()) present = maker_.find(likely);
  // If the bytes still have to be verified and the store has lost them, they come from the source.
  const bool is_free = present && is_verified(likely) &&
                       (sources_.gate == nullptr || sources_.gate->is_admitted(reference, likely));
  if (is_free) options.have_sha256 = likely;
  Result<Fetched> fetched = co_await sources_.fetcher.fetch(entry->wish.requester, reference,
                                                            options, entry->stop.get_token());
  if (fetched && sources_.gate != nullptr && !entry->wish.is_look &&
      !sources_.gate->is_admitted(reference, fetched->sha256)) {
    const auto admit_fetched = [this, &entry, &reference, &source, &fetched] {
      std::shared_ptr<const std::string> bytes;
      if (!fetched->wasm.empty()) bytes = std::make_shared<const std::string>(fetched->wasm);
      return admit(entry, reference, source.insecure, fetched->manifest, fetched->sha256,
                   std::move(bytes));
    };
    say(*entry, "looking for its signature");
    Result<> admitted = co_await admit_fetched();
    if (!admitted && admitted.error().reason() == kNeedsDownload) {
      options.afresh = true;
      fetched = co_await sources_.fetcher.fetch(entry->wish.requester, reference,
                                                std::move(options), entry->stop.get_token());
      if (fetched) admitted = co_await admit_fetched();
    }
    if (fetched && !admitted) fetched = std::unexpected(std::move(admitted).error());
  }
  // The source has answered. The rest is this host's work, and an older answer would be no better.
  entry->patience.cancel();
  if (!fetched) co_return std::unexpected(std::move(fetched).error());
  Bytes bytes{.sha256 = std::move(fetched->sha256),
              .bytes = nullptr,
              .resolved = std::move(fetched->resolved)};
  // The store has the bytes, unless its disk is full.
  if (!fetched->wasm.empty()) {
    bytes.bytes = std::make_shared<const std::string>(std::move(fetched->wasm));
  }
  co_return bytes;
}

io::Task<Result<Supply::Bytes>> Supply::with_plugin(std::shared_ptr<Entry> entry, Bytes module) {
  const Source& plugin = *entry->wish.plugin;
  Bytes fetched = HANGAR_CO_TRY(
      co_await fetch(entry, plugin, Content::Module, entry->wish.pinned_sha256.empty()));
  const std::pair<std::string, std::string> both{module.sha256, fetched.sha256};
  if (const auto known = joined_.find(both); known != joined_.end() && maker_.find(known->second)) {
    co_return Bytes{.sha256 = known->second, .bytes = nullptr, .resolved = {}};
  }
  std::vector<std::string> missing;
  for (const Bytes* const one : {&module, &fetched}) {
    if (!one->bytes) missing.push_back(one->sha256);
  }
  const AllBytes read = HANGAR_CO_TRY(co_await read_all(
      entry->wish.requester.consumer("module"), std::move(missing), entry->stop.get_token()));
  if (!fetched.bytes) fetched.bytes = read.back();
  if (!module.bytes) module.bytes = read.front();
  Bytes joined = HANGAR_CO_TRY(co_await sources_.workers.run(
      entry->wish.requester.consumer("module"),
      [&store = sources_.store, &maker = maker_, bytes = module.bytes, plugin_bytes = fetched.bytes,
       user = entry->wish.requester.budget_tenant()]() -> Result<Bytes> {
        std::string text = HANGAR_TRY(maker.join(*bytes, *plugin_bytes));
        Bytes made{.sha256 = sha256_hex(text), .bytes = nullptr, .resolved = {}};
        // If the disk is full, the module is joined again next time.
        const Result<> kept = store.add(made.sha256, text, user);
        if (!kept && budget::is_too_little_disk(kept.error())) return std::unexpected(kept.error());
        made.bytes = std::make_shared<const std::string>(std::move(text));
        return made;
      }));
  if (joined_.size() >= limits::kModuleReferencesMax) joined_.clear();  // They are joined again.
  joined_[both] = joined.sha256;
  co_return joined;
}

io::Task<Result<Product>> Supply::make(std::shared_ptr<Entry> entry, std::string sha256,
                                       std::shared_ptr<const std::string> bytes) {
  const Requester requester = entry->wish.requester;
  Product product =
      HANGAR_CO_TRY(co_await make_once(std::move(entry), std::move(sha256), std::move(bytes)));
  std::shared_ptr<const void> charge =
      HANGAR_CO_TRY(co_await maker_.charge(product, requester.consumer("module")));
  if (!charge) co_return product;
  const std::pair<std::string, const void*> key{requester.id(), product.get()};
  const auto known = charged_.find(key);
  std::shared_ptr<const Charged> charged = known == charged_.end() ? nullptr : known->second.lock();
  if (!charged) {
    std::erase_if(charged_, [](const auto& one) { return one.second.expired(); });
    charged = std::make_shared<const Charged>(
        Charged{.product = std::move(product), .charge = std::move(charge)});
    charged_[key] = charged;
  }
  co_return Product(std::move(charged), key.second);
}

io::Task<void> Supply::charge_later(Product product, budget::Consumer consumer) {
  (void)co_await maker_.charge(std::move(product), std::move(consumer));
  --working_;
  ended_.notify_all();
}

io::Task<Result<Product>> Supply::make_once(std::shared_ptr<Entry> entry, std::string sha256,
                                            std::shared_ptr<const std::string> bytes) {
  const auto is_looked_at = [this, &sha256] {
    return sources_.verifier == nullptr || sources_.verifier->verdict(sha256).has_value();
  };
  const auto look = [&] {
    return look_at(sources_.verifier, sha256, bytes, entry->wish.requester.consumer("module"),
                   entry->stop.get_token());
  };
  if (is_looked_at()) {
    HANGAR_CO_TRY(co_await look());
    if (Product product = maker_.find(sha256)) co_return product;
  }
  // Bytes are read after the wait for the turn: the task that has it may be waiting for a slot to
  // read them.
  const budget::SharedTurns<std::string>::Turn turn = HANGAR_CO_TRY(co_await making_.take(
      sha256, entry->wish.requester.consumer("module"), entry->stop.get_token()));
  std::shared_ptr<LoadSlots::Slot> slot;
  // Read once for both.
  if (!is_looked_at() && !bytes) {
    bytes =
        HANGAR_CO_TRY(co_await read(turn.beneficiaries(), sha256, entry->stop.get_token(), &slot));
  }
  HANGAR_CO_TRY(co_await look());
  if (Product product = maker_.find(sha256)) co_return product;
  // The stop may have been requested between the previous turn and this one.
  if (entry->stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
  if (!bytes) {
    say(*entry, "waiting to be loaded");
    bytes =
        HANGAR_CO_TRY(co_await read(turn.beneficiaries(), sha256, entry->stop.get_token(), &slot));
  }
  say(*entry, std::string(maker_.doing()));
  Result<Product> made = co_await maker_.make(std::move(sha256), std::move(bytes),
                                              turn.beneficiaries(), entry->stop.get_token());
  // A product may keep the bytes.
  if (slot) slot->release();
  co_return made;
}

// NotFound also for damaged bytes: read() has removed them.
//
// The bytes are reserved for the host as long as anyone holds them: all who may have the module
// share the product. Until the product is made they hold a slot as well.
io::Task<Result<std::shared_ptr<const std::string>>> Supply::read(
    budget::Beneficiaries beneficiaries, std::string sha256, std::stop_token stop,
    std::shared_ptr<LoadSlots::Slot>* slot) {
  std::vector<std::string> only;
  only.push_back(std::move(sha256));
  AllBytes read = HANGAR_CO_TRY(
      co_await read_all(std::move(beneficiaries), std::move(only), std::move(stop), slot));
  co_return std::move(read.front());
}

io::Task<Result<std::shared_ptr<LoadSlots::Slot>>> Supply::load_slot(
    budget::Beneficiaries beneficiaries, std::uint64_t size_bytes, std::stop_token stop) {
  if (sources_.loads == nullptr) co_return std::shared_ptr<LoadSlots::Slot>();
  co_return co_await sources_.loads->acquire(std::move(beneficiaries), size_bytes, std::move(stop));
}

io::Task<Result<Supply::AllBytes>> Supply::read_all(budget::Beneficiaries beneficiaries,
                                                    std::vector<std::string> digests,
                                                    std::stop_token stop,
                                                    std::shared_ptr<LoadSlots::Slot>* slot) {
  struct Held {
    ~Held() {
      if (slot) slot->release();
    }
    std::shared_ptr<LoadSlots::Slot> slot;
    std::optional<budget::Reservation> memory;
    std::vector<std::string> bytes;
  };
  if (digests.empty()) co_return AllBytes();
  const auto held = std::make_shared<Held>();
  if (sources_.memory != nullptr || sources_.loads != nullptr) {
    const std::uint64_t size = co_await sources_.workers.run_for_any(
        beneficiaries.all(), [&store = sources_.store, digests] {
          std::uint64_t sum = 0;
          for (const std::string& sha256 : digests)
            sum += store.unpacked_bytes(sha256);
          return sum;
        });
    held->slot = HANGAR_CO_TRY(co_await load_slot(beneficiaries, size, stop));
    if (sources_.memory != nullptr) {
      const budget::Consumer host{.tenant = budget::Tenant::host(), .name = "modules"};
      auto memory = sources_.memory->accounts().reserve(host, kCopiesMade * size);
      if (memory) {
        held->memory = *std::move(memory);
      } else {
        // A task that waits for memory holds no slot, so that others load meanwhile.
        held->slot.reset();
        held->memory =
            HANGAR_CO_TRY(co_await sources_.memory->reserve(host, kCopiesMade * size, stop));
        held->slot = HANGAR_CO_TRY(co_await load_slot(beneficiaries, size, stop));
      }
    }
  }
  for (const std::string& sha256 : digests) {
    Result<std::string> bytes = co_await sources_.workers.run_for_any(
        beneficiaries.all(), [&store = sources_.store, sha256] { return store.read(sha256); });
    if (!bytes) {
      const bool is_gone =
          bytes.error().kind() == ErrorKind::Corrupt || bytes.error().kind() == ErrorKind::NotFound;
      if (!is_gone) co_return std::unexpected(std::move(bytes).error());
      co_return std::unexpected(Error(ErrorKind::NotFound, bytes.error().message())
                                    .with_reason(std::string(kLostInStore)));
    }
    held->bytes.push_back(*std::move(bytes));
  }
  if (slot != nullptr) *slot = held->slot;
  AllBytes all;
  for (const std::string& bytes : held->bytes)
    all.emplace_back(held, &bytes);
  co_return all;
}

void Asking::put_off(const Supply& supply, std::string_view definition) {
  definition_ = hash_of(definition);
  since_ = io::Loop::now();
  again_at_ = since_ + supply.recheck();
  is_known_ = is_final_ = true;
  is_due_ = false;
  open_.reset();
}

std::optional<Supplied> Asking::ask(Supply& supply, const Wish& wish, std::string_view definition,
                                    Supply::Listener listener) {
  const Instant now = io::Loop::now();
  const std::size_t hash = hash_of(definition);
  if (hash != definition_) {
    is_known_ = false;
    open_.reset();
  }
  if (hash != definition_ || is_due_ || (is_final_ && again_at_ <= now)) {
    definition_ = hash;
    since_ = now;
    is_final_ = is_due_ = false;
  }
  if (is_final_) return std::nullopt;
  Supply::Answer answer = supply.ask(wish, since_, std::move(listener));
  is_final_ = answer.is_final();
  is_known_ = is_known_ || is_final_;
  again_at_ = now + (answer.error ? answer.retry_in : supply.recheck());
  if (is_known_) answer.waits_for.clear();
  // The last error stands until another attempt has ended.
  if (!answer.error && !is_final_ && open_) answer.error = std::move(open_->error);
  open_.reset();
  if (answer.error || !answer.waits_for.empty()) {
    open_ = std::make_unique<Open>(
        Open{.waits_for = std::move(answer.waits_for), .error = std::move(answer.error)});
  }
  return std::move(answer.supplied);
}

Duration Asking::again_in(Instant now) const {
  if (definition_ == 0) return kRecheck;
  const Instant again_at = is_quiet(now) ? since_ + kQuiet : again_at_;
  return std::max<Duration>(again_at - now, std::chrono::milliseconds(1));
}

}  // namespace hangar::modules
