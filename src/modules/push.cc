#include "modules/push.h"

#include "base/digest.h"
#include "base/result.h"
#include "http/client.h"
#include "io/task.h"
#include "json/value.h"
#include "modules/docker_config.h"
#include "modules/internal/gzip.h"
#include "modules/internal/registry.h"
#include "modules/limits.h"
#include "modules/oci_manifest.h"
#include "modules/reference.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::modules {

namespace {

constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
// The media types that `yoke stow` uses.
constexpr std::string_view kConfigType = "application/vnd.yoke.config.v1+json";
constexpr std::string_view kLayerType = "application/vnd.yoke.wasm.gzip";
constexpr std::string_view kConfig = "{}";

// A file that can be read from any offset.
class PushedFile {
 public:
  [[nodiscard]] static Result<std::shared_ptr<const PushedFile>> open(
      const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto failed = [&path] {
      const ErrorKind kind = errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable;
      return fail(kind,
                  fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
    };
    if (file < 0) return failed();
    auto source = std::make_shared<PushedFile>(file);
    struct stat status{};
    if (::fstat(file, &status) != 0) return failed();
    source->size_bytes_ = static_cast<std::uint64_t>(status.st_size);
    return std::shared_ptr<const PushedFile>(std::move(source));
  }
  explicit PushedFile(int file) : file_(file) {}
  PushedFile(const PushedFile&) = delete;
  PushedFile& operator=(const PushedFile&) = delete;
  ~PushedFile() { ::close(file_); }

  [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }

  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const {
    while (true) {
      const ssize_t count = ::pread(file_, into.data(), into.size(), static_cast<off_t>(offset));
      if (count > 0) return static_cast<std::size_t>(count);
      if (count < 0 && errno == EINTR) continue;
      return fail(ErrorKind::Unavailable, count == 0 ? std::string("the file has become shorter")
                                                     : std::generic_category().message(errno));
    }
  }

  [[nodiscard]] Result<std::string> sha256() const {
    constexpr std::size_t kStep = 1024 * 1024;
    std::vector<char> step(kStep);
    Sha256 digest;
    for (std::uint64_t offset = 0; offset < size_bytes_;) {
      const std::size_t count = HANGAR_TRY(read(offset, step));
      digest.add({step.data(), count});
      offset += count;
    }
    return to_hex(digest.finish());
  }

 private:
  const int file_;
  std::uint64_t size_bytes_ = 0;
};

using OnProgress = std::function<void(std::uint64_t bytes, std::uint64_t of)>;

http::BodySource body_of(std::shared_ptr<const PushedFile> source, OnProgress on_progress) {
  const std::uint64_t size = source->size_bytes();
  return {.size_bytes = size,
          .read = [size, source = std::move(source), on_progress = std::move(on_progress)](
                      std::uint64_t offset, std::span<char> into) {
            const Result<std::size_t> count = source->read(offset, into);
            if (count && on_progress) on_progress(offset + *count, size);
            return count;
          }};
}

http::BodySource body_of(std::string_view text) {
  return {.size_bytes = text.size(),
          .read = [text](std::uint64_t offset, std::span<char> into) -> Result<std::size_t> {
            return text.copy(into.data(), into.size(), offset);
          }};
}

struct Layer {
  std::shared_ptr<const PushedFile> source;
  std::string digest;  // "sha256:...".
  std::string module_sha256;
};

Result<Layer> compress(const PushOptions& options) {
  const std::shared_ptr<const PushedFile> module = HANGAR_TRY(PushedFile::open(options.module));
  if (module->size_bytes() > limits::kFetchedBytesMax) {
    return fail(ErrorKind::LimitExceeded,
                fmt::format("{} has {} bytes, and a module may have {}", options.module.string(),
                            module->size_bytes(), limits::kFetchedBytesMax));
  }
  Layer layer{.module_sha256 = HANGAR_TRY(module->sha256())};
  const std::filesystem::path file = options.work / "layer.wasm.gz";
  HANGAR_TRY(gzip_file(options.module, file));
  layer.source = HANGAR_TRY(PushedFile::open(file));
  layer.digest = "sha256:" + HANGAR_TRY(layer.source->sha256());
  return layer;
}

}  // namespace

Result<OciSource> read_push_target(const std::string& text) {
  const Reference reference = HANGAR_TRY(Reference::parse(text));
  const auto* const oci = std::get_if<OciSource>(&reference.source());
  if (oci == nullptr) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{} is not a registry: write oci://registry/repository:tag",
                            reference.display()));
  }
  if (oci->digest.empty()) return *oci;
  return fail(ErrorKind::InvalidInput,
              fmt::format("{} names a digest, which is not known before the push: write "
                          "oci://registry/repository:tag",
                          reference.display()));
}

std::string module_manifest(const std::string& layer_digest, std::uint64_t layer_bytes) {
  return json::dump(json::Object{
      {"schemaVersion", 2},
      {"mediaType", kManifestType},
      {"config", json::Object{{"mediaType", kConfigType},
                              {"digest", "sha256:" + sha256_hex(kConfig)},
                              {"size", kConfig.size()}}},
      {"layers",
       json::Array{json::Object{
           {"mediaType", kLayerType}, {"digest", layer_digest}, {"size", layer_bytes}}}}});
}

io::Task<Result<Pushed>> push_module(http::Client& client, PushOptions options,
                                     std::stop_token stop) {
  const OciSource target = options.target;
  const auto failed = [&target](Error error) {
    return std::unexpected(std::move(error).in(
        fmt::format("oci://{}/{}:{}", target.registry, target.repository, target.tag)));
  };
  Result<Credential> credential = options.credentials.find(target.registry, target.repository);
  if (!credential) co_return failed(std::move(credential).error());
  const Layer layer = HANGAR_CO_TRY(compress(options));
  Registry registry(client, target, *std::move(credential),
                    {.transport = options.transport, .plain_http = options.plain_http});
  Result<> done =
      co_await registry.push_blob(layer.digest, body_of(layer.source, options.on_progress), stop);
  if (done) {
    done = co_await registry.push_blob("sha256:" + sha256_hex(kConfig), body_of(kConfig), stop);
  }
  const std::string manifest = module_manifest(layer.digest, layer.source->size_bytes());
  if (done) done = co_await registry.push_manifest(target.tag, kManifestType, manifest, stop);
  for (const std::string& tag : options.more_tags) {
    if (done && tag != target.tag) {
      done = co_await registry.push_manifest(tag, kManifestType, manifest, stop);
    }
  }
  if (!done) co_return failed(std::move(done).error());
  co_return Pushed{.reference = fmt::format("oci://{}/{}@sha256:{}", target.registry,
                                            target.repository, sha256_hex(manifest)),
                   .sha256 = layer.module_sha256,
                   .compressed_bytes = layer.source->size_bytes()};
}

}  // namespace hangar::modules
