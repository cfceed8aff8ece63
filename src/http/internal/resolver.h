// Resolves host names by c-ares on the loop (ADR 0021): a name server that does not answer delays
// the requests that wait for it, never the loop, and one requester's lookups never delay another's.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <deque>
#include <expected>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace hangar::http::internal {

// IPv6 and IPv4 addresses in text form, in the order in which to try them (RFC 6724).
using Addresses = std::vector<std::string>;

// Loop thread only. Reads /etc/resolv.conf, /etc/nsswitch.conf and /etc/hosts for each lookup, so
// that a change takes effect with the next one.
class Resolver {
 public:
  // `servers`: name servers to use instead of those of /etc/resolv.conf, "address:port" separated
  // by commas. Empty: those of /etc/resolv.conf.
  Resolver(io::Loop& loop, std::string servers);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  ~Resolver();

  struct Question {
    std::string name;
    // Lookups, queue and cache are separate for each requester. Empty: the host itself, whose
    // lookups never wait in a queue.
    std::string requester;
    Duration patience{};
  };
  // Returns at least one address, and few of a name that has very many. An answer is reused for its
  // TTL, at most 30 s; while the name servers do not answer, for up to an hour. Errors: Unavailable
  // (no such name, no answer within `patience`), Cancelled.
  [[nodiscard]] static io::Task<Result<Addresses>> resolve(std::shared_ptr<Resolver> self,
                                                           Question question, std::stop_token stop);

  // Ends every question, also later ones, with Cancelled.
  void stop();

  [[nodiscard]] std::size_t lookup_count() const;

 private:
  class Lookup;
  struct Answer {
    Addresses addresses;
    Duration time_to_live{};
  };
  struct Failure {
    std::string text;
    bool is_authoritative = false;  // The name does not exist: an old answer no longer counts.
  };
  using Waiter = io::OneShot<Result<Addresses>>;

  struct Name {
    std::vector<Waiter> waiters;
    std::shared_ptr<Lookup> lookup;  // Null: no lookup is running.
    bool is_queued = false;
    Addresses known;  // The last answer.
    Instant fresh_until{};
    Instant stale_until{};

    [[nodiscard]] bool is_idle() const { return lookup == nullptr && !is_queued; }
  };
  using Names = std::map<std::string, Name>;
  struct Requester {
    Names names;
    std::deque<std::string> queue;  // Names that wait for a place.
    std::size_t running = 0;
  };

  struct Asked {
    Waiter waiter;
    Addresses known;  // An old answer, if there is one.
  };
  [[nodiscard]] Asked ask(const Question& question);
  void start_next();
  void start(const std::string& requester, const std::string& name);
  void on_answer(const std::string& requester, const std::string& name,
                 std::expected<Answer, Failure> answer);
  static void forget_old(Names& names, Instant now);

  io::Loop& loop_;
  const std::string servers_;
  std::map<std::string, Requester> requesters_;
  std::string served_last_;  // The requester whose turn was last.
  std::size_t tenant_lookups_ = 0;
  Instant next_sweep_{};
  bool is_stopped_ = false;
};

}  // namespace hangar::http::internal
