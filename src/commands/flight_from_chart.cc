#include "commands/flight_from_chart.h"

#include "base/result.h"
#include "commands/sdk_source.h"
#include "commands/temporary_directory.h"
#include "io/program.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::commands {

namespace fs = std::filesystem;

Result<> flight_from_chart(const FlightFromChartOptions& options) {
  std::error_code ignored;
  if (!fs::exists(options.chart, ignored)) {
    return fail(ErrorKind::NotFound, options.chart.string() +
                                         " does not exist: CHART is a chart's directory or .tgz; "
                                         "helm pull fetches one");
  }
  Result<fs::path> go = io::find_program("go");
  if (!go) {
    return fail(ErrorKind::NotFound,
                "go not found on PATH: building a flight from a chart needs Go 1.26");
  }
  const std::unique_ptr<TemporaryDirectory> sdk = HANGAR_TRY(TemporaryDirectory::make());
  HANGAR_TRY(write_files(sdk_source(), sdk->path()));
  std::vector<std::string> arguments = {"run",
                                        "./cmd/from-chart",
                                        "-sdk=" + sdk->path().string(),
                                        "-out=" + fs::absolute(options.out).string(),
                                        "-module=" + options.module,
                                        "-kube-version=" + options.kube_version};
  if (options.include_crds) arguments.emplace_back("-include-crds");
  if (options.no_hooks) arguments.emplace_back("-no-hooks");
  arguments.emplace_back("--");
  arguments.push_back(fs::absolute(options.chart).string());
  // The generator must be built for this machine, whatever target the user's environment selects,
  // and outside the user's workspace.
  const int exit_code = HANGAR_TRY(io::run_program(
      {.path = *std::move(go),
       .arguments = std::move(arguments),
       .directory = sdk->path() / "helm",
       .environment = {"GOOS=", "GOARCH=", "GOWORK=off", "GOFLAGS=-mod=readonly"}}));
  if (exit_code == 0) return {};
  return fail(ErrorKind::InvalidInput, "the generator could not make a flight of the chart");
}

}  // namespace hangar::commands
