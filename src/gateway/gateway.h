// The API server as a guest sees it.
//
// A guest's HTTP request comes in as it was written; what it may mean is decided here. Watches are
// answered from one upstream watch per resource and scope for the whole host, narrowed to what was
// asked for and to what the guest's identity may see; reads that allow it (resourceVersion=0 or
// "not older than") from the same cache; everything else goes upstream, as that identity, so that
// the API server's own RBAC decides and its own Status is the answer. A guest never sees more than
// a direct request would show it.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/time.h"
#include "gateway/limits.h"
#include "gateway/tenant_bounds.h"
#include "http/client.h"
#include "io/loop.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/discovery.h"
#include "kube/object.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::gateway {

struct RequestTarget;

struct Request {
  std::string method;
  std::string target;  // Path and query; scheme and host are ignored where given.
  http::Headers headers;
  std::string body;
};

// One line of a watch's body, not yet text: the object is the cache's own.
struct WatchLine {
  enum class Type : std::uint8_t { Added, Modified, Deleted };
  Type type = Type::Added;
  kube::ObjectPtr object;
};
// What the body's next piece is: text as it is to be handed over (for a watch one whole line with
// its line end), or a line that is still an object.
using Piece = std::variant<std::string, WatchLine>;
// The line with its line end: {"type":"ADDED","object":{...}}\n.
[[nodiscard]] std::string text_of(const Piece& piece);

// Who hears the answer: on_head once, on_piece any number of times, on_end once, in later turns of
// the loop than begin(). Never after the Exchange is gone.
class Answer {
 public:
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  virtual ~Answer() = default;

  // What the request was understood as, before any of the others; not where it makes no sense.
  virtual void on_understood(const RequestTarget& /*target*/, const Request& /*request*/) {}
  // How much of an answer that comes as a whole is here already; before on_head, any number of
  // times.
  virtual void on_progress(std::uint64_t /*bytes*/) {}
  virtual void on_head(int status, http::Headers headers) = 0;
  virtual void on_piece(Piece piece) = 0;
  // A bookmark line: only the resourceVersion moves. Not worth waking anybody for; the last one
  // counts and stands behind all pieces before it.
  virtual void on_bookmark(std::string line) = 0;
  virtual void on_end() = 0;
};

// A request under way. Destroying it cancels it.
class Exchange {
 public:
  virtual ~Exchange() = default;
};

// Loop thread.
class Gateway {
 public:
  struct Parts {
    io::Loop& loop;
    const kube::Client& client;
    kube::Cache& cache;
    kube::Discovery& discovery;
    Metrics& metrics;
    Log log;
    // How often watches under way are authorised again and get their bookmarks.
    Duration care_period = limits::kGatewayRecheck;
  };
  explicit Gateway(Parts parts);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();  // No Exchange is left.

  // Always answers: what cannot be done is a Status with the code that the API server would give
  // (400 for a path or query that makes no sense, 403, 404, 410, 503 while it is away). `answer`
  // outlives the Exchange. An identity with an empty user is ourselves (hangar run).
  // Bounds for tenants that have others than all.
  void limit_tenants(BoundsOf bounds);
  struct Use {
    std::size_t feeds = 0;
    std::size_t own_watches = 0;
    std::size_t upstream_requests = 0;          // At the API server.
    std::size_t upstream_requests_waiting = 0;  // For their turn.
  };
  // Of a namespace's service accounts.
  [[nodiscard]] Use use_of(const std::string& namespace_name) const;

  [[nodiscard]] std::unique_ptr<Exchange> begin(const kube::Identity& identity, Request request,
                                                Answer& answer);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace hangar::gateway
