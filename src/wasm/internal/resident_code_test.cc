#include "wasm/internal/resident_code.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hangar::wasm::internal {
namespace {

// A module whose run makes 10 bytes resident.
class Code {
 public:
  Code(std::string name, std::uint64_t& resident, std::vector<std::string>& released)
      : name_(std::move(name)), resident_(resident), released_(released) {}

  void run() {
    if (!has_pages_) resident_ += 10;
    has_pages_ = true;
  }

  [[nodiscard]] std::uint64_t code_bytes() const { return 10; }
  void release_pages() const {
    released_.push_back(name_);
    if (has_pages_) resident_ -= 10;
    has_pages_ = false;
  }

 private:
  std::string name_;
  std::uint64_t& resident_;
  std::vector<std::string>& released_;
  mutable bool has_pages_ = false;
};

class ResidentCodeTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Code> run(const std::shared_ptr<Code>& code) {
    code->run();
    resident_code_.has_run(code);
    return code;
  }
  std::shared_ptr<Code> make(const std::string& name) {
    return std::make_shared<Code>(name, resident_, released_);
  }

  std::uint64_t resident_ = 0;
  std::vector<std::string> released_;
  ResidentCode<Code> resident_code_{30, [this] { return resident_; }};
};

TEST_F(ResidentCodeTest, ReleasesNothingWithinItsBound) {
  const auto a = make("a");
  const auto b = make("b");
  const auto c = make("c");

  run(a);
  run(b);
  run(c);

  EXPECT_TRUE(released_.empty());
}

TEST_F(ResidentCodeTest, ReleasesWhoHasNotRunForLongest) {
  const auto a = make("a");
  const auto b = make("b");
  const auto c = make("c");
  const auto d = make("d");
  run(a);
  run(b);
  run(c);
  run(a);

  run(d);

  EXPECT_EQ(released_, std::vector<std::string>{"b"});
  EXPECT_EQ(resident_, 30);
}

TEST_F(ResidentCodeTest, ReleasesAsManyAsItTakes) {
  const auto a = make("a");
  const auto b = make("b");
  const auto c = make("c");
  run(a);
  run(b);
  resident_ += 15;  // Other memory of the process.

  run(c);

  EXPECT_EQ(released_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(ResidentCodeTest, NeverReleasesTheCodeThatHasJustRun) {
  const auto a = make("a");
  resident_ = 100;

  run(a);
  run(a);

  EXPECT_TRUE(released_.empty());
}

TEST_F(ResidentCodeTest, ForgetsModulesThatAreGone) {
  auto a = make("a");
  const auto b = make("b");
  run(a);
  a.reset();
  resident_ = 100;

  run(b);

  EXPECT_TRUE(released_.empty());
}

TEST_F(ResidentCodeTest, NothingIsLeftOfAModuleThatIsGone) {
  // A weak_ptr would keep the control block and its deleter alive.
  const auto witness = std::make_shared<int>();
  const auto code = make("a");
  std::shared_ptr<Code> gone(code.get(), [witness](Code*) {});
  run(gone);
  gone.reset();
  EXPECT_EQ(witness.use_count(), 2);

  resident_code_.forget_gone();

  EXPECT_EQ(witness.use_count(), 1);
}

TEST(ResidentFileBytes, CountTheProgramItself) {
  EXPECT_GT(resident_file_bytes(), 64U * 1024);
}

}  // namespace
}  // namespace hangar::wasm::internal
