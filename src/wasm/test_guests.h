// For tests that run guests: everything from a loop to a cache of native code, and tests/guests.
#pragma once

#include "base/result.h"
#include "io/file.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "wasm/code_cache.h"
#include "wasm/digest.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/instance.h"
#include "wasm/limits.h"
#include "wasm/module.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::wasm {

// A directory that is removed by the destructor.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "hangar-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Native code that all tests of one program share, so that each guest is compiled once.
inline const std::filesystem::path& shared_code_directory() {
  static const TemporaryDirectory directory;
  return directory.path();
}

// Makes calls in order, and keeps their results and the size of memory before and after them.
class Calls final : public Turn {
 public:
  explicit Calls(std::vector<Invocation> calls) : calls_(std::move(calls)) {}

  Result<std::optional<Invocation>> next(GuestMemory memory, std::uint64_t result) override {
    if (next_ == 0) memory_before_ = digest_of(memory);
    if (next_ > 0) results_.push_back(result);
    if (next_ == calls_.size()) {
      memory_bytes_ = memory.size_bytes();
      memory_after_ = digest_of(memory);
      return std::optional<Invocation>();
    }
    return calls_[next_++];
  }

  [[nodiscard]] const std::vector<std::uint64_t>& results() const { return results_; }
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }
  [[nodiscard]] const Digest& memory_before() const { return memory_before_; }
  [[nodiscard]] const Digest& memory_after() const { return memory_after_; }

 private:
  static Digest digest_of(GuestMemory memory) {
    return Digest::of(memory.range(0, memory.size_bytes()).value());
  }

  const std::vector<Invocation> calls_;
  std::size_t next_ = 0;
  std::vector<std::uint64_t> results_;
  std::uint64_t memory_bytes_ = 0;
  Digest memory_before_;
  Digest memory_after_;
};

class GuestRig {
 public:
  explicit GuestRig(Engine::Options options = {}, std::size_t worker_count = 2)
      : workers_(loop_, worker_count),
        engine_(loop_, workers_, options),
        cache_(engine_,
               {.directory = shared_code_directory(), .compile_program = HANGAR_COMPILE_PROGRAM}) {
    EXPECT_TRUE(cache_.open().has_value());
  }

  [[nodiscard]] io::Loop& loop() { return loop_; }
  [[nodiscard]] io::Workers& workers() { return workers_; }
  [[nodiscard]] Engine& engine() { return engine_; }
  [[nodiscard]] CodeCache& cache() { return cache_; }

  // Runs the loop until `task` has a value.
  template <class T>
  T await(io::Task<T> task) {
    return io::run_to_end(loop_, std::move(task));
  }

  // The assembled text of tests/guests/<name>.wat.
  static std::shared_ptr<const std::string> bytes_of(const std::string& name) {
    auto bytes = io::read_file(std::filesystem::path(HANGAR_GUESTS_DIR) / (name + ".wasm"),
                               limits::kModuleBytesMax);
    EXPECT_TRUE(bytes.has_value()) << "no guest " << name;
    return std::make_shared<const std::string>(bytes ? *std::move(bytes) : "");
  }

  Result<std::shared_ptr<const Module>> try_load(std::shared_ptr<const std::string> bytes) {
    return await(cache_.load(Digest::of(*bytes), bytes, {}));
  }
  std::shared_ptr<const Module> load(const std::string& name) {
    auto module = try_load(bytes_of(name));
    EXPECT_TRUE(module.has_value()) << name << ": " << module.error().message();
    return module ? *std::move(module) : nullptr;
  }

 private:
  io::Loop loop_;
  io::Workers workers_;
  Engine engine_;
  CodeCache cache_;
};

}  // namespace hangar::wasm
