// A control plane for one suite alone: for tests that kill parts of it, or that need another setup
// than the shared one. Costs some 3 s a suite; see shared_control_plane.h.
//
//   class FaultsTest : public OwnControlPlane<FaultsTest> {
//    public:
//     static ControlPlaneOptions options() { return {.proxy = true}; }
//   };
//
// A suite with its own SetUp() calls this one first, and returns when is_absent().
#pragma once

#include "base/result.h"
#include "testing/control_plane.h"
#include "testing/shared_control_plane.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

namespace hangar::testing {

template <class Suite>
class OwnControlPlane : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = ControlPlane::start(Suite::options());
    if (started) {
      own_ = *std::move(started);
    } else {
      start_error_ = started.error();
    }
  }
  static void TearDownTestSuite() { own_.reset(); }

  // Each test starts without the faults of the previous one.
  void SetUp() override {
    if (own_) {
      if (Suite::options().proxy) ASSERT_TRUE(own_->heal().has_value());
      return;
    }
    if (SharedControlPlane::may_be_absent(*start_error_)) GTEST_SKIP() << start_error_->message();
    GTEST_FAIL() << "control plane: " << start_error_->message();
  }

  [[nodiscard]] static bool is_absent() { return own_ == nullptr; }

  static inline std::unique_ptr<ControlPlane> own_;

 private:
  static inline std::optional<Error> start_error_;
};

}  // namespace hangar::testing
