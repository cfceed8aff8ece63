// The connection that commands for releases share: to the cluster as the kubeconfig's user, until a
// signal stops the command.
#pragma once

#include "airways/readiness.h"
#include "airways/release_work.h"
#include "airways/request_view.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "commands/lua_session.h"
#include "host/config.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/signals.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/auth/credentials.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"

#include <csignal>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::commands {

class ReleaseSession {
 public:
  // `log` outlives the session. `lua`: for load_custom_readiness(), which not all commands call.
  ReleaseSession(const host::Config& config, kube::Login login, const Log& log,
                 std::optional<LuaSession::Start> lua = std::nullopt)
      : log_(log),
        lua_start_(std::move(lua)),
        signals_(loop, {SIGINT, SIGTERM}, [this](int) { stop_.request_stop(); }),
        workers(loop, 2),
        http(loop),
        client(loop, http, std::make_shared<kube::Credentials>(loop, std::move(login), log),
               metrics, log, host::client_options(config)),
        view(client) {}

  template <class T>
  [[nodiscard]] T run(io::Task<T> task) {
    return io::run_to_end(loop, std::move(task));
  }

  // The given namespace, or the kubeconfig's, or "default".
  [[nodiscard]] std::string namespace_or_default(const std::string& given) const {
    if (!given.empty()) return given;
    return client.default_namespace().empty() ? "default" : client.default_namespace();
  }

  // Requests a stop when a signal arrives.
  [[nodiscard]] std::stop_token stop() const { return stop_.get_token(); }

  [[nodiscard]] airways::ReleaseParts parts() {
    return {.loop = loop,
            .view = view,
            .client = client,
            .custom_readiness = readiness,
            .lua = lua ? &lua->rules() : nullptr};
  }

  // Uses the readiness rules of the cluster's ConfigMaps from now on. Call it once, before parts().
  [[nodiscard]] io::Task<Result<>> load_custom_readiness() {
    Result<kube::List> list = co_await client.list(
        kube::config_map_resource(),
        {.label_selector = std::string(airways::CustomReadiness::kLabelSelector)}, stop());
    if (!list)
      co_return std::unexpected(std::move(list).error().in("failed to load custom readiness"));
    std::vector<json::Value> config_maps;
    for (const kube::ObjectPtr& object : list->items)
      config_maps.push_back(object->to_value());
    readiness = airways::CustomReadiness(config_maps);
    if (readiness.has_scripts()) {
      HANGAR_ASSERT(lua_start_.has_value(), "a command with readiness rules is prepared for Lua");
      lua = HANGAR_CO_TRY(LuaSession::open(*std::exchange(lua_start_, std::nullopt), loop, workers,
                                           http, metrics, log_));
    }
    co_return Result<>();
  }

  Metrics metrics;
  io::Loop loop;

 private:
  const Log& log_;
  std::optional<LuaSession::Start> lua_start_;
  std::stop_source stop_;
  // Before any thread is started: all threads inherit that the signals are blocked.
  io::Signals signals_;

 public:
  io::Workers workers;
  http::Client http;
  const kube::Client client;
  airways::RequestView view;
  airways::CustomReadiness readiness;  // Empty: yoke's own rules.
  std::unique_ptr<LuaSession> lua;     // Null: no readiness rule is in Lua.
};

}  // namespace hangar::commands
