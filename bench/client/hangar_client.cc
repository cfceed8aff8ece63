// The hangar side of the client benchmark: the host's cache, with two kinds, and no other part of
// the host. See peer/main.go for the commands.
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/slots.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/task.h"
#include "kube/auth/credentials.h"
#include "kube/cache/cache.h"
#include "kube/client.h"
#include "kube/scope.h"

#include <fmt/core.h>
#include <malloc.h>
#include <sys/resource.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar {

namespace {

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Bench {
 public:
  Bench(kube::Login login, std::string namespace_in)
      : namespace_(std::move(namespace_in)),
        http_(loop_),
        credentials_(std::make_shared<kube::Credentials>(loop_, std::move(login), Log())),
        client_(loop_, http_, credentials_, metrics_, Log()),
        cache_(loop_, client_, metrics_, Log()) {}

  Result<> obey(std::string_view command) {
    const double cpu = cpu_seconds();
    const Instant began = io::Loop::now();
    if (command == "connect") {
      HANGAR_TRY(wait_for(connect()));
    } else if (command == "sync") {
      HANGAR_TRY(wait_for(sync()));
    } else if (command == "settle") {
      ::malloc_trim(0);
    } else if (command.starts_with("watch ")) {
      HANGAR_TRY(watch(command.substr(6)));
    } else {
      return fail(ErrorKind::InvalidInput, fmt::format("unknown command {}", command));
    }
    const kube::Cache::Statistics statistics = cache_.statistics();
    const std::chrono::duration<double> took = io::Loop::now() - began;
    fmt::print(
        "{{\"seconds\":{},\"cpu_seconds\":{},\"heap_bytes\":{},\"objects\":{},\"cache_bytes\":{}}}"
        "\n",
        took.count(), cpu_seconds() - cpu,
        ::mallinfo2().uordblks + ::mallinfo2().hblkhd + slots::slab_bytes(), statistics.objects,
        statistics.bytes);
    std::fflush(stdout);
    return {};
  }

 private:
  io::Task<Result<>> connect() {
    const auto version = co_await client_.get_path("/version", stop_.get_token());
    if (!version) co_return std::unexpected(version.error());
    co_return Result<>();
  }

  io::Task<Result<>> sync() {
    const std::array<kube::Resource, 2> resources = {
        kube::Resource{
            .version = "v1", .plural = "configmaps", .kind = "ConfigMap", .namespaced = true},
        kube::Resource{.version = "v1", .plural = "pods", .kind = "Pod", .namespaced = true}};
    for (const kube::Resource& resource : resources) {
      subscriptions_.push_back(cache_.subscribe({.resource = resource, .namespace_ = namespace_},
                                                {.on_delta = [this](const kube::Delta& delta) {
                                                  if (delta.type == kube::Delta::Type::Modified)
                                                    ++change_count_;
                                                }}));
    }
    for (const auto& subscription : subscriptions_) {
      HANGAR_CO_TRY(co_await subscription->wait_synced(stop_.get_token()));
    }
    co_return Result<>();
  }

  Result<> watch(std::string_view text) {
    std::uint64_t wanted = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wanted);
    if (error != std::errc() || end != text.data() + text.size()) {
      return fail(ErrorKind::InvalidInput, fmt::format("{} is not a number", text));
    }
    loop_.run_until([this, wanted] { return change_count_ >= wanted; });
    change_count_ -= wanted;
    return {};
  }

  Result<> wait_for(io::Task<Result<>> task) {
    std::optional<Result<>> result;
    loop_.spawn(keep(std::move(task), result));
    loop_.run_until([&result] { return result.has_value(); });
    return *result;
  }
  static io::Task<void> keep(io::Task<Result<>> task, std::optional<Result<>>& result) {
    result = co_await std::move(task);
  }

  const std::string namespace_;
  std::stop_source stop_;
  Metrics metrics_;
  io::Loop loop_;
  http::Client http_;
  std::shared_ptr<kube::Credentials> credentials_;
  kube::Client client_;
  kube::Cache cache_;
  std::vector<std::unique_ptr<kube::Cache::Subscription>> subscriptions_;
  std::uint64_t change_count_ = 0;  // Not yet waited for.
};

Result<> run(std::string_view kubeconfig, std::string_view namespace_) {
  kube::Login login = HANGAR_TRY(kube::find_login({.kubeconfig = kubeconfig}));
  Bench bench(std::move(login), std::string(namespace_));
  for (std::string line; std::getline(std::cin, line);) {
    HANGAR_TRY(bench.obey(line));
  }
  return {};
}

}  // namespace

}  // namespace hangar

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: {} KUBECONFIG NAMESPACE\n", argv[0]);
    return 2;
  }
  const hangar::Result<> result = hangar::run(argv[1], argv[2]);
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message());
    return 1;
  }
  // The watches are still open: the end of the process closes them.
  std::cout.flush();
  std::quick_exit(0);
}
