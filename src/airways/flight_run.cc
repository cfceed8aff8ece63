#include "airways/flight_run.h"

#include "abi/flight/evaluation.h"
#include "airways/acting.h"
#include "airways/flight_modules.h"
#include "airways/limits.h"
#include "airways/lookups.h"
#include "airways/output.h"
#include "airways/platform.h"
#include "airways/terms.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/seconds.h"
#include "base/time.h"
#include "io/task.h"
#include "io/workers.h"
#include "json/value.h"
#include "wasm/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

// Of what a flight printed; some 20 ms of YAML.
constexpr std::size_t kParsedAtOnceBytesMax = 16 * limits::kKiB;

}  // namespace

io::Task<Result<abi::flight::Output>> run_flight(FlightRun run, const json::Value& instance,
                                                 std::stop_token stop) {
  const Terms& terms = run.binding->terms;
  const Platform& platform = run.platform;
  std::string input = HANGAR_CO_TRY(input_of(terms, instance));
  std::shared_ptr<const wasm::Module> code =
      HANGAR_CO_TRY(co_await platform.modules.load(run.binding->module, stop));

  abi::flight::Evaluation evaluation{
      .release = run.release.name,
      .namespace_ = run.release.namespace_,
      .args = terms.args,
      .stdin_bytes = std::move(input),
      .host_version = platform.host_version,
      .timeout = std::min<Duration>(terms.timeout.value_or(limits::kFlightTimeMax), run.time_max),
      .consumer = {.tenant = budget::Tenant::of_namespace(run.release.instance.namespace_),
                   .name = std::move(run.consumer)},
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
                         run.lookups_for, platform.view, run.tracker, std::move(rights), stop);
  Result<abi::flight::Output> output = co_await abi::flight::evaluate(
      platform.runtime, std::move(code), std::move(evaluation), lookups, stop);
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

// YAML takes more than a second for each MiB. A small text is parsed sooner than handed over.
io::Task<Result<Output>> parse_printed(const Platform& platform, std::string text) {
  if (text.size() <= kParsedAtOnceBytesMax) co_return parse_output(text);
  co_return co_await platform.shared.workers.run(
      [text = std::move(text)] { return parse_output(text); });
}

}  // namespace hangar::airways
