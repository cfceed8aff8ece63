#include "modules/proofs.h"

#include "base/digest.h"
#include "base/time.h"
#include "modules/module_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace hangar::modules {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

class ProofsTest : public testing::Test {
 protected:
  ProofsTest() {
    std::string name = (std::filesystem::temp_directory_path() / "proofs.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    store_ = ModuleStore::open(root_ / "modules").value();
  }
  ~ProofsTest() override { std::filesystem::remove_all(root_); }

  // The source gives the module now.
  void prove(const Access& access, std::string_view module = "module") {
    ASSERT_TRUE(store_
                    ->remember(proof_key(access.requester, access.name),
                               {.sha256 = sha256_hex(module),
                                .credential = access.credential,
                                .proven_at = Proofs::seconds_of(now_)})
                    .has_value());
  }
  [[nodiscard]] Standing standing(const Access& access, std::string_view module = "module") const {
    return Proofs(*store_, hours(1)).standing(access, sha256_hex(module), now_);
  }
  [[nodiscard]] Proofs proofs() const { return Proofs(*store_, hours(1)); }

  std::filesystem::path root_;
  std::unique_ptr<ModuleStore> store_;
  WallTime now_ = WallTime(std::chrono::hours(500'000));
  const Access team_{.requester = "team",
                     .name = "oci://registry/team/f:v1",
                     .scope = "oci://registry/team/f",
                     .credential = "credential"};
};

TEST_F(ProofsTest, AProofIsOfOneRequesterSourceCredentialAndDigest) {
  prove(team_);
  ASSERT_TRUE(proofs().grant(team_, sha256_hex("module")).has_value());

  EXPECT_EQ(standing(team_), Standing::Fresh);
  Access other = team_;
  other.requester = "other";
  EXPECT_EQ(standing(other), Standing::None);
  other = team_;
  other.name = "oci://registry/other/f:v1";
  other.scope = "oci://registry/other/f";
  EXPECT_EQ(standing(other), Standing::None);
  other = team_;
  other.credential = "rotated";
  EXPECT_EQ(standing(other), Standing::None);
  EXPECT_EQ(standing(team_, "another module"), Standing::None);
}

TEST_F(ProofsTest, AProofIsFreshForAnHour) {
  prove(team_);
  ASSERT_TRUE(proofs().grant(team_, sha256_hex("module")).has_value());
  now_ += hours(1) - seconds(1);
  EXPECT_EQ(standing(team_), Standing::Fresh);
  now_ += seconds(1);
  EXPECT_EQ(standing(team_), Standing::Stale);
  now_ += hours(1) - seconds(1);
  EXPECT_EQ(standing(team_), Standing::Stale);
  now_ += seconds(1);
  EXPECT_EQ(standing(team_), Standing::Old) << "whoever has not asked by then has to";
  prove(team_);
  EXPECT_EQ(standing(team_), Standing::Fresh) << "the source has confirmed it";
}

TEST_F(ProofsTest, AClockThatWasSetBackMakesNoProofFresh) {
  prove(team_);
  now_ -= hours(24);
  EXPECT_EQ(standing(team_), Standing::Old);
}

TEST_F(ProofsTest, AGrantOutlivesWhatTheReferenceMeantAndTheProcess) {
  prove(team_);
  ASSERT_TRUE(proofs().grant(team_, sha256_hex("module")).has_value());
  prove(team_, "new");
  store_ = ModuleStore::open(root_ / "modules").value();

  EXPECT_EQ(standing(team_), Standing::Fresh);
  Access by_digest = team_;
  by_digest.name = "oci://registry/team/f@sha256:0";
  EXPECT_EQ(standing(by_digest), Standing::Fresh) << "another name in the same repository";
  now_ += hours(1);
  EXPECT_EQ(standing(team_), Standing::Stale);
}

TEST_F(ProofsTest, NothingIsGrantedThatNoSourceGave) {
  ASSERT_TRUE(proofs().grant(team_, sha256_hex("module")).has_value());
  EXPECT_EQ(standing(team_), Standing::None);
  ASSERT_TRUE(proofs().grant_copy(team_, sha256_hex("module"), now_).has_value());
  EXPECT_EQ(standing(team_), Standing::Fresh) << "it has the bytes";
}

TEST_F(ProofsTest, ARefusalDropsAllProofsOfTheRequesterThere) {
  Access other = team_;
  other.requester = "other";
  Access anonymous = team_;
  anonymous.credential.clear();
  Access elsewhere = team_;
  elsewhere.name = elsewhere.scope = "https://elsewhere/f";
  for (const Access& access : {team_, other, elsewhere}) {
    prove(access);
    ASSERT_TRUE(proofs().grant(access, sha256_hex("module")).has_value());
    prove(access, "new");
    ASSERT_TRUE(proofs().grant(access, sha256_hex("new")).has_value());
  }

  EXPECT_FALSE(proofs().drop(anonymous).value()) << "it is another credential that was refused";
  EXPECT_TRUE(proofs().drop(team_).value());
  EXPECT_FALSE(proofs().drop(team_).value()) << "nothing is left";

  store_ = ModuleStore::open(root_ / "modules").value();
  for (const std::string_view module : {"module", "new"}) {
    EXPECT_EQ(standing(team_, module), Standing::None);
    EXPECT_EQ(standing(other, module), Standing::Fresh);
    EXPECT_EQ(standing(elsewhere, module), Standing::Fresh);
  }
}

}  // namespace
}  // namespace hangar::modules
