#include "airways/flight_run.h"

#include "abi/flight/evaluation.h"
#include "abi/flight/lookups.h"
#include "airways/acting.h"
#include "airways/flight_modules.h"
#include "airways/limits.h"
#include "airways/lookups.h"
#include "airways/output.h"
#include "airways/platform.h"
#include "airways/recording.h"
#include "airways/terms.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/seconds.h"
#include "base/time.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "io/loop.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "kube/discovery.h"
#include "kube/object.h"
#include "wasm/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

// Records the lookups that it passes on, with their answers.
class RecordedLookups final : public abi::flight::Lookups {
 public:
  RecordedLookups(abi::flight::Lookups& answers, kube::Discovery& discovery,
                  FlightRecording& recording, budget::Consumer whose, std::stop_token stop)
      : answers_(answers),
        discovery_(discovery),
        recording_(recording),
        whose_(std::move(whose)),
        stop_(std::move(stop)) {}

  [[nodiscard]] io::Task<abi::flight::LookupAnswer> lookup(
      abi::flight::LookupRequest request) override {
    const Instant asked_at = io::Loop::now();
    abi::flight::LookupAnswer answer = co_await answers_.lookup(request);
    if (answer.state == abi::flight::LookupState::FeatureNotGranted) co_return answer;
    // Discovery has just found this kind for the lookup, and has it in its cache.
    const Result<kube::Resource> resource =
        co_await discovery_.find(kube::make_gvk(request.api_version, request.kind), whose_, stop_);
    if (!resource) co_return answer;
    recording_.looked_up(*resource, lookup_key(*resource, request), asked_at, answer);
    co_return answer;
  }

  [[nodiscard]] io::Task<abi::flight::LookupAnswer> rest_mapping(std::string group_or_api_version,
                                                                 std::string kind) override {
    return answers_.rest_mapping(std::move(group_or_api_version), std::move(kind));
  }

 private:
  abi::flight::Lookups& answers_;
  kube::Discovery& discovery_;
  FlightRecording& recording_;
  const budget::Consumer whose_;
  const std::stop_token stop_;
};

// The memory for a flight's output: while it is parsed, and for the copies that are in memory while
// a revision is recorded.
std::uint64_t carried_bytes_max(std::string_view text) {
  constexpr std::int64_t kSeparatorBytes = 64;
  constexpr std::uint64_t kCopies = 2;
  // json::parsed_bytes_max() knows the separators of JSON. In YAML, others stand on lines of their
  // own, or several on one.
  const std::int64_t of_yaml =
      std::max<std::int64_t>(std::ranges::count(text, '\n'), std::ranges::count(text, '-'));
  return kCopies *
         (json::parsed_bytes_max(text) + static_cast<std::uint64_t>(kSeparatorBytes * of_yaml));
}

}  // namespace

io::Task<Result<abi::flight::Output>> run_flight(FlightRun run, const json::Value& instance,
                                                 std::stop_token stop) {
  const Terms& terms = run.binding->terms;
  const Platform& platform = run.platform;
  std::string input = HANGAR_CO_TRY(input_of(terms, instance));
  std::shared_ptr<const wasm::Module> code =
      HANGAR_CO_TRY(co_await platform.modules.load(run.binding->module, run.consumer, stop));

  abi::flight::Evaluation evaluation{
      .release = run.release.name,
      .namespace_ = run.release.namespace_,
      .args = terms.args,
      .stdin_bytes = std::move(input),
      .host_version = platform.host_version,
      .timeout = std::min<Duration>(terms.timeout.value_or(limits::kFlightTimeMax), run.time_max),
      .consumer = run.consumer,
  };
  if (terms.memory_mib_max > 0) {
    evaluation.memory_bytes_max = terms.memory_mib_max * limits::kMiB;
  }
  std::optional<LookupRights> rights;
  if (const Account* const account = run.actor.account()) {
    rights.emplace(
        LookupRights{.authorizer = platform.authorizer, .identity = account->identity()});
  }
  ReleaseLookups lookups(std::shared_ptr<const Terms>(run.binding, &terms), run.release,
                         run.lookups_for, platform.view, run.tracker, std::move(rights),
                         run.consumer, stop);
  std::optional<RecordedLookups> recorded;
  if (run.recording != nullptr && run.recording->is_on()) {
    recorded.emplace(lookups, platform.view.discovery(), *run.recording, run.consumer, stop);
  }
  abi::flight::Lookups& asked = recorded ? static_cast<abi::flight::Lookups&>(*recorded) : lookups;
  Result<abi::flight::Output> output = co_await abi::flight::evaluate(
      platform.runtime, std::move(code), std::move(evaluation), asked, stop);
  platform.evaluations.add();
  if (!output) {
    co_return std::unexpected(std::move(output).error().in("failed to evaluate flight"));
  }
  platform.evaluation_cpu_seconds.observe(in_seconds(output->cpu_time));
  co_return output;
}

std::string evaluation_failure(const abi::flight::Output& output) {
  const std::string_view text = output.stderr_bytes.empty()
                                    ? std::string_view("(no output captured on stderr)")
                                    : std::string_view(output.stderr_bytes);
  return fmt::format("failed to evaluate flight: failed to instantiate module: {}", text);
}

// YAML takes more than a second for each MiB, and with aliases a few bytes stand for many. So the
// size of a text does not tell which one the loop could parse.
io::Task<Result<PrintedOutput>> parse_printed(io::Workers& workers,
                                              budget::ReservationQueue* memory,
                                              budget::Consumer whose, std::string text,
                                              std::stop_token stop) {
  std::optional<budget::Reservation> held;
  const std::uint64_t bytes = carried_bytes_max(text);
  if (memory != nullptr && bytes > limits::kFlightOutputFreeBytesMax) {
    Result<budget::Reservation> reserved = co_await memory->reserve(whose, bytes, std::move(stop));
    if (!reserved) {
      co_return std::unexpected(std::move(reserved).error().in("the output of the flight"));
    }
    held = *std::move(reserved);
  }
  Result<Output> parsed = co_await workers.run(
      std::move(whose), [text = std::move(text)] { return parse_output(text); });
  if (!parsed) co_return std::unexpected(std::move(parsed).error());
  co_return PrintedOutput{.output = *std::move(parsed), .memory = std::move(held)};
}

}  // namespace hangar::airways
