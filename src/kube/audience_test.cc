#include "kube/audience.h"

#include "kube/object.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace hangar::kube {
namespace {

TEST(Audience, FindsThoseWhomAnObjectConcerns) {
  struct Listener {
    ObjectKey at;
    [[nodiscard]] const ObjectKey& place() const { return at; }
  };
  Audience<Listener> audience;
  std::vector<std::shared_ptr<Listener>> members;
  const std::vector<ObjectKey> places = {{"b", ""}, {"a", "x"}, {"", "x"},
                                         {"a", ""}, {"", ""},   {"a", "x"}};
  for (const ObjectKey& place : places) {
    members.push_back(std::make_shared<Listener>(place));
    audience.add(members.back());
  }
  const auto concerned = [&](const ObjectKey& key) {
    std::string out;
    for (const auto& member : audience.concerned_by(key))
      out += "[" + member->at.to_string() + "]";
    return out;
  };
  EXPECT_EQ(concerned({"a", "x"}), "[a/x][x][a/][][a/x]") << "in the order in which they came";
  EXPECT_EQ(concerned({"b", "y"}), "[b/][]");
  EXPECT_EQ(concerned({"", "x"}), "[x][]") << "once each";
  EXPECT_EQ(audience.all().size(), 6U);

  audience.remove(*members[4]);
  audience.remove(*members[4]);
  audience.remove(*members[5]);

  EXPECT_EQ(concerned({"a", "x"}), "[a/x][x][a/]");
  EXPECT_EQ(audience.concerned_by({"a", "x"}).front(), members[1]) << "of two in one place";
  EXPECT_EQ(audience.size(), 4U);
}

}  // namespace
}  // namespace hangar::kube
