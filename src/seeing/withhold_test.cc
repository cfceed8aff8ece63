#include "seeing/withhold.h"

#include "base/time.h"
#include "recorder/story.h"
#include "seeing/find.h"
#include "seeing/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hangar::seeing {
namespace {

using recorder::ObjectVersion;
using recorder::Request;
using recorder::Story;
using recorder::Verb;
using recorder::Waking;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Request request(Verb verb, std::string resource, std::string name) {
  return {.verb = verb,
          .resource = std::move(resource),
          .object = {.namespace_ = "team", .name = std::move(name)}};
}

ObjectVersion secret(std::string name) {
  return {.kind = "Secret", .namespace_ = "team", .name = std::move(name)};
}

Story reader() {
  return {.namespace_ = "team",
          .name = "reader",
          .causes = {{.what = Waking::Cause::Modified, .object = secret("watched")},
                     {.what = Waking::Cause::Modified,
                      .object = {.kind = "ConfigMap", .namespace_ = "team", .name = "plain"}}},
          .requests = {request(Verb::Get, "secrets", "password"),
                       request(Verb::List, "secrets", ""),
                       request(Verb::Get, "configmaps", "plain"),
                       // With the kind, as in the answer to a write.
                       {.verb = Verb::Create, .resource = "secrets", .object = secret("made")},
                       // A resource of another group.
                       {.verb = Verb::Get,
                        .resource = "secrets",
                        .object = {.group = "example.com", .namespace_ = "team", .name = "other"}},
                       {.verb = Verb::Other, .path = "/x/secrets/hidden/more"}}};
}

std::vector<std::string> names_in(const Story& story) {
  std::vector<std::string> names;
  for (const recorder::Cause& cause : story.causes)
    names.push_back(cause.object.name);
  for (const Request& one : story.requests)
    names.push_back(one.path.empty() ? one.object.name : one.path);
  return names;
}

TEST(WithholdSecrets, LeavesTheNamesOfThoseThatMayBeSeen) {
  std::set<kube::ObjectKey> secrets;
  add_secrets(reader(), secrets);
  EXPECT_THAT(secrets,
              ElementsAre(kube::ObjectKey{"team", "made"}, kube::ObjectKey{"team", "password"},
                          kube::ObjectKey{"team", "watched"}));

  Story story = reader();
  withhold_secrets(story, {{"team", "password"}, {"other", "watched"}});
  EXPECT_THAT(names_in(story), ElementsAre("(withheld)", "plain", "password", "", "plain",
                                           "(withheld)", "other", "/x/secrets/(withheld)"));
  EXPECT_EQ(story.causes[0].object.kind, "Secret");
}

// The event has no other type, whatever the object is.
TEST(WithholdSecrets, TakesBareMetadataForThatOfASecret) {
  Story story{.causes = {{.what = Waking::Cause::Modified,
                          .object = {.group = "meta.k8s.io",
                                     .kind = "PartialObjectMetadata",
                                     .namespace_ = "team",
                                     .name = "password"}}}};
  std::set<kube::ObjectKey> secrets;
  add_secrets(story, secrets);
  EXPECT_THAT(secrets, ElementsAre(kube::ObjectKey{"team", "password"}));

  withhold_secrets(story, {{"team", "password"}});
  EXPECT_EQ(story.causes[0].object.name, "password");
  withhold_secrets(story, {});
  EXPECT_EQ(story.causes[0].object.name, kWithheld);
}

TEST(WithholdSecrets, ShowsABodyToWhoMayGetAllSecretsThatItsGuestHad) {
  const auto story_of = [](recorder::SecretNames names) {
    Story story{.requests = {request(Verb::Update, "configmaps", "plain")}};
    story.requests[0].body =
        recorder::RecordedBody{.text = R"({"a":1})", .secrets = std::move(names)};
    return story;
  };
  Story story = story_of({{"team", "login"}, {"bank", ""}});
  std::set<kube::ObjectKey> secrets;
  add_secrets(story, secrets);
  EXPECT_THAT(secrets, ElementsAre(kube::ObjectKey{"bank", ""}, kube::ObjectKey{"team", "login"}));

  withhold_secrets(story, {{"team", "login"}, {"bank", ""}});
  EXPECT_EQ(story.requests[0].body->text, R"({"a":1})");
  withhold_secrets(story, {{"team", "login"}, {"bank", "code"}});
  EXPECT_EQ(story.requests[0].body->state, recorder::BodyState::Withheld);
  EXPECT_EQ(story.requests[0].body->text, "");
  EXPECT_THAT(story.requests[0].body->secrets, IsEmpty());
  story = story_of({});
  withhold_secrets(story, {});
  EXPECT_EQ(story.requests[0].body->text, R"({"a":1})");
}

// The first turn wrote the object because of a write of the second.
WhyFindings chain() {
  Story writer{.namespace_ = "shop", .name = "copier", .user = "u", .module = "m", .number = 3};
  writer.causes = {{.what = Waking::Cause::Modified}};
  writer.requests = {request(Verb::Get, "configmaps", "elsewhere"),
                     request(Verb::Update, "things", "target")};
  Story other{.namespace_ = "plans", .name = "planner", .number = 9};
  other.requests = {request(Verb::Update, "things", "source")};
  return {.steps = {{.story = writer, .links = {{.step = 1, .request = 0}}, .depth = 0},
                    {.story = other, .links = {}, .depth = 1}},
          .writes = {{.step = 0, .request = 1}}};
}

TEST(WithholdNamespaces, LeavesOneEntryForAllThatTheReaderMayNotSee) {
  const WallTime at{std::chrono::hours(500000)};
  recorder::ReadDirectory read{
      .shortened = {{.namespace_ = "loud", .records = 3, .until = at},
                    {.namespace_ = "louder", .records = 4, .until = at + std::chrono::hours(1)},
                    {.namespace_ = "shop", .records = 5, .until = at}}};
  withhold_namespaces(read, {"shop", "quiet"});
  EXPECT_THAT(read.shortened,
              ElementsAre(recorder::Shortened{.namespace_ = "shop", .records = 5, .until = at},
                          recorder::Shortened{.namespace_ = std::string(kWithheld),
                                              .records = 7,
                                              .until = at + std::chrono::hours(1)}));
  withhold_namespaces(read, {"shop", std::string(kWithheld)});
  EXPECT_THAT(read.shortened, SizeIs(2));
}

TEST(WithholdGuests, TellsNothingOfATurnThatOnlyLedToIt) {
  WhyFindings findings = chain();
  EXPECT_THAT(guests_in(findings),
              ElementsAre(kube::ObjectKey{"plans", "planner"}, kube::ObjectKey{"shop", "copier"}));
  withhold_guests(findings, {{"shop", "copier"}});

  EXPECT_EQ(findings.steps[0].story.name, "copier");
  EXPECT_EQ(findings.steps[0].links[0].step, 1U);
  EXPECT_FALSE(findings.steps[0].links[0].request);
  const Story& hidden = findings.steps[1].story;
  EXPECT_EQ(hidden.name, kWithheld);
  EXPECT_EQ(hidden.namespace_, "");
  EXPECT_EQ(hidden.number, 0U);
  EXPECT_THAT(hidden.requests, IsEmpty());
}

TEST(WithholdGuests, LeavesTheWriteOnTheObjectThatTheReaderMaySee) {
  WhyFindings findings = chain();
  findings.steps[0].story.requests[1].body = recorder::RecordedBody{.text = R"({"a":1})"};
  withhold_guests(findings, {{"plans", "planner"}});

  const Story& hidden = findings.steps[0].story;
  EXPECT_EQ(hidden.name, kWithheld);
  EXPECT_EQ(hidden.user + hidden.module + hidden.namespace_, "");
  EXPECT_THAT(hidden.causes, IsEmpty());
  EXPECT_THAT(findings.steps[0].links, IsEmpty());
  ASSERT_THAT(hidden.requests, SizeIs(1));
  EXPECT_EQ(findings.writes[0].request, 0U);
  EXPECT_EQ(hidden.requests[0].object.name, "target");
  EXPECT_EQ(hidden.requests[0].body->state, recorder::BodyState::Withheld);
  EXPECT_EQ(hidden.requests[0].body->text, "");
}

TEST(Uses, NameSecretsAndSharersToWhoMaySeeThem) {
  FoundUses found{
      .uses = {{.right = {.verb = Verb::Get, .resource = "secrets", .namespace_ = "team"},
                .names = {"a", "b"}},
               {.right = {.verb = Verb::Get, .resource = "configmaps", .namespace_ = "team"},
                .names = {"b"}},
               {.right = {.path = "/api/v1/secrets/x"}}},
      .sharers = {{.namespace_ = "team", .name = "mine"}, {.namespace_ = "team", .name = "other"}}};
  EXPECT_THAT(secrets_in(found), SizeIs(2));

  withhold_secrets(found, {{.namespace_ = "team", .name = "a"}});
  withhold_sharers(found, {{.namespace_ = "team", .name = "mine"}});
  EXPECT_THAT(found.uses[0].names, ElementsAre("a"));
  EXPECT_TRUE(found.uses[0].has_more_names);
  EXPECT_THAT(found.uses[1].names, ElementsAre("b"));
  EXPECT_FALSE(found.uses[1].has_more_names);
  EXPECT_EQ(found.uses[2].right.path, "/api/v1/secrets/(withheld)");
  EXPECT_THAT(found.sharers, SizeIs(1));
  EXPECT_EQ(found.sharers_withheld, 1U);
}

}  // namespace
}  // namespace hangar::seeing
