// From the reference in a definition to the product that runs, for every feature:
//
//   allow -> parse -> credentials -> fetch -> verify -> make once -> keep
//
// The verify step checks the rule of the module policy for the reference, and the signature that a
// feature requires.
//
// A Maker makes the product from the bytes (a flight's compiled code, a module that can sleep, a
// machine). A supply has one maker.
//
// This takes milliseconds or minutes, depending on a server that may belong to a tenant. So no
// reconcile waits for it: ask() answers at once with what is known, and calls back when there is
// more. The answer is about one moment, `since`: earlier lookups do not count, unless the source
// does not answer in time. Loop thread only.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "budget/reservation_queue.h"
#include "budget/shared_turns.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/allow_list.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/load_slots.h"
#include "modules/module_store.h"
#include "modules/proofs.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "modules/signature_gate.h"
#include "modules/verifier.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::modules {

// By default the source of a mutable tag or URL is asked again after this time: soon enough that a
// new version is taken up within a coffee break, and late enough that a thousand definitions ask a
// registry only three times a second.
inline constexpr std::chrono::minutes kRecheck{5};

// A module that arrives within this time is not worth a status write that says it is awaited.
inline constexpr std::chrono::seconds kQuiet{1};

// The location of a module, as its author wrote it.
struct Source {
  std::string reference;  // As Reference reads it.
  std::string sha256;     // The expected digest in hex; empty: as the reference says, or any.
  bool insecure = false;

  bool operator==(const Source&) const = default;
};

// A consumer's request.
struct Wish {
  Requester requester;
  Source module;
  // Fetched only if the Maker says that the module needs a plugin.
  std::optional<Source> plugin = {};
  // The digest that the product must have, of both together if there is a plugin; empty: any. A
  // module that the requester may have (proofs.h) comes from the store, whatever its source serves
  // now. `module.sha256` is then ignored.
  std::string pinned_sha256 = {};
  Content content = Content::Module;
  // Only finds out what the source serves: nothing is made, and the supplied result has no product.
  bool is_look = false;
};

// The result of a Maker. Each supply knows its type.
using Product = std::shared_ptr<const void>;

struct Supplied {
  Product product;
  // The digest of the uncompressed bytes; of both together for a module with a plugin.
  std::string sha256;
  std::string resolved;  // The reference, pinned by digest where possible.
};

// Loop thread, but for missing_plugin() and join(), which any thread may call at any time.
class Maker {
 public:
  Maker() = default;
  Maker(const Maker&) = delete;
  Maker& operator=(const Maker&) = delete;
  virtual ~Maker() = default;

  // The existing product of these bytes; null when make() needs them.
  [[nodiscard]] virtual Product find(const std::string& sha256) = 0;
  // Called for one digest at a time, on behalf of all consumers that want it, including those that
  // ask while it is being made. Errors do not mention where the bytes come from.
  [[nodiscard]] virtual io::Task<Result<Product>> make(std::string sha256,
                                                       std::shared_ptr<const std::string> bytes,
                                                       budget::Beneficiaries beneficiaries,
                                                       std::stop_token stop) = 0;

  // Charges the consumer's tenant for the disk space of this product, which the consumer is about
  // to receive. The product counts as used while the result exists. LimitExceeded: the tenant may
  // not have it.
  [[nodiscard]] virtual io::Task<Result<std::shared_ptr<const void>>> charge(
      Product product, budget::Consumer consumer);

  // The activity of make(), for people.
  [[nodiscard]] virtual std::string_view doing() const { return "compiling"; }

  // The name of the plugin that these bytes need and do not contain.
  [[nodiscard]] virtual std::optional<std::string> missing_plugin(const std::string& bytes) const;
  [[nodiscard]] virtual Result<std::string> join(const std::string& bytes,
                                                 const std::string& plugin) const;
  // Whether definitions go on requesting a digest (Wish::pinned_sha256) after their reference leads
  // to another one.
  [[nodiscard]] virtual bool is_asked_by_digest() const { return false; }
  // The bytes of a pinned digest from the requester's own copy, gzipped or not; the supply checks
  // their digest. NotFound.
  [[nodiscard]] virtual io::Task<Result<std::string>> recall(Requester requester,
                                                             std::string sha256,
                                                             std::stop_token stop);
};

// The sources of modules of a process's supplies. All of these outlive the supplies.
struct Sources {
  io::Loop& loop;
  io::Workers& workers;
  Fetcher& fetcher;
  ModuleStore& store;  // The fetcher's.
  // Reserves memory for bytes that are read to make a product; null: no accounting.
  budget::ReservationQueue* memory = nullptr;
  // Slots for bytes that are read to make a product; null: any number at a time.
  LoadSlots* loads = nullptr;
  AllowList allow_list = {};
  // Must approve a module before it is supplied or anything is made of it. Null: all modules may
  // run. Not for makers of modules with plugins: the combined module is not signed.
  Verifier* verifier = nullptr;
  // Admits modules, and each plugin separately, by the rules for their references; in addition to
  // `verifier`. Null: all modules are admitted.
  SignatureGate* gate = nullptr;
  Log log = {};
  // How long a source may take before the answer is what it last gave the requester.
  Duration patience = std::chrono::seconds(1);
  Duration recheck = kRecheck;
};

class Supply {
 public:
  // The maker outlives this object, and this object outlives the maker's products.
  Supply(Sources sources, Maker& maker);
  Supply(const Supply&) = delete;
  Supply& operator=(const Supply&) = delete;
  ~Supply();

  struct Answer {
    // The module to run. std::nullopt: none yet, or no longer.
    std::optional<Supplied> supplied;
    // The current activity, for people: "fetching, 3.1 of 16.0 MiB". Empty: no work is in progress,
    // and the answer stands. Otherwise `changed` will be called.
    std::string waits_for;
    // Why the last attempt failed; `retry_in` is how long to leave the source alone.
    std::optional<Error> error;
    Duration retry_in{0};

    [[nodiscard]] bool is_final() const { return waits_for.empty() && !error; }
  };

  // The consumer, identified by its definition: it waits for one wish at a time.
  struct Listener {
    std::string name;
    // Called when the answer has changed, and periodically when there is progress. Each call is in
    // its own turn of the loop; there are no more after a final answer or an error.
    std::function<void()> changed;
  };

  // Starts the necessary work. Asks the source again if it was last asked before `since`; after a
  // failure, when the retry is due. If the module is pinned, was given to the requester and is in
  // memory, the answer is immediate.
  [[nodiscard]] Answer ask(const Wish& wish, Instant since, Listener listener);

  // The listener no longer waits. Work that no listener waits for is stopped.
  void leave(std::string_view listener);

  // For callers with nothing else to do: commands and tests. Waits for a final answer or an error;
  // meanwhile `on_waiting` gets each Answer::waits_for. Call stop() before this object is
  // destroyed: earlier work may still be running.
  using OnWaiting = std::function<void(const std::string& waits_for)>;
  [[nodiscard]] io::Task<Result<Supplied>> get(Wish wish, std::stop_token stop,
                                               OnWaiting on_waiting = {});
  // As get(), for a reconcile: does not wait for a source that does not answer in time, if it gave
  // the requester a module before. `on_other` is called, in its own turn of the loop, if the source
  // then supplies another one.
  [[nodiscard]] io::Task<Result<Supplied>> get_in_time(Wish wish, std::stop_token stop,
                                                       std::function<void()> on_other);

  // Whether a module that was supplied may still run: the keys may have changed. Immediate while
  // they have not. NotFound: its bytes are no longer here.
  [[nodiscard]] io::Task<Result<>> verify(std::string sha256, budget::Consumer consumer,
                                          std::stop_token stop);

  // Stops all work and waits until it has finished.
  [[nodiscard]] io::Task<void> stop();

  // How long until a source is asked again.
  [[nodiscard]] Duration recheck() const { return sources_.recheck; }

 private:
  struct Entry;
  using Entries = std::map<std::string, std::shared_ptr<Entry>>;

  // `on_other` is null for get().
  [[nodiscard]] io::Task<Result<Supplied>> wait_for(Wish wish, std::stop_token stop,
                                                    OnWaiting on_waiting,
                                                    std::function<void()> on_other);
  [[nodiscard]] std::optional<Supplied> find_pinned(const Wish& wish);
  // Charges the requester for a product that it already has; a refusal changes nothing.
  [[nodiscard]] io::Task<void> charge_later(Product product, budget::Consumer consumer);
  // As Fetcher::standing(), for what is pinned.
  [[nodiscard]] Standing standing(const Wish& wish) const;
  [[nodiscard]] Standing standing(const Wish& wish, const std::string& sha256) const;
  // Whether the requester may keep a module that the source has not confirmed; depends on whether
  // the source was asked (proofs.h).
  [[nodiscard]] bool may_go_on(const Entry& entry, const std::string& sha256) const;
  // Keeps the answer that the pinned module may be supplied.
  void trust(const Wish& wish, Duration for_long);
  void note_given(const Wish& wish, const std::string& sha256);
  // True when the current keys allow the module of that digest to run.
  [[nodiscard]] bool is_verified(const std::string& sha256) const;
  // True when the gate is known to let the module through for this wish, its plugin included.
  [[nodiscard]] bool is_admitted(const Wish& wish, const std::string& sha256) const;
  // Asks the gate about a module that no source has just given. Denied.
  [[nodiscard]] io::Task<Result<>> recall_admission(std::shared_ptr<Entry> entry,
                                                    std::string sha256);
  // Asks the gate about bytes that a source has just given.
  [[nodiscard]] io::Task<Result<>> admit(std::shared_ptr<Entry> entry, Reference reference,
                                         bool insecure, std::string manifest, std::string sha256,
                                         std::shared_ptr<const std::string> bytes);
  void begin(const std::shared_ptr<Entry>& entry);
  void await_source(const std::shared_ptr<Entry>& entry);
  [[nodiscard]] io::Task<void> work(std::shared_ptr<Entry> entry);
  // Supplies what the requester was last given, because the source does not answer in time.
  [[nodiscard]] io::Task<void> work_without_source(std::shared_ptr<Entry> entry);
  void settle(Entry& entry, Result<Supplied> result);
  void say(Entry& entry, std::string doing);
  void tell(Entry& entry);
  void plan_sweep();
  void sweep();

  [[nodiscard]] io::Task<Result<Supplied>> load(std::shared_ptr<Entry> entry);
  [[nodiscard]] io::Task<Result<Supplied>> load_once(std::shared_ptr<Entry> entry);
  [[nodiscard]] io::Task<Result<Supplied>> load_pinned(std::shared_ptr<Entry> entry);
  // From the store, or from the requester's own copy. NotFound.
  [[nodiscard]] io::Task<Result<Product>> make_pinned(std::shared_ptr<Entry> entry);
  [[nodiscard]] io::Task<Result<Product>> recall(std::shared_ptr<Entry> entry);
  // Puts the requester's own copy into the store.
  [[nodiscard]] io::Task<Result<>> take_copy(std::shared_ptr<Entry> entry);
  // The pinned module although its source has not confirmed it, because of `error`; NotFound if the
  // requester may not have it.
  [[nodiscard]] io::Task<Result<Product>> make_unconfirmed(std::shared_ptr<Entry> entry,
                                                           const Error& error);
  struct Bytes {
    std::string sha256;
    std::shared_ptr<const std::string> bytes;  // Null: in the store, or the product exists.
    std::string resolved;
  };
  [[nodiscard]] io::Task<Result<Bytes>> fetch(std::shared_ptr<Entry> entry, Source source,
                                              Content content, bool may_be_stale);
  [[nodiscard]] io::Task<Result<Bytes>> with_plugin(std::shared_ptr<Entry> entry, Bytes module);
  [[nodiscard]] io::Task<Result<Product>> make(std::shared_ptr<Entry> entry, std::string sha256,
                                               std::shared_ptr<const std::string> bytes);
  [[nodiscard]] io::Task<Result<Product>> make_once(std::shared_ptr<Entry> entry,
                                                    std::string sha256,
                                                    std::shared_ptr<const std::string> bytes);
  // `slot`: becomes the slot of the bytes, if they have one; it is released with them at the
  // latest.
  [[nodiscard]] io::Task<Result<std::shared_ptr<const std::string>>> read(
      budget::Beneficiaries beneficiaries, std::string sha256, std::stop_token stop,
      std::shared_ptr<LoadSlots::Slot>* slot = nullptr);
  // Null if their number is not bounded.
  [[nodiscard]] io::Task<Result<std::shared_ptr<LoadSlots::Slot>>> load_slot(
      budget::Beneficiaries beneficiaries, std::uint64_t size_bytes, std::stop_token stop);
  // Several modules of the store, under one reservation and in one slot: a task that holds some
  // must not wait for more.
  using AllBytes = std::vector<std::shared_ptr<const std::string>>;
  [[nodiscard]] io::Task<Result<AllBytes>> read_all(
      budget::Beneficiaries beneficiaries, std::vector<std::string> digests, std::stop_token stop,
      std::shared_ptr<LoadSlots::Slot>* slot = nullptr);
  // As look_at(), by the verifier of the rule for that reference.
  [[nodiscard]] io::Task<Result<>> look_by_rule(std::shared_ptr<Entry> entry, Reference reference,
                                                std::string sha256,
                                                std::shared_ptr<const std::string> bytes);
  // `verifier` may be null: it approves everything. `bytes` is null when the store has them.
  [[nodiscard]] io::Task<Result<>> look_at(Verifier* verifier, std::string sha256,
                                           std::shared_ptr<const std::string> bytes,
                                           budget::Consumer consumer, std::stop_token stop);

  const Sources sources_;
  Maker& maker_;
  Entries entries_;
  std::map<std::string, std::shared_ptr<Entry>, std::less<>> waiting_;  // By listener.
  budget::SharedTurns<std::string> making_;                             // By digest.
  budget::FairSlots recalls_;                                           // Copies being read.
  // Products with their charges, by requester: all consumers of one requester share them.
  struct Charged {
    Product product;
    std::shared_ptr<const void> charge;
  };
  std::map<std::pair<std::string, const void*>, std::weak_ptr<const Charged>> charged_;
  // From the digests of a module and of its plugin to that of both together.
  std::map<std::pair<std::string, std::string>, std::string> joined_;
  // The modules that this process has given, by requester and digest: they keep running, whatever
  // their source says now.
  std::set<std::pair<std::string, std::string>> given_;
  // Pinned modules that may be supplied without another check, by pin_key().
  struct Trust {
    Instant until;  // A workflow asks at each of its steps, and the store searches all its entries.
    std::uint64_t generation = 0;  // Fetcher::proofs_generation().
  };
  std::map<std::string, Trust> trusted_;
  io::Loop::Timer sweep_timer_;
  bool is_sweep_planned_ = false;
  std::size_t working_ = 0;
  std::uint64_t get_count_ = 0;
  io::Event ended_;
};

// A controller's memory of one definition between reconciles, so that it asks the supply no more
// than necessary: for a new definition, every recheck(), after forget(), and after a failure when
// the retry is due.
class Asking {
 public:
  // The module to run; std::nullopt when there is none yet, or when the supply was not asked
  // because the last answer stands. `definition` is a text that differs for each definition.
  [[nodiscard]] std::optional<Supplied> ask(Supply& supply, const Wish& wish,
                                            std::string_view definition, Supply::Listener listener);
  // To be called when the source is known to have changed.
  void forget() { is_due_ = true; }
  // As if the supply had answered for this definition just now.
  void put_off(const Supply& supply, std::string_view definition);

  // True when there was an answer for the definition of the last ask().
  [[nodiscard]] bool is_known() const { return is_known_; }
  // What is awaited, for people. Empty: nothing, or only whether there is something newer.
  [[nodiscard]] std::string waits_for() const { return open_ ? open_->waits_for : std::string(); }
  [[nodiscard]] std::optional<Error> error() const {
    return open_ ? open_->error : std::optional<Error>();
  }
  // Something is awaited, but not for long enough to report it.
  [[nodiscard]] bool is_quiet(Instant now) const {
    return open_ && !open_->waits_for.empty() && now < since_ + kQuiet;
  }
  // When to ask again, unless the listener is called before.
  [[nodiscard]] Duration again_in(Instant now) const;

 private:
  struct Open {
    std::string waits_for;
    std::optional<Error> error;
  };
  std::size_t definition_ = 0;  // A hash; zero: none.
  Instant since_;
  Instant again_at_;
  bool is_known_ = false;  // There was an answer about this definition.
  bool is_final_ = false;
  bool is_due_ = false;
  std::unique_ptr<Open> open_;  // Null for nearly all of the thousands of these objects.
};

}  // namespace hangar::modules
