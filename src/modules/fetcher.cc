#include "modules/fetcher.h"

#include "base/limits.h"
#include "base/result.h"
#include "base/utf8.h"
#include "http/client.h"
#include "io/event.h"
#include "io/file.h"
#include "io/task.h"
#include "io/turns.h"
#include "modules/config_map.h"
#include "modules/docker_config.h"
#include "modules/internal/download.h"
#include "modules/internal/gzip.h"
#include "modules/internal/http_status.h"
#include "modules/internal/registry.h"
#include "modules/internal/registry_auth.h"
#include "modules/internal/sha256.h"
#include "modules/internal/wasm_bytes.h"
#include "modules/module_store.h"
#include "modules/oci_manifest.h"
#include "modules/reference.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <expected>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

namespace hangar::modules {

namespace {

constexpr int kOk = 200;
constexpr int kNotModified = 304;
// Browsers follow 20; a module behind more than a few is misconfigured.
constexpr int kRedirectsMax = 5;

std::shared_ptr<const http::Transport> transport(const std::string& ca_pem, bool skip_verify) {
  auto transport = std::make_shared<http::Transport>();
  transport->ca_pem = ca_pem;
  transport->skip_verify = skip_verify;
  return transport;
}

// What a server says of a version of a module, to be said to it again. Empty where it says none, or
// none that is worth remembering.
std::string validator(const http::Headers& headers, std::string_view name) {
  const std::string_view value = http::find_header(headers, name).value_or(std::string_view());
  if (value.size() > limits::kKiB || valid_utf8_prefix(value) != value.size()) return {};
  return std::string(value);
}

Fetched unchanged(const Resolution& resolution) {
  return {.wasm = {},
          .sha256 = resolution.sha256,
          .size_bytes = resolution.size_bytes,
          .resolved = resolution.resolved,
          .is_unchanged = true,
          .stale_because = {}};
}

struct FileRead {
  bool is_unchanged = false;
  std::string bytes;
  std::string stamp;
};

// Blocking. A file with the same stamp is the same file: inode, size and time of change.
Result<FileRead> read_if_changed(const std::string& path, const std::string& known_stamp) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    const int code = errno;
    return fail(code == ENOENT || code == ENOTDIR ? ErrorKind::NotFound : ErrorKind::Denied,
                std::generic_category().message(code));
  }
  // Reading a FIFO would hold the worker for ever.
  if (!S_ISREG(status.st_mode)) return fail(ErrorKind::InvalidInput, "is not a regular file");
  FileRead read;
  read.stamp = fmt::format("{}:{}:{}:{}.{:09}", status.st_dev, status.st_ino, status.st_size,
                           status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  read.is_unchanged = read.stamp == known_stamp;
  if (!read.is_unchanged) read.bytes = HANGAR_TRY(io::read_file(path, limits::kModuleBytesMax));
  return read;
}

struct Accepted {
  std::string wasm;
  std::string sha256;
  Result<> stored;  // A full disk costs the next download, not this module.
};

}  // namespace

Fetcher::Fetcher(Parts parts)
    : workers_(parts.workers),
      client_(parts.client),
      store_(parts.store),
      config_maps_(parts.config_maps),
      may_read_files_(parts.may_read_files),
      log_(std::move(parts.log)),
      verified_(transport(parts.ca_pem, /*skip_verify=*/false)),
      unverified_(transport(parts.ca_pem, /*skip_verify=*/true)),
      fetches_(parts.loop, limits::kModuleFetchesMax),
      turns_(parts.loop) {}

io::Task<Result<Fetched>> Fetcher::fetch(Reference reference, FetchOptions options,
                                         std::stop_token stop) {
  // What came over an unverified connection is no answer to who wants it verified.
  const std::string key = (options.insecure ? "insecure:" : "") + reference.key();
  const io::Turns<std::string>::Turn turn = co_await turns_.take(key);
  const io::Semaphore::Slot slot = co_await fetches_.acquire();
  if (stop.stop_requested()) co_return fail(ErrorKind::Cancelled, "stopping");
  const std::string doing = "module " + reference.display();
  Result<Fetched> fetched =
      co_await fetch_in_turn(std::move(reference), std::move(options), key, std::move(stop));
  if (!fetched) co_return std::unexpected(std::move(fetched).error().in(doing));
  co_return fetched;
}

io::Task<Result<Fetched>> Fetcher::fetch_in_turn(Reference reference, FetchOptions options,
                                                 std::string key, std::stop_token stop) {
  const std::optional<std::string> expected = expected_sha256(reference, options.expected_sha256);
  std::optional<Resolution> known = store_.resolution(key);
  // A source that says "unchanged" about other bytes than those promised is no help.
  if (known && expected && known->sha256 != *expected) known.reset();
  if (known && known->sha256 != options.have_sha256 && !store_.has(known->sha256)) known.reset();

  if (expected && (*expected == options.have_sha256 || store_.has(*expected))) {
    Resolution promised = known.value_or(Resolution{.sha256 = *expected});
    if (promised.resolved.empty()) promised.resolved = reference.display();
    Result<Fetched> fetched = co_await from_store(std::move(promised), options.have_sha256);
    if (fetched) co_return fetched;
    known.reset();
  }
  if (known && reference.is_pinned()) {
    Result<Fetched> fetched = co_await from_store(*known, options.have_sha256);
    if (fetched) co_return fetched;
    known.reset();
  }

  Result<Download> download_result =
      co_await download(reference, known, options.content, options.insecure, stop);
  if (!download_result) {
    Error error = std::move(download_result).error();
    if (error.kind() != ErrorKind::Unavailable || !known || !options.may_be_stale) {
      co_return std::unexpected(std::move(error));
    }
    Result<Fetched> fetched = co_await from_store(*known, options.have_sha256);
    if (!fetched) co_return std::unexpected(std::move(error));
    log_.warning("module source away, using the stored module",
                 {{"module", reference.display()}, {"error", error.message()}});
    fetched->stale_because = error.message();
    co_return fetched;
  }
  if (download_result->is_unchanged) {
    Result<Fetched> fetched = co_await from_store(*known, options.have_sha256);
    if (fetched) co_return fetched;
    log_.warning("stored module lost, fetching it again",
                 {{"module", reference.display()}, {"error", fetched.error().message()}});
    download_result =
        co_await download(reference, std::nullopt, options.content, options.insecure, stop);
    if (!download_result) co_return std::unexpected(std::move(download_result).error());
  }
  co_return co_await accept(*std::move(download_result), expected, std::move(options),
                            std::move(key));
}

io::Task<Result<Fetched>> Fetcher::from_store(Resolution resolution, std::string have_sha256) {
  if (resolution.sha256 == have_sha256) co_return unchanged(resolution);
  std::string wasm = HANGAR_CO_TRY(co_await workers_.run(
      [&store = store_, sha256 = resolution.sha256] { return store.read(sha256); }));
  Fetched fetched;
  fetched.size_bytes = wasm.size();
  fetched.wasm = std::move(wasm);
  fetched.sha256 = std::move(resolution.sha256);
  fetched.resolved = std::move(resolution.resolved);
  co_return fetched;
}

io::Task<Result<Fetched>> Fetcher::accept(Download download, std::optional<std::string> expected,
                                          FetchOptions options, std::string key) {
  Resolution resolution = std::move(download.resolution);
  auto work = [&store = store_, bytes = std::move(download.bytes),
               blob_digest = std::move(download.blob_digest), expected = std::move(expected),
               content = options.content, resolution,
               key = std::move(key)]() mutable -> Result<Accepted> {
    if (!blob_digest.empty() && "sha256:" + sha256_hex(bytes) != blob_digest) {
      return fail(ErrorKind::InvalidInput,
                  fmt::format("the registry's bytes are not those of blob {}", blob_digest));
    }
    Unpacked unpacked = HANGAR_TRY(unpack(std::move(bytes), limits::kModuleBytesMax, content));
    if (expected) HANGAR_TRY(verify_sha256(*expected, unpacked.sha256));
    Accepted accepted;
    accepted.stored =
        store.has(unpacked.sha256)
            ? Result<>()
            : store.write(unpacked.sha256, unpacked.gzipped.empty() ? gzip(unpacked.wasm)
                                                                    : std::move(unpacked.gzipped));
    resolution.sha256 = unpacked.sha256;
    resolution.size_bytes = unpacked.wasm.size();
    if (accepted.stored) accepted.stored = store.remember(key, resolution);
    accepted.wasm = std::move(unpacked.wasm);
    accepted.sha256 = std::move(unpacked.sha256);
    return accepted;
  };
  Accepted accepted = HANGAR_CO_TRY(co_await workers_.run(std::move(work)));
  if (!accepted.stored) {
    log_.warning("module not stored",
                 {{"module", resolution.resolved}, {"error", accepted.stored.error().message()}});
  }
  Fetched fetched;
  fetched.size_bytes = accepted.wasm.size();
  fetched.sha256 = std::move(accepted.sha256);
  fetched.resolved = std::move(resolution.resolved);
  fetched.is_unchanged = fetched.sha256 == options.have_sha256;
  if (!fetched.is_unchanged) fetched.wasm = std::move(accepted.wasm);
  co_return fetched;
}

io::Task<Result<Fetcher::Download>> Fetcher::download(Reference reference,
                                                      std::optional<Resolution> known,
                                                      Content content, bool insecure,
                                                      std::stop_token stop) {
  if (const auto* const oci = std::get_if<OciSource>(&reference.source())) {
    co_return co_await download_oci(*oci, std::move(known), insecure, std::move(stop));
  }
  if (const auto* const config_map = std::get_if<ConfigMapSource>(&reference.source())) {
    co_return co_await download_config_map(*config_map, std::move(known), content, std::move(stop));
  }
  if (const auto* const file = std::get_if<FileSource>(&reference.source())) {
    co_return co_await download_file(*file, std::move(known));
  }
  co_return co_await download_http(std::move(reference), std::move(known), insecure,
                                   std::move(stop));
}

io::Task<Result<Fetcher::Download>> Fetcher::download_http(Reference reference,
                                                           std::optional<Resolution> known,
                                                           bool insecure, std::stop_token stop) {
  const auto& source = std::get<HttpSource>(reference.source());
  http::Request request;
  request.url = source.url;
  request.headers = {{"Accept", "application/wasm, */*"}};
  if (!source.user.empty() || !source.password.empty()) {
    request.headers.emplace_back("Authorization",
                                 basic_authorization(source.user, source.password));
  }
  if (known && !known->etag.empty()) {
    request.headers.emplace_back("If-None-Match", known->etag);
  } else if (known && !known->last_modified.empty()) {
    request.headers.emplace_back("If-Modified-Since", known->last_modified);
  }
  request.transport = insecure ? unverified_ : verified_;
  request.redirects_max = kRedirectsMax;
  http::Response response = HANGAR_CO_TRY(co_await modules::download(
      &client_, std::move(request), limits::kModuleBytesMax, std::move(stop)));
  Download download;
  download.is_unchanged = response.status == kNotModified && known;
  if (response.status != kOk && !download.is_unchanged) {
    co_return fail(kind_of_status(response.status), describe_status(response.status));
  }
  download.bytes = std::move(response.body);
  download.resolution.resolved = reference.display();
  download.resolution.etag = validator(response.headers, "ETag");
  download.resolution.last_modified = validator(response.headers, "Last-Modified");
  co_return download;
}

io::Task<Result<Fetcher::Download>> Fetcher::download_oci(OciSource source,
                                                          std::optional<Resolution> known,
                                                          bool insecure, std::stop_token stop) {
  Credential credential = HANGAR_CO_TRY(credentials_.find(source.registry, source.repository));
  Registry registry(client_, source, std::move(credential),
                    {.transport = insecure ? unverified_ : verified_, .plain_http = insecure});
  Registry::Manifest manifest = HANGAR_CO_TRY(
      co_await registry.manifest(source.digest.empty() ? source.tag : source.digest, stop));
  Download download;
  download.resolution.revision = manifest.digest;
  download.resolution.resolved =
      fmt::format("oci://{}/{}@{}", source.registry, source.repository, manifest.digest);
  download.is_unchanged = known && known->revision == manifest.digest;
  if (download.is_unchanged) co_return download;

  auto content = HANGAR_CO_TRY(read_manifest(manifest.bytes));
  if (const auto* const inner = std::get_if<ModuleManifest>(&content)) {
    manifest = HANGAR_CO_TRY(co_await registry.manifest(inner->manifest.digest, stop));
    content = HANGAR_CO_TRY(read_manifest(manifest.bytes));
  }
  const auto* const layer = std::get_if<ModuleLayer>(&content);
  if (layer == nullptr) {
    co_return fail(ErrorKind::InvalidInput, "oci manifest: the index leads to another index");
  }
  download.blob_digest = layer->blob.digest;
  download.bytes = HANGAR_CO_TRY(co_await registry.blob(layer->blob, stop));
  co_return download;
}

io::Task<Result<Fetcher::Download>> Fetcher::download_config_map(ConfigMapSource source,
                                                                 std::optional<Resolution> known,
                                                                 Content wanted,
                                                                 std::stop_token stop) {
  if (config_maps_ == nullptr) {
    co_return fail(ErrorKind::Denied, "modules in configmaps need a cluster");
  }
  const ConfigMapContent content = HANGAR_CO_TRY(
      co_await config_maps_->read(source.namespace_name, source.name, std::move(stop)));
  Download download;
  download.resolution.revision = content.revision;
  download.resolution.resolved =
      fmt::format("configmap://{}/{}", source.namespace_name, source.name);
  if (!source.key.empty()) download.resolution.resolved += "/" + source.key;
  download.is_unchanged = known && !content.revision.empty() && known->revision == content.revision;
  if (!download.is_unchanged) {
    download.bytes = HANGAR_CO_TRY(module_bytes(content, source.key, wanted));
  }
  co_return download;
}

io::Task<Result<Fetcher::Download>> Fetcher::download_file(FileSource source,
                                                           std::optional<Resolution> known) {
  if (!may_read_files_) {
    co_return fail(ErrorKind::Denied,
                   "files of the host are not for modules: use https, oci or configmap");
  }
  Download download;
  download.resolution.resolved = source.path;
  FileRead read = HANGAR_CO_TRY(co_await workers_.run(
      [path = std::move(source.path), stamp = known ? known->revision : std::string()] {
        return read_if_changed(path, stamp);
      }));
  download.is_unchanged = read.is_unchanged;
  download.bytes = std::move(read.bytes);
  download.resolution.revision = std::move(read.stamp);
  co_return download;
}

}  // namespace hangar::modules
