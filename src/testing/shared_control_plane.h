// One control plane for all tests of a program. In one .cc of the program:
//
//   const SharedControlPlane kShared({.simulated_nodes = 3, .registry = true});
//
// and in a test, which uses its own namespace:
//
//   ControlPlane& cluster = HANGAR_SHARED_CONTROL_PLANE();
//   const auto name = cluster.unique_namespace();
//
// If the control plane's programs have not been built, the test is skipped, with the reason; if the
// environment has CI=true, it fails instead. If the programs do not start, it always fails.
#pragma once

#include "base/result.h"
#include "testing/control_plane.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace hangar::testing {

class SharedControlPlane {
 public:
  explicit SharedControlPlane(ControlPlaneOptions options) {
    options_of_program() = std::move(options);
    ::testing::AddGlobalTestEnvironment(new Environment());  // GoogleTest owns it.
  }

  // Starts it at the first call; later calls return the same result.
  [[nodiscard]] static const Result<std::unique_ptr<ControlPlane>>& get() {
    std::optional<Result<std::unique_ptr<ControlPlane>>>& started = started_of_program();
    if (!started) started.emplace(ControlPlane::start(options_of_program()));
    return *started;
  }

  [[nodiscard]] static bool may_be_absent(const Error& error) {
    const char* ci = std::getenv("CI");  // NOLINT(concurrency-mt-unsafe): nobody changes it.
    return error.kind() == ErrorKind::NotFound && (ci == nullptr || std::string_view(ci) != "true");
  }

 private:
  // Stops the control plane after the last test, not at exit: no part of it outlives the tests.
  class Environment : public ::testing::Environment {
   public:
    void TearDown() override { started_of_program().reset(); }
  };

  static ControlPlaneOptions& options_of_program() {
    static ControlPlaneOptions options;
    return options;
  }
  static std::optional<Result<std::unique_ptr<ControlPlane>>>& started_of_program() {
    static std::optional<Result<std::unique_ptr<ControlPlane>>> started;
    return started;
  }
};

}  // namespace hangar::testing

// The program's control plane, or ends the test as skipped or failed.
#define HANGAR_SHARED_CONTROL_PLANE()                                          \
  __extension__({                                                              \
    const auto& hangar_shared_ = ::hangar::testing::SharedControlPlane::get(); \
    if (!hangar_shared_) {                                                     \
      const ::hangar::Error& hangar_error_ = hangar_shared_.error();           \
      if (::hangar::testing::SharedControlPlane::may_be_absent(hangar_error_)) \
        GTEST_SKIP() << hangar_error_.message();                               \
      GTEST_FAIL() << "control plane: " << hangar_error_.message();            \
    }                                                                          \
    std::ref(**hangar_shared_);                                                \
  }).get()
