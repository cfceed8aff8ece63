#include "commands/argocd_generate.h"

#include "airways/output.h"
#include "airways/resource_ref.h"
#include "base/base64.h"
#include "base/invalid.h"
#include "base/log.h"
#include "base/result.h"
#include "commands/argocd_parameters.h"
#include "commands/argocd_request.h"
#include "commands/temporary_directory.h"
#include "host/cluster_session.h"
#include "host/config.h"
#include "http/client.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/program.h"
#include "io/run.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/client.h"
#include "kube/core_resources.h"
#include "kube/object.h"
#include "modules/packed_module.h"
#include "wasm/limits.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::commands {

namespace {

// The server fetches and compiles a module before its first run. Argo CD kills this program
// earlier, after 60 s by default; the server continues, so that the next attempt finds the code.
constexpr std::chrono::minutes kArgoAnswerMax{5};
constexpr std::chrono::seconds kArgoConnectMax{10};
// Stages are lists in a list: a little larger than the output itself.
constexpr std::uint64_t kArgoAnswerBytesMax = 2 * limits::kFlightOutputBytesMax;

bool is_http_url(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

// Argo CD runs the plugin in a copy of the repository, below the path of the Application. A file
// that others put into the container has an absolute path.
Result<std::string> read_application_file(const std::string& path) {
  if (path.starts_with('/')) return invalid("the path is absolute");
  return io::read_file(path, limits::kFlightOutputBytesMax);
}

io::Task<Result<std::string>> read_ref(const kube::Client& client, ArgoSecretRef ref,
                                       std::string argo_namespace) {
  const kube::ObjectKey key{
      .namespace_ = ref.namespace_.empty() ? std::move(argo_namespace) : ref.namespace_,
      .name = ref.secret};
  const Result<json::Value> secret =
      co_await client.get(kube::secret_resource(), key, std::stop_token());
  if (!secret) {
    co_return std::unexpected(
        Error(secret.error()).in(fmt::format("failed to get secret reference \"{}\"", ref.secret)));
  }
  const json::Value* const encoded = json::find(*secret, {"data", ref.key});
  std::optional<std::string> value = encoded != nullptr && encoded->is_string()
                                         ? base64_decode(std::string_view(encoded->get_string()))
                                         : std::nullopt;
  if (!value) {
    co_return fail(ErrorKind::NotFound,
                   fmt::format("key \"{}\" not present in secret \"{}\"", ref.key, ref.secret));
  }
  co_return *std::move(value);
}

Result<std::map<std::string, std::string>> read_refs(const host::Config& config,
                                                     const ArgoEnvironment& environment,
                                                     const Log& log) {
  std::map<std::string, std::string> values;
  if (environment.parameters.refs.empty()) return values;
  host::ClusterSession session(HANGAR_TRY(host::find_login(config)), log);
  for (const auto& [name, ref] : environment.parameters.refs) {
    values[name] =
        HANGAR_TRY(session.run(read_ref(session.client, ref, environment.argo_namespace)));
  }
  return values;
}

Result<std::string> build_application() {
  const Result<std::filesystem::path> go = io::find_program("go");
  if (!go) {
    return fail(ErrorKind::NotFound,
                "parameter build needs Go in the container of the plugin, and there is no program "
                "go; build the module elsewhere and name it by parameter wasm");
  }
  const std::unique_ptr<TemporaryDirectory> directory = HANGAR_TRY(TemporaryDirectory::make());
  const std::filesystem::path module = directory->path() / "main.wasm";
  const int code = HANGAR_TRY(io::run_program({.path = *go,
                                               .arguments = {"build", "-o", module.string(), "."},
                                               .environment = {"GOOS=wasip1", "GOARCH=wasm"}}));
  if (code != 0) {
    return fail(ErrorKind::InvalidInput, fmt::format("go build exited with code {}", code));
  }
  return io::read_file(module, limits::kModuleBytesMax);
}

// Sets the source and the path of the request.
Result<> add_module(ArgoRequest& request, const host::Config& config,
                    const ArgoEnvironment& environment, const Log& log) {
  Result<std::map<std::string, std::string>> values = read_refs(config, environment, log);
  if (!values) {
    return std::unexpected(std::move(values).error().in("failed to lookup secret references"));
  }
  const ArgoParameters& parameters = environment.parameters;
  if (parameters.build) {
    Result<std::string> built = build_application();
    if (!built) {
      return std::unexpected(std::move(built).error().in("failed to build binary"));
    }
    request.source = modules::packed_module(*std::move(built));
    request.path = "main.wasm";
    return {};
  }
  if (is_http_url(parameters.wasm)) {
    Result<std::string> url = fill_in_url(parameters.wasm, *values);
    if (!url) return std::unexpected(std::move(url).error().in("failed to get wasm path"));
    request.path = *std::move(url);
    return {};
  }
  request.path = parameters.wasm;
  if (request.path.contains("://")) return {};
  Result<std::string> bytes = io::read_file(request.path, limits::kModuleBytesMax);
  if (!bytes) return std::unexpected(std::move(bytes).error().in("failed to open wasm file"));
  request.source = modules::packed_module(*std::move(bytes));
  return {};
}

Result<std::string> ask_server(const std::string& server_url, const ArgoRequest& request) {
  io::Loop loop;
  http::Client client(loop);
  auto transport = std::make_shared<http::Transport>();
  transport->direct = true;
  Result<http::Response> response =
      io::run_to_end(loop, client.send({.method = "POST",
                                        .url = server_url + "/exec",
                                        .headers = {{"Content-Type", "application/json"}},
                                        .body = to_json(request),
                                        .transport = std::move(transport),
                                        .connect_timeout = kArgoConnectMax,
                                        .total_timeout = kArgoAnswerMax,
                                        .response_bytes_max = kArgoAnswerBytesMax},
                                       std::stop_token()));
  if (!response) return std::unexpected(std::move(response).error().in("failed to get response"));
  if (response->status != 200) {
    while (response->body.ends_with('\n'))
      response->body.pop_back();
    return fail(ErrorKind::GuestFault, "error: " + response->body);
  }
  return std::move(response->body);
}

Result<std::string> execute_remotely(const host::Config& config, const ArgoGenerateOptions& options,
                                     const ArgoEnvironment& environment, const Log& log) {
  const ArgoParameters& parameters = environment.parameters;
  ArgoRequest request{.checksum = parameters.checksum,
                      .release = environment.name,
                      .namespace_ = environment.namespace_,
                      .args = parameters.args,
                      .environment = environment.flight_variables,
                      .input = parameters.input,
                      .memory_mib_max = parameters.memory_mib_max,
                      .timeout = parameters.timeout,
                      .insecure = parameters.insecure,
                      .cluster_access = parameters.cluster_access,
                      .resource_matchers = parameters.resource_matchers};
  HANGAR_TRY(add_module(request, config, environment, log));
  return ask_server(options.server_url, request);
}

}  // namespace

Result<std::string> generate_for_argocd(const host::Config& config,
                                        const ArgoGenerateOptions& options, const Log& log) {
  const ArgoEnvironment environment =
      HANGAR_TRY(read_argo_environment(options.variables, read_application_file));
  Result<std::string> printed = execute_remotely(config, options, environment, log);
  if (!printed) {
    return std::unexpected(std::move(printed).error().in("failed to execute flight wasm"));
  }
  Result<airways::Output> output = airways::parse_output(*printed);
  if (!output) {
    return std::unexpected(
        std::move(output).error().in("failed to parse output into valid flight output"));
  }
  mark_for_argo(output->stages, environment.name, environment.namespace_);
  std::string lines;
  for (const airways::Stage& stage : output->stages) {
    for (const json::Value& resource : stage)
      lines += json::dump(resource) + "\n";
  }
  return lines;
}

}  // namespace hangar::commands
