// Endpoints for administrators and the kubelet: /metrics, /healthz, /readyz, /livez, and
// /metrics/operators/NAMESPACE/NAME for the metrics that an operator registers itself.
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "http/client.h"
#include "http/server.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/task.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hangar::ops {

// Requests that may wait for the main loop at a time, in all and of one address; further ones get
// 503 at once. Anybody in the cluster may send them, and connections whose requests wait cannot
// make room: the kubelet's probes would find none, and it would restart the host.
inline constexpr std::size_t kWaitingRequestsMax = 256;
inline constexpr std::size_t kWaitingRequestsOfSourceMax = 64;

// Answers have the form of kube-apiserver's own probes: "ok", or with `?verbose` a line for each
// check; a single check is /readyz/NAME.
//
// A separate loop answers the requests, so that a busy main loop does not block /healthz. Checks
// that need the main loop are run there, and fail if it does not answer in time.
class Endpoints {
 public:
  // Answers on `loop`; `main` may be the same. Except for the checks and the metrics, use this
  // object on the thread of `loop` only. `metrics` outlives it.
  Endpoints(io::Loop& loop, io::Loop& main, const Metrics& metrics, Log log);

  // /readyz fails while any check does; the error's message is for the log and for ?verbose. Call
  // it before listen(). `check` is called on the main loop.
  void add_check(std::string name, std::function<Result<>()> check);
  // The same for /healthz and /livez, called on the loop that answers.
  void add_liveness_check(std::string name, std::function<Result<>()> check);

  // The metrics of an operator, called on the main loop: text, or NotFound or another error with
  // the reason. Call it before listen().
  using ScrapeOperator =
      std::function<io::Task<Result<std::string>>(std::string namespace_name, std::string name)>;
  void set_operators(ScrapeOperator scrape) { scrape_operator_ = std::move(scrape); }

  // Starts to answer requests. `address`: "127.0.0.1:8080", "[::1]:8080", ":8080" (every
  // interface). InvalidInput when it is not an address; Unavailable when it is in use.
  [[nodiscard]] Result<> listen(std::string_view address);
  [[nodiscard]] io::Task<void> stop();
  // The port it listens on, port zero resolved; zero before listen().
  [[nodiscard]] std::uint16_t port() const { return server_ ? server_->port() : std::uint16_t{0}; }

 private:
  struct Check {
    std::string name;
    std::function<Result<>()> passes;
  };
  using Checks = std::vector<Check>;
  // The name of a probe ("readyz"), and the single requested check; empty: all.
  struct Probe {
    std::string name;
    std::string only;
    bool is_verbose = false;
  };
  [[nodiscard]] static Probe probe_of(const http::ServerRequest& request);
  [[nodiscard]] static http::Response run(const Checks& checks, const Probe& probe);
  [[nodiscard]] io::Task<http::Response> answer(http::ServerRequest request);
  // The same for requests that need the main loop.
  [[nodiscard]] io::Task<http::Response> ask(http::ServerRequest request);
  // Collects once for all requests that arrive meanwhile: this takes time of the main loop. They
  // share the text: it has megabytes, and hundreds may wait.
  using SharedText = std::shared_ptr<const std::string>;
  [[nodiscard]] io::Task<Result<SharedText>> metrics_text();
  // `names`: "NAMESPACE/NAME".
  [[nodiscard]] io::Task<http::Response> answer_for_operator(std::string_view names) const;
  // Runs on the main loop. `done` is set on the loop that answers.
  [[nodiscard]] io::Task<void> scrape_on_main(std::string namespace_name, std::string name,
                                              io::OneShot<Result<std::string>> done) const;
  template <class Question>
  [[nodiscard]] io::Task<Result<std::invoke_result_t<Question&>>> ask_main(Question question) const;

  io::Loop& loop_;
  io::Loop& main_;
  const Metrics& metrics_;
  const Log log_;
  Checks checks_;
  Checks liveness_checks_;
  ScrapeOperator scrape_operator_;  // Empty: there are no operators.
  struct Waiting;
  const std::shared_ptr<Waiting> waiting_requests_;  // Shared with them: they may outlive this.
  bool is_collecting_ = false;
  std::vector<io::OneShot<Result<SharedText>>> waiting_;  // For that collection.
  std::unique_ptr<http::Server> server_;                  // Null until listen().
};

}  // namespace hangar::ops
