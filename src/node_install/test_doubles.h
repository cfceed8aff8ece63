// For tests of this folder only: a root in a temporary directory, and a service whose restart
// does nothing.
#pragma once

#include "base/digest.h"
#include "base/result.h"
#include "node_install/config_edit.h"
#include "node_install/distribution.h"
#include "node_install/files.h"
#include "node_install/report.h"
#include "node_install/runtimes.h"
#include "node_install/service.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::node_install {

class TempRoot {
 public:
  TempRoot() {
    std::string path = (std::filesystem::temp_directory_path() / "hangar-node-XXXXXX").string();
    path_ = ::mkdtemp(path.data());
  }
  TempRoot(const TempRoot&) = delete;
  TempRoot& operator=(const TempRoot&) = delete;
  ~TempRoot() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  void put(std::string_view path, std::string_view text) const {
    const std::filesystem::path file = path_ / path.substr(1);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  [[nodiscard]] std::string get(std::string_view path) const {
    std::ifstream file(path_ / path.substr(1), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] bool has(std::string_view path) const {
    return std::filesystem::exists(path_ / path.substr(1));
  }
  // Every file with its bytes, every link with its target, every directory.
  [[nodiscard]] std::map<std::string, std::string> tree() const { return tree_of(path_); }

  static std::map<std::string, std::string> tree_of(const std::filesystem::path& directory) {
    std::map<std::string, std::string> tree;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      const std::string name = entry.path().lexically_relative(directory).string();
      if (entry.is_symlink()) {
        tree[name] = "link to " + std::filesystem::read_symlink(entry.path()).string();
      } else if (entry.is_directory()) {
        tree[name] = "directory";
      } else {
        std::ifstream file(entry.path(), std::ios::binary);
        tree[name] = std::string(std::istreambuf_iterator<char>(file), {});
      }
    }
    return tree;
  }

 private:
  std::filesystem::path path_;
};

// For tests that read no output.
class SilentReport {
 public:
  Report& operator*() { return report_; }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> out_{std::fopen("/dev/null", "we"), &std::fclose};
  Report report_{Report::Format::Lines, out_.get()};
};

// Fails the given number of times, and then works.
class FakeService final : public Service {
 public:
  Result<> check(const Node& /*node*/) override { return {}; }
  Result<> restart(const Node& node) override {
    ++restarts;
    last_config = node.config;
    if (failures > 0) {
      --failures;
      return fail(ErrorKind::Unavailable, "it does not come back");
    }
    return {};
  }
  int restarts = 0;
  int failures = 0;
  std::string last_config;
};

// Runtimes of a few bytes each, as runtimes_in() returns them.
class FakeRuntimes {
 public:
  explicit FakeRuntimes(std::map<std::string, std::string> bytes_by_file)
      : bytes_by_file_(std::move(bytes_by_file)) {}

  Result<std::vector<Runtime>> operator()(std::string_view install_directory) const {
    std::vector<Runtime> runtimes;
    for (const auto& [file, bytes] : bytes_by_file_) {
      files_.put("/" + file, bytes);
      Result<Handler> handler = handler_of(file, std::string(install_directory) + "/bin/" + file);
      if (!handler) return std::unexpected(std::move(handler).error());
      runtimes.push_back(
          {.file = file,
           .sha256 = sha256_hex(bytes),
           .source = Descriptor(::open((files_.path() / file).c_str(), O_RDONLY | O_CLOEXEC)),
           .handler = *std::move(handler)});
    }
    return runtimes;
  }

 private:
  std::map<std::string, std::string> bytes_by_file_;
  TempRoot files_;
};

}  // namespace hangar::node_install
