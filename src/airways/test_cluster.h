// For tests of what a release does to a cluster: a real client, and the model of the API server
// that simulations have.
#pragma once

#include "http/client.h"
#include "http/server.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "json/value.h"
#include "json/yaml.h"
#include "kube/test_api_server.h"
#include "simulation/api_server.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::airways {

inline json::Value yaml(std::string_view text) {
  return json::parse_yaml(text).value();
}

class ClusterTest : public kube::ApiServerTest {
 protected:
  // Whether the server does what it answers with 500.
  enum class Failing : std::uint8_t { Undone, Done };
  // Answers one such request with 500, after the first `skipped` ones.
  void fail_next(std::string method, std::string path_part, Failing failing, int skipped = 0) {
    fault_ = Fault{.method = std::move(method),
                   .path_part = std::move(path_part),
                   .failing = failing,
                   .skipped = skipped};
  }

  template <class T>
  T await(io::Task<T> task) {
    return io::run_to_end(loop_, std::move(task));
  }
  // As another client.
  int send(std::string method, std::string target, std::string_view body = "{}") {
    return cluster_
        .handle({.method = std::move(method),
                 .target = std::move(target),
                 .body = hangar::json::dump(yaml(body))},
                io::Loop::wall_now())
        .status;
  }
  void collect_garbage() {
    while (cluster_.collect_garbage(io::Loop::wall_now())) {
    }
  }
  // Null if there is none.
  [[nodiscard]] const hangar::json::Value* find(std::string_view collection,
                                                std::string_view name) const {
    return cluster_.find(collection, collection == "namespaces" ? "" : "default", name);
  }

  simulation::ApiServer cluster_{/*seed=*/1};
  std::vector<std::string> writes_;  // Since it was cleared: "DELETE /api/v1/namespaces/x".
  std::vector<std::string> reads_;   // The same: "/api/v1/namespaces/x".
  // Called before the server handles a write.
  std::function<void(const http::ServerRequest&)> on_write_;

 private:
  struct Fault {
    std::string method;
    std::string path_part;
    Failing failing = Failing::Undone;
    int skipped = 0;
  };

  static std::string header(const http::ServerRequest& request, std::string_view name) {
    return std::string(http::find_header(request.headers, name).value_or("application/json"));
  }
  [[nodiscard]] std::optional<Failing> take_fault(const http::ServerRequest& request) {
    if (!fault_ || request.method != fault_->method || !request.path.contains(fault_->path_part) ||
        fault_->skipped-- > 0) {
      return std::nullopt;
    }
    return std::exchange(fault_, std::nullopt)->failing;
  }
  io::Task<http::Response> answer(http::ServerRequest request) override {
    if (request.method == "GET") {
      reads_.push_back(request.path);
    } else {
      writes_.push_back(request.method + " " + request.path);
      if (on_write_) on_write_(request);
    }
    const http::Response failure{
        .status = 500,
        .body = R"({"kind":"Status","apiVersion":"v1","status":"Failure","code":500,)"
                R"("message":"etcdserver: request timed out"})"};
    const std::optional<Failing> failing = take_fault(request);
    if (failing == Failing::Undone) co_return failure;
    const simulation::ApiAnswer made = cluster_.handle(
        {.method = request.method,
         .target = request.query.empty() ? request.path : request.path + "?" + request.query,
         .content_type = header(request, "content-type"),
         .accept = header(request, "accept"),
         .body = request.body},
        io::Loop::wall_now());
    if (failing == Failing::Done) co_return failure;
    co_return http::Response{.status = made.status, .body = hangar::json::dump(made.body)};
  }

  std::optional<Fault> fault_;
};

}  // namespace hangar::airways
