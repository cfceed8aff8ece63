// From the reference in a definition to what runs of it, for every feature:
//
//   allow -> parse -> credentials -> fetch -> verify -> make once -> keep
//
// What is made of the bytes (a flight's compiled code, a module that can sleep, a machine) is a
// Maker's business; one supply has one maker.
//
// All of that takes milliseconds or minutes, and a server that belongs to a tenant decides which.
// So nobody waits for it in a reconcile: ask() answers at once with what is known, and says later
// that there is more to know. The answer is about one moment, `since`: what was looked up before it
// does not count, unless the source leaves us waiting.
// Loop thread only.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "base/time.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/turns.h"
#include "io/workers.h"
#include "modules/allow_list.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/module_store.h"
#include "modules/requester.h"
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

// A tag or URL whose content may change is looked at again after this, by default: short enough
// that a new version is taken up within a coffee break, long enough that a thousand definitions ask
// a registry three times a second.
inline constexpr std::chrono::minutes kRecheck{5};

// What is there within this is not worth a write of a status that says that it is awaited.
inline constexpr std::chrono::seconds kQuiet{1};

// Where a module is, as its author wrote it.
struct Source {
  std::string reference;  // As Reference reads it.
  std::string sha256;     // Expected, hex; empty: as the reference says, or any.
  bool insecure = false;

  bool operator==(const Source&) const = default;
};

// What is asked for.
struct Wish {
  Requester requester;
  Source module;
  // Asked only for a module whose Maker says that it misses one.
  std::optional<Source> plugin = {};
  // The digest that it must have, of both together where there is a plugin; empty: any. What the
  // requester was given before, or has a copy of, is not asked for anew. `module.sha256` counts for
  // nothing then.
  std::string pinned_sha256 = {};
  Content content = Content::Module;
  // Only to know what the source serves: nothing is made of it, and what is supplied has no
  // product.
  bool is_look = false;
};

// What a Maker has made. Each supply knows its type.
using Product = std::shared_ptr<const void>;

struct Supplied {
  Product product;
  // Of the uncompressed bytes that it is made of; of a module with its plugin, of both together.
  std::string sha256;
  std::string resolved;  // The reference, pinned by digest where that can be.
};

// Loop thread, but for missing_plugin() and join(), which any thread may call at any time.
class Maker {
 public:
  Maker() = default;
  Maker(const Maker&) = delete;
  Maker& operator=(const Maker&) = delete;
  virtual ~Maker() = default;

  // What was made of these bytes and is there; null when make() needs them.
  [[nodiscard]] virtual Product find(const std::string& sha256) = 0;
  // Called for one digest at a time, for the first consumer that wants it. Errors name nothing of
  // where the bytes come from.
  [[nodiscard]] virtual io::Task<Result<Product>> make(std::string sha256,
                                                       std::shared_ptr<const std::string> bytes,
                                                       budget::Consumer consumer,
                                                       std::stop_token stop) = 0;

  // What make() does, for people.
  [[nodiscard]] virtual std::string_view doing() const { return "compiling"; }

  // The name of the plugin that these bytes need and do not carry.
  [[nodiscard]] virtual std::optional<std::string> missing_plugin(const std::string& bytes) const;
  [[nodiscard]] virtual Result<std::string> join(const std::string& bytes,
                                                 const std::string& plugin) const;
  // Whether definitions come back for a digest (Wish::pinned_sha256) when their reference means
  // another one by then.
  [[nodiscard]] virtual bool is_asked_by_digest() const { return false; }
  // Bytes of a pinned digest that the requester keeps a copy of, gzipped or not. They are compared
  // with the digest. NotFound.
  [[nodiscard]] virtual io::Task<Result<std::string>> recall(Requester requester,
                                                             std::string sha256,
                                                             std::stop_token stop);
};

// Where the supplies of a process get modules from. All of it outlives them.
struct Sources {
  io::Loop& loop;
  io::Workers& workers;
  Fetcher& fetcher;
  ModuleStore& store;  // The fetcher's.
  // Where bytes are reserved that are read to make something of them; null: nowhere.
  budget::ReservationQueue* memory = nullptr;
  AllowList allow_list = {};
  // Without whom nothing is made of a module, or supplied. Null: all modules may run. Not for
  // makers of modules with plugins: what is put together is not signed.
  Verifier* verifier = nullptr;
  Log log = {};
  // How long a source may leave us waiting before what it gave the requester last is an answer.
  Duration patience = std::chrono::seconds(1);
  Duration recheck = kRecheck;
};

class Supply {
 public:
  // The maker outlives this, and this the maker's products.
  Supply(Sources sources, Maker& maker);
  Supply(const Supply&) = delete;
  Supply& operator=(const Supply&) = delete;
  ~Supply();

  struct Answer {
    // What to run. Null: there is nothing yet, or not any more.
    std::optional<Supplied> supplied;
    // What is under way, for people: "fetching, 3.1 of 16.0 MiB". Empty: nothing is, and the answer
    // stands. While it is not, `changed` will be called.
    std::string waits_for;
    // Why the last attempt failed, and how long to leave the source alone.
    std::optional<Error> error;
    Duration retry_in{0};

    [[nodiscard]] bool is_final() const { return waits_for.empty() && !error; }
  };

  // Who asks, as long as it is the same definition: it waits for one wish at a time.
  struct Listener {
    std::string name;
    // The answer is another one; now and then also that there is more of it. In a turn of the loop
    // of its own, and no more once there was a final answer or an error.
    std::function<void()> changed;
  };

  // Begins what has to be done. Looks again if the last look began before `since`, and a failed one
  // when its time has come.
  // What is pinned, was given to the requester and is in memory is answered at once.
  [[nodiscard]] Answer ask(const Wish& wish, Instant since, Listener listener);

  // The listener waits for nothing any more. Work that nobody waits for is ended.
  void leave(std::string_view listener);

  // For who has nothing else to do: commands, and tests. Waits until the answer is final, or an
  // error. stop() follows before this object goes: a look for an older answer may still go on.
  [[nodiscard]] io::Task<Result<Supplied>> get(Wish wish, std::stop_token stop);

  // Whether the module of that digest, which was supplied, may (still) run: the keys may be others
  // by now. At once while they are not. NotFound: its bytes are not here any more.
  [[nodiscard]] io::Task<Result<>> verify(std::string sha256, std::stop_token stop);

  // Ends what is under way and waits for it.
  [[nodiscard]] io::Task<void> stop();

  // After which time a source is to be asked again.
  [[nodiscard]] Duration recheck() const { return sources_.recheck; }

 private:
  struct Entry;
  using Entries = std::map<std::string, std::shared_ptr<Entry>>;

  [[nodiscard]] std::optional<Supplied> find_pinned(const Wish& wish);
  [[nodiscard]] bool is_proven(const std::string& requester, const std::string& sha256);
  // It is known that the module of that digest may run.
  [[nodiscard]] bool is_verified(const std::string& sha256) const;
  void begin(const std::shared_ptr<Entry>& entry);
  [[nodiscard]] io::Task<void> work(std::shared_ptr<Entry> entry);
  // What the requester was given last, when the source does not answer in time.
  [[nodiscard]] io::Task<void> work_without_source(std::shared_ptr<Entry> entry);
  void settle(Entry& entry, Result<Supplied> result);
  void say(Entry& entry, std::string doing);
  void tell(Entry& entry);
  void sweep();

  [[nodiscard]] io::Task<Result<Supplied>> load(std::shared_ptr<Entry> entry);
  [[nodiscard]] io::Task<Result<Supplied>> load_once(std::shared_ptr<Entry> entry);
  [[nodiscard]] io::Task<Result<Supplied>> load_pinned(std::shared_ptr<Entry> entry);
  struct Bytes {
    std::string sha256;
    std::shared_ptr<const std::string> bytes;  // Null: there is a product of them, or the store
                                               // has them.
    std::string resolved;
  };
  [[nodiscard]] io::Task<Result<Bytes>> fetch(std::shared_ptr<Entry> entry, Source source,
                                              Content content, bool may_be_stale);
  [[nodiscard]] io::Task<Result<Bytes>> with_plugin(std::shared_ptr<Entry> entry, Bytes module);
  [[nodiscard]] io::Task<Result<Product>> make(std::shared_ptr<Entry> entry, std::string sha256,
                                               std::shared_ptr<const std::string> bytes);
  [[nodiscard]] io::Task<Result<std::shared_ptr<const std::string>>> read(std::string sha256,
                                                                          std::stop_token stop);
  // `bytes`: null where the store has them.
  [[nodiscard]] io::Task<Result<>> look_at(std::string sha256,
                                           std::shared_ptr<const std::string> bytes,
                                           budget::Consumer consumer, std::stop_token stop);

  const Sources sources_;
  Maker& maker_;
  Entries entries_;
  std::map<std::string, std::shared_ptr<Entry>, std::less<>> waiting_;  // By listener.
  io::Turns<std::string> making_;                                       // By digest.
  // By the digests of a module and of its plugin: that of both together.
  std::map<std::pair<std::string, std::string>, std::string> joined_;
  std::set<std::pair<std::string, std::string>> proven_;  // Requesters and digests, so far.
  io::Loop::Timer sweep_timer_;
  std::size_t working_ = 0;
  std::uint64_t get_count_ = 0;
  io::Event ended_;
};

// What a controller remembers of one definition between reconciles, so that each asks the supply
// what it has to and no more: anew for a new definition, every recheck(), and after forget(); of
// what failed, when its time has come.
class Asking {
 public:
  // What is to run; nothing when there is none yet, or when nothing was asked because the last
  // answer stands. `definition`: another text for another definition.
  [[nodiscard]] std::optional<Supplied> ask(Supply& supply, const Wish& wish,
                                            std::string_view definition, Supply::Listener listener);
  // The source is known to have changed.
  void forget() { is_due_ = true; }
  // As if there had been an answer about this definition just now.
  void put_off(const Supply& supply, std::string_view definition);

  // Whether there was an answer about the definition of the last ask().
  [[nodiscard]] bool is_known() const { return is_known_; }
  // What is awaited, for people. Empty: nothing, or only whether there is something newer.
  [[nodiscard]] std::string waits_for() const { return open_ ? open_->waits_for : std::string(); }
  [[nodiscard]] std::optional<Error> error() const {
    return open_ ? open_->error : std::optional<Error>();
  }
  // It is awaited, and that is not worth saying yet.
  [[nodiscard]] bool is_quiet(Instant now) const {
    return open_ && !open_->waits_for.empty() && now < since_ + kQuiet;
  }
  // When to ask again, if nobody says so before.
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
  std::unique_ptr<Open> open_;  // There may be thousands of these, nearly all without it.
};

}  // namespace hangar::modules
