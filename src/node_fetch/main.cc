// hangar-node-fetch: downloads runtimes into a directory, with a SHA256SUMS, for `hangar-node
// install --runtimes-dir`.
//
// A separate program so that the privileged one opens no connection and unpacks no archive: this
// one runs before it, without privileges, as an init container that shares a volume.
#include "base/digest.h"
#include "base/result.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "node_fetch/unpack.h"
#include "node_install/limits.h"
#include "node_install/report.h"
#include "node_install/runtime_source.h"
#include "node_install/runtimes.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::node_fetch {

namespace {

namespace fs = std::filesystem;
using node_install::RuntimeSource;

// For one runtime: 500 MB at 1 MB/s.
constexpr std::chrono::minutes kDownloadMax{10};
// A server that is silent for this long counts as dead.
constexpr std::chrono::seconds kSilenceMax{60};
constexpr int kRedirectsMax = 5;

// The file is complete, and its checksum verified, only once this has succeeded.
io::Task<Result<>> download(http::Client* client, node_install::RuntimeSource source,
                            std::string to, std::shared_ptr<const http::Transport> transport) {
  std::ofstream out(to, std::ios::binary | std::ios::trunc);
  Sha256 hash;
  http::Request request{.url = source.url,
                        .transport = std::move(transport),
                        .total_timeout = kDownloadMax,
                        .idle_timeout = kSilenceMax,
                        .response_bytes_max = node_install::limits::kRuntimeBytesMax,
                        .redirects_max = kRedirectsMax};
  http::Client::StreamHandler handler{
      .on_headers = [](int status, const http::Headers&) -> Result<> {
        if (status == 200) return {};
        return fail(status == 404 ? ErrorKind::NotFound : ErrorKind::Unavailable,
                    fmt::format("the server answers with status {}", status));
      },
      .on_bytes = [&out, &hash](std::string_view bytes) -> Result<> {
        hash.add(bytes);
        out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        if (!out) return fail(ErrorKind::Unavailable, "write the download");
        return {};
      }};
  const Result<http::Response> response =
      co_await client->stream(std::move(request), std::move(handler), std::stop_token());
  if (!response) co_return std::unexpected(response.error());
  out.close();
  if (!out) co_return fail(ErrorKind::Unavailable, fmt::format("write {}", to));
  if (const std::string found = to_hex(hash.finish()); found != source.sha256) {
    co_return fail(ErrorKind::InvalidInput,
                   fmt::format("its sha256 is {}, expected {}", found, source.sha256));
  }
  co_return Result<>();
}

// Removes files that a failed run has left under this name, and its own files if it fails.
Result<std::string> fetch_one(const RuntimeSource& source, const fs::path& directory,
                              const std::shared_ptr<const http::Transport>& transport) {
  const std::string part = (directory / (source.file + ".part")).string();
  const std::string unpacked = (directory / (source.file + ".unpacked")).string();
  const auto fetch = [&]() -> Result<> {
    io::Loop loop;
    http::Client client(loop);
    HANGAR_TRY(io::run_to_end(loop, download(&client, source, part, transport)));
    if (source.is_archive()) HANGAR_TRY(unpack_one(part, source.file, unpacked));
    std::error_code error;
    fs::rename(source.is_archive() ? unpacked : part, directory / source.file, error);
    if (error) return fail(ErrorKind::Unavailable, fmt::format("{}: {}", part, error.message()));
    return {};
  };
  Result<> fetched = fetch();
  std::error_code ignored;
  fs::remove(part, ignored);
  fs::remove(unpacked, ignored);
  if (!fetched) {
    return std::unexpected(
        std::move(fetched).error().in(fmt::format("{} from {}", source.file, source.url)));
  }
  std::ifstream in(directory / source.file, std::ios::binary);
  Sha256 hash;
  std::vector<char> piece(std::size_t{256} * 1024);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0)
    hash.add({piece.data(), static_cast<std::size_t>(in.gcount())});
  std::string found = to_hex(hash.finish());
  if (found != source.program_sha256) {
    fs::remove(directory / source.file, ignored);
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("{} from {}: the sha256 of the program in the archive is {}, expected {}",
                    source.file, source.url, found, source.program_sha256));
  }
  return found;
}

Result<> fetch_all(const std::vector<std::string>& texts, const fs::path& directory,
                   const std::string& ca_file) {
  std::vector<RuntimeSource> all;
  all.reserve(texts.size());
  for (const std::string& text : texts)
    all.push_back(HANGAR_TRY(node_install::parse_runtime_source(text)));
  http::Transport transport;
  if (!ca_file.empty()) {
    std::ifstream in(ca_file);
    transport.ca_pem = std::string(std::istreambuf_iterator<char>(in), {});
    if (!in) return fail(ErrorKind::InvalidInput, fmt::format("--ca-file: read {}", ca_file));
  }
  const auto shared = std::make_shared<const http::Transport>(std::move(transport));
  std::error_code error;
  fs::create_directories(directory, error);
  std::string sums;
  for (const RuntimeSource& source :
       HANGAR_TRY(node_install::choose_sources(all, node_install::architecture()))) {
    const std::string sha256 = HANGAR_TRY(fetch_one(source, directory, shared));
    fmt::print("fetched {} sha256={}\n", source.file, sha256);
    std::fflush(stdout);
    sums += fmt::format("{}  {}\n", sha256, source.file);
  }
  // Last: hangar-node accepts no runtime without it.
  std::ofstream out(directory / "SHA256SUMS", std::ios::trunc);
  out << sums;
  out.close();
  if (!out)
    return fail(ErrorKind::Unavailable,
                fmt::format("write {}", (directory / "SHA256SUMS").string()));
  return {};
}

}  // namespace

}  // namespace hangar::node_fetch

int main(int argc, char** argv) {
  std::string directory;
  std::string ca_file;
  std::vector<std::string> wanted;
  CLI::App app("Downloads Wasm runtimes for hangar-node, checked against their SHA-256.");
  app.set_version_flag("--version", HANGAR_VERSION);
  app.add_option("--to", directory, "output directory, created if it does not exist")->required();
  app.add_option("--ca-file", ca_file, "PEM file of the CAs to trust instead of the system's");
  app.add_option("RUNTIME", wanted,
                 "FILE[@ARCHITECTURE]=URL#sha256:HEX; a .tar.gz must contain one file named FILE, "
                 "whose checksum follows: #program-sha256:HEX")
      ->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const hangar::Result<> fetched = hangar::node_fetch::fetch_all(wanted, directory, ca_file);
  if (fetched) return 0;
  fmt::print(stderr, "hangar-node-fetch: {}\n", fetched.error().message());
  hangar::node_install::leave_last_words(fetched.error());
  return 1;
}
