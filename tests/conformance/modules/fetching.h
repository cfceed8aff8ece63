// Shared by the tests of this program: modules to fetch, and a host that fetches them.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "http/address_policy.h"
#include "http/client.h"
#include "io/loop.h"
#include "io/workers.h"
#include "modules/config_map.h"
#include "modules/docker_config.h"
#include "modules/fetcher.h"
#include "modules/module_store.h"
#include "modules/requester.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::testing {

// An empty module with a custom section of that name: each name gives another module.
[[nodiscard]] std::string module_named(std::string_view name);

[[nodiscard]] std::string sha256_of(std::string_view bytes);
[[nodiscard]] std::string gzip_of(std::string_view bytes);

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// One run of the host: a second one with the same directory is the host after its restart.
class FetchingHost {
 public:
  // The servers of these tests are on loopback, which is allowed unless `tenant_addresses`
  // is given.
  explicit FetchingHost(const std::filesystem::path& directory,
                        modules::ConfigMapReader* config_maps = nullptr,
                        const http::AddressPolicy& tenant_addresses = http::AddressPolicy(),
                        Duration proof_kept = std::chrono::hours(1),
                        Duration patience = std::chrono::minutes(1));

  // Runs the loop until the module is there.
  [[nodiscard]] Result<modules::Fetched> fetch(std::string_view reference,
                                               modules::FetchOptions options = {});
  [[nodiscard]] Result<modules::Fetched> fetch_as(modules::Requester requester,
                                                  std::string_view reference,
                                                  modules::FetchOptions options = {});
  // Fetches the same text `count` times at once.
  [[nodiscard]] std::vector<Result<modules::Fetched>> fetch_at_once(std::string_view reference,
                                                                    int count);

  io::Loop loop;
  io::Workers workers{loop, 2};
  http::Client client{loop};
  std::unique_ptr<modules::ModuleStore> store;
  std::unique_ptr<modules::Fetcher> fetcher;
};

}  // namespace hangar::testing
