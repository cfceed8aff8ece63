#include "fetching.h"

#include "base/assert.h"
#include "base/result.h"
#include "io/task.h"
#include "modules/internal/gzip.h"
#include "modules/internal/sha256.h"
#include "modules/reference.h"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::testing {

namespace {

using Fetches = std::vector<std::optional<Result<modules::Fetched>>>;

io::Task<void> put_into(Fetches* fetches, std::size_t index,
                        io::Task<Result<modules::Fetched>> fetch) {
  (*fetches)[index] = co_await std::move(fetch);
}

}  // namespace

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
  return modules::sha256_hex(bytes);
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
                           modules::ConfigMapReader* config_maps) {
  auto opened = modules::ModuleStore::open(directory / "store");
  HANGAR_ASSERT(opened.has_value(), "the directory is ours");
  store = *std::move(opened);
  fetcher = std::make_unique<modules::Fetcher>(modules::Fetcher::Parts{.loop = loop,
                                                                       .workers = workers,
                                                                       .client = client,
                                                                       .store = *store,
                                                                       .config_maps = config_maps,
                                                                       .may_read_files = true});
}

Result<modules::Fetched> FetchingHost::fetch(std::string_view reference,
                                             modules::FetchOptions options) {
  modules::Reference parsed = HANGAR_TRY(modules::Reference::parse(reference));
  Fetches fetches(1);
  loop.spawn(put_into(&fetches, 0, fetcher->fetch(std::move(parsed), std::move(options), {})));
  loop.run_until([&fetches] { return fetches.front().has_value(); });
  return *std::move(fetches.front());
}

std::vector<Result<modules::Fetched>> FetchingHost::fetch_at_once(std::string_view reference,
                                                                  int count) {
  const auto parsed = modules::Reference::parse(reference);
  HANGAR_ASSERT(parsed.has_value(), "the test's reference is right");
  Fetches fetches(static_cast<std::size_t>(count));
  for (std::size_t index = 0; index < fetches.size(); ++index)
    loop.spawn(put_into(&fetches, index, fetcher->fetch(*parsed, {}, {})));
  loop.run_until([this] { return loop.spawned_count() == 0; });
  std::vector<Result<modules::Fetched>> all;
  for (auto& fetch : fetches)
    all.push_back(*std::move(fetch));
  return all;
}

}  // namespace hangar::testing
