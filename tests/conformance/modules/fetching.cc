#include "fetching.h"

#include "base/assert.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "http/address_policy.h"
#include "io/all.h"
#include "io/run.h"
#include "io/task.h"
#include "modules/internal/gzip.h"
#include "modules/reference.h"
#include "modules/requester.h"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::testing {

std::string module_named(std::string_view name) {
  HANGAR_ASSERT(name.size() < 126, "its length fits into one byte");
  std::string bytes("\0asm\x01\0\0\0", 8);
  bytes += '\0';
  bytes += static_cast<char>(name.size() + 1);
  bytes += static_cast<char>(name.size());
  bytes += name;
  return bytes;
}

std::string sha256_of(std::string_view bytes) {
  return sha256_hex(bytes);
}
std::string gzip_of(std::string_view bytes) {
  return modules::gzip(bytes);
}

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "modules.XXXXXX").string();
  HANGAR_ASSERT(::mkdtemp(name.data()) != nullptr, "the temporary directory is writable");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::filesystem::remove_all(path_);
}

FetchingHost::FetchingHost(const std::filesystem::path& directory,
                           modules::ConfigMapReader* config_maps,
                           const http::AddressPolicy& tenant_addresses, Duration proof_kept,
                           Duration patience) {
  auto opened = modules::ModuleStore::open(directory / "store");
  HANGAR_ASSERT(opened.has_value(), "the directory is ours");
  store = *std::move(opened);
  fetcher = std::make_unique<modules::Fetcher>(
      modules::Fetcher::Parts{.loop = loop,
                              .workers = workers,
                              .client = client,
                              .store = *store,
                              .config_maps = config_maps,
                              .may_read_files = true,
                              .tenant_addresses = tenant_addresses,
                              .proof_kept = proof_kept,
                              .patience = patience});
}

Result<modules::Fetched> FetchingHost::fetch(std::string_view reference,
                                             modules::FetchOptions options) {
  return fetch_as(modules::Requester::cluster_wide(), reference, std::move(options));
}

Result<modules::Fetched> FetchingHost::fetch_as(modules::Requester requester,
                                                std::string_view reference,
                                                modules::FetchOptions options) {
  modules::Reference parsed = HANGAR_TRY(modules::Reference::parse(reference));
  return io::run_to_end(
      loop, fetcher->fetch(std::move(requester), std::move(parsed), std::move(options), {}));
}

std::vector<Result<modules::Fetched>> FetchingHost::fetch_at_once(std::string_view reference,
                                                                  int count) {
  const auto parsed = modules::Reference::parse(reference);
  HANGAR_ASSERT(parsed.has_value(), "the test's reference is right");
  std::vector<io::Task<Result<modules::Fetched>>> fetches;
  for (int index = 0; index < count; ++index)
    fetches.push_back(fetcher->fetch(modules::Requester::cluster_wide(), *parsed, {}, {}));
  return io::run_to_end(loop, io::all(loop, std::move(fetches)));
}

}  // namespace hangar::testing
