#include "modules/supply.h"

#include "base/base64.h"
#include "base/digest.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/beneficiaries.h"
#include "budget/cache_charges.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "http/client.h"
#include "io/event.h"
#include "io/loop.h"
#include "io/run.h"
#include "io/task.h"
#include "io/workers.h"
#include "modules/config_map.h"
#include "modules/fetcher.h"
#include "modules/internal/gzip.h"
#include "modules/load_slots.h"
#include "modules/module_policy.h"
#include "modules/module_store.h"
#include "modules/requester.h"
#include "modules/signature_gate.h"
#include "modules/verifier.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::modules {
namespace {

using testing::HasSubstr;

// ConfigMaps whose answers wait until the test lets them.
class GatedConfigMaps final : public ConfigMapReader {
 public:
  explicit GatedConfigMaps(io::Loop& loop) : changed_(loop) {}

  [[nodiscard]] io::Task<Result<ConfigMapContent>> read(ConfigMapAccess access, std::string name,
                                                        std::stop_token stop) override {
    ++reads[access.namespace_name()];
    while (silent.contains(access.namespace_name()))
      HANGAR_CO_TRY(co_await changed_.wait(stop));
    if (error) co_return fail(*error, "the source says so");
    const auto found = scripts.find(name);
    if (found == scripts.end()) co_return fail(ErrorKind::NotFound, "no such configmap");
    co_return ConfigMapContent{.data = {{"m.js", found->second}}, .revision = found->second};
  }

  void let(const std::string& namespace_name) {
    silent.erase(namespace_name);
    changed_.notify_all();
  }

  std::map<std::string, std::string> scripts;
  std::set<std::string> silent;  // Namespaces.
  std::optional<ErrorKind> error;
  std::map<std::string, int> reads;

 private:
  io::Event changed_;
};

// Makes texts from bytes.
class Texts final : public Maker {
 public:
  [[nodiscard]] Product find(const std::string& sha256) override {
    const auto found = made.find(sha256);
    return found == made.end() ? nullptr : found->second.lock();
  }
  [[nodiscard]] io::Task<Result<Product>> make(std::string sha256,
                                               std::shared_ptr<const std::string> bytes,
                                               budget::Beneficiaries beneficiaries,
                                               std::stop_token /*stop*/) override {
    ++make_count;
    made_for.emplace(beneficiaries);
    while (!may_make)
      HANGAR_CO_TRY(co_await gate->wait({}));
    if (*bytes == "bad") co_return fail(ErrorKind::InvalidInput, "a syntax error");
    made[sha256] = bytes;
    co_return Product(bytes);
  }
  [[nodiscard]] std::optional<std::string> missing_plugin(const std::string& bytes) const override {
    return bytes.starts_with("linked") ? std::optional<std::string>("plugin") : std::nullopt;
  }
  [[nodiscard]] Result<std::string> join(const std::string& bytes,
                                         const std::string& plugin) const override {
    return bytes + plugin;
  }
  [[nodiscard]] io::Task<Result<std::shared_ptr<const void>>> charge(
      Product /*product*/, budget::Consumer consumer) override {
    const std::string& tenant = consumer.tenant.namespace_name();
    if (refused.contains(tenant)) co_return fail(ErrorKind::LimitExceeded, "too little disk");
    ++charges[tenant];
    auto held = std::make_shared<const std::string>(tenant);
    holds[tenant] = held;
    co_return held;
  }
  [[nodiscard]] bool is_asked_by_digest() const override { return true; }
  [[nodiscard]] io::Task<Result<std::string>> recall(Requester requester, std::string /*sha256*/,
                                                     std::stop_token stop) override {
    if (!copy) co_return fail(ErrorKind::NotFound, "no copy");
    ++recalls[requester.tenant()];
    while (recall_gate != nullptr)
      HANGAR_CO_TRY(co_await recall_gate->wait(stop));
    co_return *copy;
  }

  int make_count = 0;
  std::optional<budget::Beneficiaries> made_for;  // The last one.
  bool may_make = true;
  io::Event* gate = nullptr;  // Notified when may_make becomes true.
  std::optional<std::string> copy;
  std::map<std::string, int> recalls;  // By namespace.
  io::Event* recall_gate = nullptr;    // Null: a copy is read at once.
  std::map<std::string, std::weak_ptr<const std::string>> made;
  std::set<std::string> refused;  // Namespaces that may have nothing.
  std::map<std::string, int> charges;
  std::map<std::string, std::weak_ptr<const std::string>> holds;  // The last one of each.
};

// Allows the modules in `trusted` to run.
class TrustedModules final : public Verifier {
 public:
  [[nodiscard]] std::uint64_t generation() const override { return keys; }
  [[nodiscard]] std::optional<Result<>> verdict(const std::string& sha256) const override {
    const auto found = verdicts.find(sha256);
    return found == verdicts.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] io::Task<Result<>> verify(std::string sha256,
                                          std::shared_ptr<const std::string> bytes,
                                          budget::Consumer /*consumer*/,
                                          std::stop_token /*stop*/) override {
    ++look_count;
    Result<> said;
    if (!trusted.contains(*bytes)) said = fail(ErrorKind::InvalidInput, "module is unsigned");
    verdicts.insert_or_assign(sha256, said);
    co_return said;
  }

  void trust(std::set<std::string> modules) {
    trusted = std::move(modules);
    verdicts.clear();
    ++keys;
  }

  std::uint64_t keys = 0;
  std::set<std::string> trusted;
  std::map<std::string, Result<>> verdicts;
  int look_count = 0;
};

class SupplyTest : public testing::Test {
 protected:
  SupplyTest() {
    std::string name = (std::filesystem::temp_directory_path() / "supply.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    store_ = ModuleStore::open(root_ / "modules").value();
    restart();
  }
  ~SupplyTest() override {
    stop();
    std::filesystem::remove_all(root_);
  }

  void stop() {
    if (!supply_) return;
    bool is_stopped = false;
    loop_.spawn([](Supply& supply, bool& done) -> io::Task<void> {
      co_await supply.stop();
      done = true;
    }(*supply_, is_stopped));
    loop_.run_until([&] { return is_stopped; });
    supply_.reset();
  }

  // Forgets everything in memory and keeps what is on disk.
  void restart(Duration patience = std::chrono::hours(1)) {
    stop();
    texts_.made.clear();
    fetcher_.emplace(Fetcher::Parts{.loop = loop_,
                                    .workers = workers_,
                                    .client = client_,
                                    .store = *store_,
                                    .config_maps = &config_maps_,
                                    .memory = &memory_queue_,
                                    .proof_kept = proof_kept_});
    gate_.reset();
    if (!rules_.empty()) {
      gate_.emplace(SignatureGate::Parts{.workers = workers_,
                                         .fetcher = *fetcher_,
                                         .store = *store_,
                                         .memory = &memory_queue_,
                                         .directory = root_ / "signatures"},
                    ModulePolicy(rules_, {}));
    }
    supply_.emplace(Sources{.loop = loop_,
                            .workers = workers_,
                            .fetcher = *fetcher_,
                            .store = *store_,
                            .memory = &memory_queue_,
                            .loads = &loads_,
                            .verifier = verifier_,
                            .gate = gate_ ? &*gate_ : nullptr,
                            .patience = patience},
                    texts_);
  }

  static Wish wish_of(const std::string& namespace_name, const std::string& name) {
    return {.requester = Requester::in_namespace(namespace_name),
            .module = {.reference = fmt::format("configmap://{}/{}", namespace_name, name)},
            .content = Content::ModuleOrScript};
  }

  Supply::Answer ask(const Wish& wish, Instant since = Instant::min(),
                     const std::string& listener = "me") {
    return supply_->ask(wish, since,
                        {.name = listener, .changed = [this, listener] { ++told_[listener]; }});
  }
  // Asks, and asks again each time the listener is called.
  Supply::Answer wait(const Wish& wish, Instant since = Instant::min(),
                      const std::string& listener = "me") {
    while (true) {
      Supply::Answer answer = ask(wish, since, listener);
      if (answer.waits_for.empty() || answer.supplied) return answer;
      const int told = told_[listener];
      loop_.run_until([&] { return told_[listener] > told; });
    }
  }
  static std::string text_of(const Supply::Answer& answer) {
    if (answer.error) return answer.error->message();
    return answer.supplied ? *std::static_pointer_cast<const std::string>(answer.supplied->product)
                           : "nothing";
  }

  io::Loop loop_;
  io::Workers workers_{loop_, 1};
  http::Client client_{loop_};
  GatedConfigMaps config_maps_{loop_};
  static constexpr std::uint64_t kMemory = 1'000'000;
  budget::Accounts memory_{{.host_bytes_max = kMemory, .tenant_bytes_max = kMemory / 2}};
  budget::ReservationQueue memory_queue_{loop_, memory_};
  LoadSlots loads_{loop_, {.free_bytes_max = 0, .small_bytes_max = 0}};  // So there is one slot.
  std::filesystem::path root_;
  std::unique_ptr<ModuleStore> store_;
  Duration proof_kept_ = std::chrono::hours(1);
  std::optional<Fetcher> fetcher_;
  Texts texts_;
  TrustedModules signers_;
  Verifier* verifier_ = nullptr;
  std::vector<PolicyRule> rules_;  // From the next restart on; empty: no policy.
  std::optional<SignatureGate> gate_;
  std::map<std::string, int> told_;
  std::optional<Supply> supply_;
};

TEST_F(SupplyTest, AnswersAtOnceAndTellsWhenThereIsMore) {
  config_maps_.scripts["m"] = "f()";
  config_maps_.silent = {"team"};
  const Supply::Answer first = ask(wish_of("team", "m"));
  EXPECT_FALSE(first.supplied);
  EXPECT_FALSE(first.is_final());
  EXPECT_THAT(first.waits_for, HasSubstr("fetch"));

  config_maps_.let("team");
  const Supply::Answer second = wait(wish_of("team", "m"));

  EXPECT_EQ(text_of(second), "f()");
  EXPECT_TRUE(second.is_final());
  EXPECT_EQ(second.supplied->sha256, sha256_hex("f()"));
  EXPECT_EQ(second.supplied->resolved, "configmap://team/m");
}

TEST_F(SupplyTest, SilentSourcesOfOneNamespaceHoldUpNoOther) {
  constexpr int kMany = 50;
  config_maps_.silent = {"slow"};
  config_maps_.scripts["m"] = "f()";
  for (int number = 0; number < kMany; ++number) {
    EXPECT_FALSE(ask(wish_of("slow", fmt::format("s{}", number)), Instant::min(),
                     fmt::format("slow {}", number))
                     .is_final());
  }

  EXPECT_EQ(text_of(wait(wish_of("team", "m"))), "f()");
  EXPECT_EQ(text_of(wait(wish_of("another", "m"), Instant::min(), "other")), "f()");

  const Supply::Answer last = ask(wish_of("slow", "s49"), Instant::min(), "slow 49");
  EXPECT_THAT(last.waits_for, HasSubstr("before it")) << "its own namespace's line";
}

TEST_F(SupplyTest, MakesOnceWhatManyWant) {
  config_maps_.scripts["m"] = "f()";
  const Supply::Answer first = wait(wish_of("a", "m"));
  const Supply::Answer second = wait(wish_of("b", "m"));

  EXPECT_EQ(first.supplied->product, second.supplied->product);
  EXPECT_EQ(texts_.make_count, 1);
}

TEST_F(SupplyTest, WhatManyHaveIsChargedToEachForAsLongAsItHasIt) {
  config_maps_.scripts["m"] = "f()";
  Supply::Answer first = wait(wish_of("a", "m"));
  const Supply::Answer second = wait(wish_of("b", "m"));
  ASSERT_TRUE(first.supplied && second.supplied);
  EXPECT_EQ(texts_.charges, (std::map<std::string, int>{{"a", 1}, {"b", 1}}));
  const std::weak_ptr<const std::string> hold = texts_.holds["a"];
  const std::weak_ptr<const std::string> other_hold = texts_.holds["b"];

  Product product = first.supplied->product;
  first = {};
  restart();

  EXPECT_FALSE(hold.expired()) << "it is still used";
  product.reset();
  EXPECT_TRUE(hold.expired());
  EXPECT_FALSE(other_hold.expired());
  EXPECT_EQ(text_of(second), "f()") << "which is no matter of the other namespace";
}

TEST_F(SupplyTest, AllConsumersOfANamespaceShareOneCharge) {
  config_maps_.scripts["m"] = "f()";
  config_maps_.scripts["same"] = "f()";
  const Supply::Answer first = wait(wish_of("a", "m"));
  const Supply::Answer second = wait(wish_of("a", "same"), Instant::min(), "other");
  ASSERT_TRUE(first.supplied && second.supplied);

  EXPECT_EQ(texts_.charges["a"], 2) << "it was used twice";
  EXPECT_FALSE(first.supplied->product.owner_before(second.supplied->product) ||
               second.supplied->product.owner_before(first.supplied->product));
}

TEST_F(SupplyTest, WhoAsksForWhatIsPinnedSharesTheChargeToo) {
  config_maps_.scripts["m"] = "f()";
  Supply::Answer first = wait(wish_of("a", "m"));
  ASSERT_TRUE(first.supplied);
  const std::weak_ptr<const std::string> hold = texts_.holds["a"];
  Wish pinned = wish_of("a", "m");
  pinned.pinned_sha256 = first.supplied->sha256;
  Supply::Answer second = ask(pinned, Instant::min(), "other");
  ASSERT_TRUE(second.supplied) << "it is in memory";
  Product product = second.supplied->product;

  first = second = {};
  restart();

  EXPECT_FALSE(hold.expired());
  product.reset();
  EXPECT_TRUE(hold.expired());
}

TEST_F(SupplyTest, WhatANamespaceMayNotHaveOnDiskIsAnErrorOfThatNamespace) {
  config_maps_.scripts["m"] = "f()";
  texts_.refused = {"poor"};

  const Supply::Answer refused = wait(wish_of("poor", "m"));
  const Supply::Answer other = wait(wish_of("rich", "m"), Instant::min(), "other");

  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->kind(), ErrorKind::LimitExceeded);
  EXPECT_FALSE(refused.supplied);
  EXPECT_THAT(text_of(refused), HasSubstr("module configmap://poor/m: too little disk"));
  EXPECT_EQ(text_of(other), "f()");
}

TEST_F(SupplyTest, AModuleThatTheStoreRefusesSaysWhichPolicyDecided) {
  budget::CacheCharges charges;
  charges.limit_tenants(
      {.namespaces = {{"poor", {.bytes_max = 4095, .set_by = "TenantPolicy a"}}}});
  store_->charge_to(charges);
  config_maps_.scripts["m"] = "f()";

  const Supply::Answer refused = wait(wish_of("poor", "m"));

  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->reason(), budget::kRefusedByPolicy);
  EXPECT_THAT(text_of(refused), HasSubstr("module configmap://poor/m: disk for modules and"));
  EXPECT_THAT(text_of(refused), HasSubstr("3 KiB of its namespace (TenantPolicy a) are free"));
  EXPECT_FALSE(store_->has(sha256_hex("f()")));
  // A copy that another namespace has stored does not get around the bound.
  EXPECT_EQ(text_of(wait(wish_of("rich", "m"), Instant::min(), "other")), "f()");
  EXPECT_TRUE(wait(wish_of("poor", "m"), io::Loop::now()).error);
  charges.limit_tenants({});
  EXPECT_EQ(text_of(wait(wish_of("poor", "m"), io::Loop::now())), "f()");
  stop();
}

TEST_F(SupplyTest, WhatManyWantIsInMemoryOnceWhileItIsMade) {
  constexpr int kMany = 20;
  const std::string script = "f();" + std::string(100'000, ' ');
  io::Event gate(loop_);
  texts_.gate = &gate;
  texts_.may_make = false;
  config_maps_.scripts["m"] = script;
  for (int number = 0; number < kMany; ++number)
    (void)ask(wish_of(fmt::format("team-{}", number), "m"), Instant::min(),
              fmt::format("me {}", number));
  loop_.run_until([&] { return config_maps_.reads.size() == kMany && texts_.make_count == 1; });
  loop_.run_until([&] { return memory_.held_bytes() == 2 * script.size(); });
  // Each namespace waits for it in its own name, too.
  loop_.run_until([&] { return texts_.made_for->all().size() == kMany; });

  texts_.may_make = true;
  gate.notify_all();

  for (int number = 0; number < kMany; ++number) {
    EXPECT_EQ(text_of(wait(wish_of(fmt::format("team-{}", number), "m"), Instant::min(),
                           fmt::format("me {}", number))),
              script);
  }
  EXPECT_EQ(texts_.make_count, 1);
}

TEST_F(SupplyTest, OneLargeModuleAtATimeIsInMemory) {
  io::Event gate(loop_);
  texts_.gate = &gate;
  texts_.may_make = false;
  config_maps_.scripts["m"] = "f();" + std::string(100'000, ' ');
  config_maps_.scripts["n"] = "g();" + std::string(100'000, ' ');
  (void)ask(wish_of("team", "m"), Instant::min(), "one");
  loop_.run_until([&] { return texts_.make_count == 1; });
  (void)ask(wish_of("other", "n"), Instant::min(), "two");
  (void)ask(wish_of("third", "n"), Instant::min(), "three");
  const auto waits = [&](const std::string& namespace_name, const std::string& listener) {
    return ask(wish_of(namespace_name, "n"), Instant::min(), listener).waits_for;
  };
  loop_.run_until([&] { return waits("other", "two") == "waiting to be loaded"; });
  // Fetches hold memory as well.
  const std::uint64_t one_module = 2 * config_maps_.scripts["m"].size();
  loop_.run_until([&] { return memory_.held_bytes() == one_module || texts_.make_count > 1; });
  EXPECT_EQ(texts_.make_count, 1);

  // Whoever leaves does not wait for the slot.
  supply_->leave("two");
  loop_.run_until([&] { return waits("third", "three") == "waiting to be loaded"; });
  EXPECT_EQ(texts_.make_count, 1);
  texts_.may_make = true;
  gate.notify_all();

  EXPECT_EQ(text_of(wait(wish_of("team", "m"), Instant::min(), "one")), config_maps_.scripts["m"]);
  EXPECT_EQ(text_of(wait(wish_of("third", "n"), Instant::min(), "three")),
            config_maps_.scripts["n"]);
}

TEST_F(SupplyTest, AModuleThatWaitsForMemoryHoldsUpNoOther) {
  config_maps_.scripts["large"] = "f();" + std::string(150'000, ' ');
  config_maps_.scripts["m"] = "g();";
  EXPECT_EQ(text_of(wait(wish_of("team", "large"))), config_maps_.scripts["large"]);
  EXPECT_EQ(text_of(wait(wish_of("team", "m"))), "g();");
  restart();
  auto guests = memory_.reserve({.tenant = budget::Tenant::host(), .name = "guests"},
                                kMemory - 2 * config_maps_.scripts["large"].size() + 1);
  (void)ask(wish_of("team", "large"), Instant::min(), "large");
  loop_.run_until([&] { return memory_queue_.waiting_count() == 1; });

  EXPECT_EQ(text_of(wait(wish_of("team", "m"))), "g();");

  ASSERT_TRUE(guests->resize(0).has_value());
  EXPECT_EQ(text_of(wait(wish_of("team", "large"), Instant::min(), "large")),
            config_maps_.scripts["large"]);
}

TEST_F(SupplyTest, WaitsForMemoryAndSaysSo) {
  config_maps_.scripts["m"] = "f();" + std::string(100'000, ' ');
  auto guests = memory_.reserve({.tenant = budget::Tenant::of_namespace("team"), .name = "guests"},
                                kMemory / 2);
  Supply::Answer answer = ask(wish_of("team", "m"));
  loop_.run_until([&] {
    answer = ask(wish_of("team", "m"));
    return answer.waits_for.starts_with("waiting for memory");
  });
  EXPECT_THAT(answer.waits_for, HasSubstr("of its namespace"));

  ASSERT_TRUE(guests->resize(0).has_value());

  EXPECT_EQ(text_of(wait(wish_of("team", "m"))), config_maps_.scripts["m"]);
}

TEST_F(SupplyTest, RefusesWhatIsLargerThanTheMemoryOfItsNamespace) {
  config_maps_.scripts["m"] = "f();" + std::string(kMemory / 2, ' ');
  EXPECT_THAT(text_of(wait(wish_of("team", "m"))), HasSubstr("of the 488 KiB of its namespace"));
  EXPECT_EQ(memory_.held_bytes(), 0U);
}

// The trailer claims less than the content has: the fetch then reserves the maximum, or fails.
TEST_F(SupplyTest, RefusesAGzipThatInflatesToMoreThanItSays) {
  std::string packed = gzip("f();" + std::string(kMemory, ' '));
  packed.replace(packed.size() - 4, 4, std::string("\x10\0\0\0", 4));
  config_maps_.scripts["m"] = packed;
  EXPECT_THAT(text_of(wait(wish_of("team", "m"))), HasSubstr("256 MiB are needed"));
}

TEST_F(SupplyTest, FetchesAgainWhatTheStoreHasLost) {
  config_maps_.scripts["m"] = "f()";
  const std::string sha256 = wait(wish_of("team", "m")).supplied->sha256;
  restart();
  std::ofstream(root_ / "modules" / (sha256 + ".wasm.gz")) << "damaged";

  EXPECT_EQ(text_of(wait(wish_of("team", "m"))), "f()");
}

TEST_F(SupplyTest, LooksAgainOnlyForWhoWantsItNewer) {
  config_maps_.scripts["m"] = "f()";
  const Wish wish = wish_of("team", "m");
  EXPECT_EQ(text_of(wait(wish)), "f()");
  config_maps_.scripts["m"] = "g()";

  EXPECT_EQ(text_of(ask(wish)), "f()");
  EXPECT_EQ(config_maps_.reads["team"], 1);
  EXPECT_EQ(text_of(wait(wish, io::Loop::now())), "g()");
  EXPECT_EQ(config_maps_.reads["team"], 2);
}

TEST_F(SupplyTest, MakesNothingOfWhatIsOnlyLookedAt) {
  config_maps_.scripts["m"] = "f()";
  Wish wish = wish_of("team", "m");
  wish.is_look = true;
  EXPECT_EQ(wait(wish).supplied->sha256, sha256_hex("f()"));
  config_maps_.scripts["m"] = "bad";
  const Supply::Answer changed = wait(wish, io::Loop::now());

  EXPECT_EQ(changed.supplied->sha256, sha256_hex("bad"));
  EXPECT_EQ(changed.supplied->product, nullptr);
  EXPECT_EQ(texts_.make_count, 0);
}

TEST_F(SupplyTest, LeavesASourceAloneThatHasFailed) {
  const Wish wish = wish_of("team", "missing");
  const Supply::Answer failed = wait(wish);
  EXPECT_THAT(text_of(failed), HasSubstr("no such configmap"));
  EXPECT_GT(failed.retry_in, Duration(0));

  EXPECT_TRUE(ask(wish).error);
  EXPECT_EQ(config_maps_.reads["team"], 1);
  const Supply::Answer again = wait(wish, io::Loop::now());
  EXPECT_GT(again.retry_in, failed.retry_in) << "and longer each time";
  config_maps_.scripts["missing"] = "f()";
  EXPECT_EQ(text_of(wait(wish, io::Loop::now())), "f()");
}

TEST_F(SupplyTest, SaysWhatCannotBeMade) {
  config_maps_.scripts["m"] = "bad";
  EXPECT_EQ(text_of(wait(wish_of("team", "m"))), "module configmap://team/m: a syntax error");
}

TEST_F(SupplyTest, EndsWorkThatNobodyWaitsForAnyMore) {
  config_maps_.silent = {"team"};
  const Wish wish = wish_of("team", "m");
  (void)ask(wish, Instant::min(), "first");
  (void)ask(wish, Instant::min(), "second");
  supply_->leave("first");
  EXPECT_FALSE(ask(wish, Instant::min(), "second").waits_for.empty());
  supply_->leave("second");
  supply_->leave("nobody");

  // Another consumer starts over, and does not see the end of the earlier attempt.
  config_maps_.scripts["m"] = "f()";
  config_maps_.let("team");
  EXPECT_EQ(text_of(wait(wish, Instant::min(), "third")), "f()");
  EXPECT_EQ(told_["first"], 0);
}

TEST_F(SupplyTest, ADefinitionThatChangesLeavesItsOldSource) {
  config_maps_.silent = {"team"};
  config_maps_.scripts["new"] = "f()";
  (void)ask(wish_of("team", "old"));
  (void)ask(wish_of("team", "new"));
  config_maps_.let("team");

  EXPECT_EQ(text_of(wait(wish_of("team", "new"))), "f()");
}

// A registry that does not answer must not stop modules that ran before the restart.
TEST_F(SupplyTest, ServesWhatASourceGaveBeforeWhenItLeavesUsWaiting) {
  config_maps_.scripts["m"] = "f()";
  EXPECT_EQ(text_of(wait(wish_of("team", "m"))), "f()");
  restart(/*patience=*/std::chrono::milliseconds(1));
  config_maps_.silent = {"team", "stranger"};

  const Supply::Answer answer = wait(wish_of("team", "m"));

  EXPECT_EQ(text_of(answer), "f()");
  EXPECT_FALSE(answer.is_final()) << "the source may still say something else";
  config_maps_.scripts["m"] = "g()";
  config_maps_.let("team");
  while (!ask(wish_of("team", "m")).is_final())
    loop_.run_until([&, told = told_["me"]] { return told_["me"] > told; });
  EXPECT_EQ(text_of(ask(wish_of("team", "m"))), "g()");
}

TEST_F(SupplyTest, FindsWhatIsPinnedWithoutItsSource) {
  config_maps_.scripts["m"] = "f()";
  const std::string pinned = wait(wish_of("team", "m")).supplied->sha256;
  config_maps_.scripts["m"] = "g()";
  EXPECT_EQ(text_of(wait(wish_of("team", "m"), io::Loop::now())), "g()");
  restart();
  Wish wish = wish_of("team", "m");
  wish.pinned_sha256 = pinned;
  config_maps_.silent = {"team"};

  EXPECT_EQ(text_of(wait(wish)), "f()");
}

// A module that team was given, pinned; the proof is no longer fresh, and the host has restarted.
class UnprovenTest : public SupplyTest {
 protected:
  UnprovenTest() {
    config_maps_.scripts["m"] = "f()";
    pinned_.pinned_sha256 = wait(wish_of("team", "m")).supplied->sha256;
    proof_kept_ = Duration(0);
    restart();
    config_maps_.reads.clear();
  }

  Wish pinned_ = wish_of("team", "m");
};

TEST_F(UnprovenTest, WhatIsPinnedIsAskedForAtItsSourceAgain) {
  EXPECT_EQ(text_of(wait(pinned_)), "f()");
  EXPECT_EQ(config_maps_.reads["team"], 1);
  EXPECT_EQ(text_of(wait(pinned_, io::Loop::now())), "f()");
  EXPECT_EQ(config_maps_.reads["team"], 1) << "not at every step of a workflow";
}

TEST_F(UnprovenTest, WhatTheSourceRefusesIsNotGiven) {
  config_maps_.error = ErrorKind::Denied;
  EXPECT_THAT(text_of(wait(pinned_, io::Loop::now())), HasSubstr("the source says so"));
  // The refusal counts, although the source gives no answer any more.
  config_maps_.error = ErrorKind::Unavailable;
  EXPECT_THAT(text_of(wait(pinned_, io::Loop::now())), HasSubstr("the source says so"));
  restart(/*patience=*/Duration(0));
  EXPECT_THAT(text_of(wait(pinned_)), HasSubstr("the source says so"));

  config_maps_.error.reset();
  EXPECT_EQ(text_of(wait(pinned_, io::Loop::now())), "f()");
}

TEST_F(UnprovenTest, WhatTheSourceRefusesGoesOnWhereItRunsAlready) {
  EXPECT_EQ(text_of(wait(pinned_)), "f()");
  config_maps_.error = ErrorKind::Denied;
  EXPECT_THAT(text_of(wait(wish_of("team", "m"), io::Loop::now())), HasSubstr("says so"))
      << "nothing begins with it";

  EXPECT_EQ(text_of(wait(pinned_, io::Loop::now())), "f()");
  restart();
  EXPECT_THAT(text_of(wait(pinned_)), HasSubstr("the source says so"));
}

TEST_F(UnprovenTest, WhatIsPinnedGoesOnWhileItsSourceIsAway) {
  config_maps_.error = ErrorKind::Unavailable;
  EXPECT_EQ(text_of(wait(pinned_)), "f()");
  EXPECT_EQ(config_maps_.reads["team"], 1);

  // Not for others.
  Wish stranger = wish_of("stranger", "m");
  stranger.pinned_sha256 = pinned_.pinned_sha256;
  EXPECT_THAT(text_of(wait(stranger)), HasSubstr("the source says so"));
}

TEST_F(UnprovenTest, WhatIsPinnedGoesOnWhileItsConfigMapIsGone) {
  config_maps_.scripts.clear();
  EXPECT_EQ(text_of(wait(pinned_)), "f()");
}

TEST_F(UnprovenTest, WhatRunsGoesOnWhenItsDefinitionNamesAnotherSource) {
  config_maps_.scripts["other"] = "g()";
  Wish other = wish_of("team", "other");
  other.pinned_sha256 = pinned_.pinned_sha256;
  EXPECT_THAT(text_of(wait(other)), HasSubstr("cannot verify module")) << "of the other source";
  EXPECT_EQ(text_of(wait(pinned_)), "f()");
  EXPECT_EQ(text_of(wait(other, io::Loop::now())), "f()") << "it runs by now";
}

TEST_F(UnprovenTest, WhatIsPinnedGoesOnWhileItsSourceServesSomethingElse) {
  config_maps_.scripts["m"] = "g()";
  EXPECT_EQ(text_of(wait(pinned_)), "f()");
  config_maps_.scripts["m"] = "bad";
  EXPECT_EQ(text_of(wait(pinned_, io::Loop::now())), "f()");
}

TEST_F(UnprovenTest, WhatIsPinnedGoesOnWhileItsSourceIsSilent) {
  restart(/*patience=*/std::chrono::milliseconds(1));
  config_maps_.silent = {"team", "stranger"};

  const Supply::Answer answer = wait(pinned_);

  EXPECT_EQ(text_of(answer), "f()");
  EXPECT_FALSE(answer.is_final()) << "the source may still refuse it";
  EXPECT_EQ(*std::static_pointer_cast<const std::string>(
                io::run_to_end(loop_, supply_->get(pinned_, {}))->product),
            "f()");
  config_maps_.error = ErrorKind::Denied;
  config_maps_.let("team");
  loop_.run_until([&] { return ask(pinned_).error.has_value(); });
  EXPECT_THAT(text_of(ask(pinned_)), HasSubstr("the source says so"));
}

TEST_F(UnprovenTest, AnOldProofCountsOnlyOnceItsSourceWasAsked) {
  restart(/*patience=*/std::chrono::milliseconds(1));
  EXPECT_EQ(text_of(wait(wish_of("other", "m"))), "f()") << "it is in memory";
  config_maps_.silent = {"team"};
  for (std::size_t number = 0; number < kFetchesPerTenantMax; ++number) {
    (void)ask(wish_of("team", fmt::format("busy{}", number)), Instant::min(),
              fmt::format("busy {}", number));
  }
  (void)ask(pinned_);
  bool is_overdue = false;
  const io::Loop::Timer later =
      loop_.after(std::chrono::milliseconds(20), [&is_overdue] { is_overdue = true; });
  loop_.run_until([&] { return is_overdue; });

  const Supply::Answer in_line = ask(pinned_);
  EXPECT_EQ(text_of(in_line), "nothing") << "its own namespace keeps the source from being asked";
  EXPECT_THAT(in_line.waits_for, HasSubstr("before it in line"));
  EXPECT_EQ(config_maps_.reads["team"], static_cast<int>(kFetchesPerTenantMax));

  supply_->leave("busy 0");
  EXPECT_EQ(text_of(wait(pinned_)), "f()") << "the source was asked, and is silent";
  EXPECT_EQ(config_maps_.reads["team"], static_cast<int>(kFetchesPerTenantMax) + 1);
}

TEST_F(UnprovenTest, ACopyOfItsOwnIsAProof) {
  config_maps_.error = ErrorKind::Denied;
  texts_.copy = gzip("f()");
  EXPECT_EQ(text_of(wait(pinned_)), "f()");
  EXPECT_EQ(config_maps_.reads["team"], 0);
}

// After a downgrade, a copy may be packed in a way that only the newer version reads.
TEST_F(UnprovenTest, ACopyThatItCannotUnpackIsNone) {
  for (const std::string copy : {"", "\x28\xb5\x2f\xfd of a later version"}) {
    texts_.copy = copy;
    restart();
    EXPECT_EQ(text_of(wait(pinned_)), "f()") << "its source has it";
  }
  EXPECT_EQ(config_maps_.reads["team"], 2);
}

TEST_F(SupplyTest, CopiesOfANamespaceAreReadAFewAtATime) {
  constexpr int kMany = 50;
  io::Event gate(loop_);
  texts_.copy = gzip("f()");
  texts_.recall_gate = &gate;
  const auto wish_for = [](const std::string& namespace_name, int number) {
    Wish wish = wish_of(namespace_name, fmt::format("m{}", number));
    wish.pinned_sha256 = sha256_hex("f()");
    return wish;
  };
  for (int number = 0; number < kMany; ++number)
    (void)ask(wish_for("team", number), Instant::min(), fmt::format("team {}", number));
  (void)ask(wish_for("another", 0), Instant::min(), "another");
  loop_.run_until([&] { return texts_.recalls["another"] == 1; });

  EXPECT_LE(texts_.recalls["team"], 8);

  texts_.recall_gate = nullptr;
  gate.notify_all();
  for (int number = 0; number < kMany; ++number) {
    EXPECT_EQ(
        text_of(wait(wish_for("team", number), Instant::min(), fmt::format("team {}", number))),
        "f()");
  }
}

TEST_F(SupplyTest, ACopyThatInflatesToMoreThanItSaysIsNone) {
  const std::string module = "f()" + std::string(100'000, ' ') + "g()";
  Wish wish = wish_of("team", "m");
  wish.pinned_sha256 = sha256_hex(module);
  // Its last member says how large it is.
  texts_.copy = gzip(module.substr(0, module.size() - 3)) + gzip("g()");

  EXPECT_FALSE(wait(wish).supplied);
  EXPECT_FALSE(store_->has(wish.pinned_sha256));
  texts_.copy = gzip(module);
  EXPECT_EQ(text_of(wait(wish, io::Loop::now())), module);
}

TEST_F(SupplyTest, GivesNobodyWhatIsPinnedForKnowingItsDigest) {
  config_maps_.scripts["m"] = "f()";
  const std::string pinned = wait(wish_of("team", "m")).supplied->sha256;
  Wish wish = wish_of("stranger", "other");
  wish.pinned_sha256 = pinned;
  config_maps_.scripts["other"] = "g()";

  EXPECT_THAT(text_of(wait(wish)), HasSubstr("cannot verify module"));
  // The copy counts only as the module that its bytes are.
  texts_.copy = gzip("h()");
  EXPECT_THAT(text_of(wait(wish, io::Loop::now())), HasSubstr("cannot verify module"));
  EXPECT_EQ(store_->read(pinned).value(), "f()") << "the owner's module stays";
  texts_.copy = gzip("f()");
  EXPECT_EQ(text_of(wait(wish, io::Loop::now())), "f()") << "it has the bytes, so it may";
}

TEST_F(SupplyTest, MakesNothingOfWhatIsNotVerified) {
  verifier_ = &signers_;
  restart();
  signers_.trust({"signed()"});
  config_maps_.scripts = {{"m", "signed()"}, {"other", "unsigned()"}};

  EXPECT_EQ(text_of(wait(wish_of("team", "m"))), "signed()");
  EXPECT_THAT(text_of(wait(wish_of("team", "other"))), HasSubstr("module is unsigned"));
  EXPECT_EQ(texts_.make_count, 1);
  EXPECT_EQ(text_of(wait(wish_of("another", "m"))), "signed()");
  EXPECT_EQ(signers_.look_count, 2) << "a verdict is not asked for twice";
}

TEST_F(SupplyTest, LooksAgainAtWhatItHasOnceTheKeysAreOthers) {
  verifier_ = &signers_;
  restart();
  signers_.trust({"f()"});
  config_maps_.scripts["m"] = "f()";
  const Supply::Answer first = wait(wish_of("team", "m"));
  ASSERT_TRUE(first.supplied);
  Wish pinned = wish_of("team", "m");
  pinned.pinned_sha256 = first.supplied->sha256;
  ASSERT_EQ(text_of(wait(pinned)), "f()");

  signers_.trust({});

  EXPECT_THAT(text_of(wait(wish_of("team", "m"))), HasSubstr("module is unsigned"));
  EXPECT_THAT(text_of(wait(pinned)), HasSubstr("module is unsigned"));
  EXPECT_FALSE(io::run_to_end(
      loop_, supply_->verify(first.supplied->sha256, budget::unnamed_consumer(), {})));

  signers_.trust({"f()"});

  EXPECT_EQ(text_of(wait(pinned)), "f()");
  EXPECT_TRUE(io::run_to_end(
      loop_, supply_->verify(first.supplied->sha256, budget::unnamed_consumer(), {})));
  EXPECT_EQ(texts_.make_count, 1) << "what was made is there still";
}

TEST_F(SupplyTest, SuppliesNothingByOldKeysWhileTheSourceLeavesUsWaiting) {
  verifier_ = &signers_;
  restart(Duration(0));
  signers_.trust({"f()"});
  config_maps_.scripts["m"] = "f()";
  ASSERT_EQ(text_of(wait(wish_of("team", "m"))), "f()");
  config_maps_.silent = {"team"};
  signers_.trust({});

  (void)ask(wish_of("team", "m"));
  loop_.run_until([this] { return signers_.look_count == 2; });
  for (int turn = 0; turn < 10; ++turn) {
    EXPECT_FALSE(ask(wish_of("team", "m")).supplied);
    (void)io::run_to_end(loop_, loop_.sleep(std::chrono::milliseconds(1), {}));
  }
  supply_->leave("me");
}

TEST_F(SupplyTest, ARuleDeniesModulesWhereverTheyAre) {
  config_maps_.scripts = {{"m", "f()"}, {"other", "g()"}};
  const Supply::Answer first = wait(wish_of("team", "m"));
  ASSERT_TRUE(first.supplied);
  Wish pinned = wish_of("team", "m");
  pinned.pinned_sha256 = first.supplied->sha256;
  texts_.copy = gzip("f()");
  rules_ = {{.prefix = "configmap://team/m", .requirement = Requirement::Deny}};
  restart();

  const Supply::Answer denied = wait(wish_of("team", "m"));
  EXPECT_EQ(denied.error->kind(), ErrorKind::Denied);
  EXPECT_THAT(text_of(denied), HasSubstr("the rule for configmap://team/m denies"));
  EXPECT_THAT(text_of(wait(pinned)), HasSubstr("denies"));
  EXPECT_EQ(text_of(wait(wish_of("team", "other"))), "g()");
  EXPECT_EQ(text_of(wait(wish_of("another", "m"))), "f()") << "which no rule is for";
}

TEST_F(SupplyTest, WhatARuleRequiresIsNotGivenFromTheStoreWithoutIt) {
  config_maps_.scripts = {{"m", "f()"}, {"other", "f()"}};
  const Supply::Answer first = wait(wish_of("team", "m"));
  ASSERT_TRUE(first.supplied);
  ASSERT_EQ(text_of(wait(wish_of("team", "other"))), "f()");
  Wish pinned = wish_of("team", "m");
  pinned.pinned_sha256 = first.supplied->sha256;
  const auto signers = std::make_shared<TrustedModules>();
  signers->trust({"signed()"});
  rules_ = {
      {.prefix = "configmap://team/m", .requirement = Requirement::Yoke, .verifier = signers}};
  restart();

  EXPECT_EQ(text_of(wait(wish_of("team", "other"))), "f()") << "the product of another rule";
  EXPECT_THAT(text_of(wait(pinned)), HasSubstr("module is unsigned"));
  EXPECT_THAT(text_of(wait(wish_of("team", "m"))), HasSubstr("requires a signature by yoke"));
  config_maps_.scripts["m"] = "signed()";
  EXPECT_EQ(text_of(wait(wish_of("team", "m"), io::Loop::now())), "signed()");
  EXPECT_EQ(signers->look_count, 2) << "one for each module";
}

TEST_F(SupplyTest, PluginsMeetTheRulesForTheirOwnUrls) {
  const std::string plugin("\0asm\1\0\0\0", 8);
  config_maps_.scripts = {{"m", "linked()"}, {"plugin", base64_encode(plugin)}};
  const auto signers = std::make_shared<TrustedModules>();
  signers->trust({plugin});
  rules_ = {
      {.prefix = "configmap://team/plugin", .requirement = Requirement::Yoke, .verifier = signers}};
  restart();
  Wish wish = wish_of("team", "m");
  wish.plugin = Source{.reference = "configmap://team/plugin"};

  const Supply::Answer joined = wait(wish);
  EXPECT_EQ(text_of(joined), "linked()" + plugin);
  ASSERT_TRUE(joined.supplied);
  Wish pinned = wish;
  pinned.pinned_sha256 = joined.supplied->sha256;
  EXPECT_TRUE(ask(pinned).is_final()) << "what was joined is known";

  restart();
  EXPECT_FALSE(ask(pinned).is_final()) << "what was joined is forgotten, and has no signature";
  EXPECT_EQ(text_of(wait(pinned)), "linked()" + plugin) << "its sources have been asked";
  config_maps_.error = ErrorKind::Unavailable;
  restart();
  EXPECT_FALSE(wait(pinned).supplied);
  config_maps_.error.reset();
  signers->trust({});
  restart();
  EXPECT_THAT(text_of(wait(pinned)), HasSubstr("module is unsigned"));
  EXPECT_THAT(text_of(wait(wish)), HasSubstr("module is unsigned"));
}

TEST_F(SupplyTest, OnlyModulesInRegistriesHaveCosignsSignatures) {
  config_maps_.scripts["m"] = "f()";
  rules_ = {{.prefix = "configmap://team", .requirement = Requirement::Cosign}};
  restart();

  EXPECT_THAT(text_of(wait(wish_of("team", "m"))), HasSubstr("only modules in registries"));
  EXPECT_EQ(config_maps_.reads["team"], 0) << "no source is asked for what cannot run";
}

TEST_F(SupplyTest, GetWaitsAndIsCancelled) {
  config_maps_.scripts["m"] = "f()";
  EXPECT_EQ(io::run_to_end(loop_, supply_->get(wish_of("team", "m"), {}))->sha256,
            sha256_hex("f()"));
  config_maps_.silent = {"other"};
  std::stop_source stop;
  loop_.post([&stop] { stop.request_stop(); });
  const auto cancelled =
      io::run_to_end(loop_, supply_->get(wish_of("other", "m"), stop.get_token()));
  EXPECT_EQ(cancelled.error().kind(), ErrorKind::Cancelled);
}

TEST_F(SupplyTest, GetInTimeLeavesASilentSourceForWhatItGaveBefore) {
  const Wish wish = wish_of("team", "m");
  config_maps_.scripts["m"] = "f()";
  EXPECT_EQ(text_of(wait(wish)), "f()");
  restart(/*patience=*/std::chrono::milliseconds(1));
  int told = 0;
  const auto get = [&](const std::string& name, std::stop_token stop = {}) {
    return io::run_to_end(
        loop_, supply_->get_in_time(wish_of(name, "m"), std::move(stop), [&told] { ++told; }));
  };
  config_maps_.silent = {"team", "other"};

  EXPECT_EQ(get("team")->sha256, sha256_hex("f()"));
  EXPECT_EQ(get("team")->sha256, sha256_hex("f()")) << "it is asked already";
  EXPECT_EQ(told, 0);
  config_maps_.scripts["m"] = "g()";
  config_maps_.let("team");
  loop_.run_until([&] { return told == 2; });
  EXPECT_EQ(get("team")->sha256, sha256_hex("g()"));

  config_maps_.silent.insert("team");
  EXPECT_EQ(get("team")->sha256, sha256_hex("g()"));
  config_maps_.let("team");
  while (!ask(wish).is_final())
    loop_.run_until([&, before = told_["me"]] { return told_["me"] > before; });
  bool is_over = false;
  loop_.post([&is_over] { is_over = true; });
  loop_.run_until([&is_over] { return is_over; });
  EXPECT_EQ(told, 2) << "it is the same module";

  std::stop_source stop;
  loop_.post([&stop] { stop.request_stop(); });
  EXPECT_EQ(get("other", stop.get_token()).error().kind(), ErrorKind::Cancelled)
      << "it was given nothing before";
}

TEST_F(SupplyTest, AskingSaysWhatIsWrongUntilAnotherAttemptHasEnded) {
  const Wish wish = wish_of("team", "m");
  Asking asking;
  const auto ask_for = [&](std::string_view definition) {
    return asking.ask(*supply_, wish, definition,
                      {.name = "me", .changed = [this] { ++told_["me"]; }});
  };
  loop_.run_until([&] { return !ask_for("1") && asking.error(); });
  config_maps_.silent = {"team"};
  config_maps_.scripts["m"] = "f()";
  asking.forget();

  EXPECT_FALSE(ask_for("1"));
  EXPECT_TRUE(asking.error());
  EXPECT_FALSE(ask_for("2"));
  EXPECT_FALSE(asking.error()) << "which was about another definition";
  config_maps_.let("team");
  loop_.run_until([&] { return ask_for("2").has_value(); });
  EXPECT_FALSE(asking.error());
}

TEST_F(SupplyTest, AskingIsQuietAboutALookForSomethingNewer) {
  config_maps_.scripts["m"] = "f()";
  const Wish wish = wish_of("team", "m");
  Asking asking;
  const auto ask_for = [&](std::string_view definition) {
    return asking.ask(*supply_, wish, definition,
                      {.name = "me", .changed = [this] { ++told_["me"]; }});
  };
  EXPECT_FALSE(ask_for("1"));
  EXPECT_NE(asking.waits_for(), "");
  loop_.run_until([&] { return ask_for("1").has_value(); });
  EXPECT_EQ(asking.waits_for(), "");
  EXPECT_FALSE(ask_for("1")) << "the answer stands";

  asking.forget();
  config_maps_.silent = {"team"};
  EXPECT_FALSE(ask_for("1"));
  EXPECT_EQ(asking.waits_for(), "") << "what it has goes on";
  EXPECT_FALSE(ask_for("2"));
  EXPECT_NE(asking.waits_for(), "") << "of another definition there is nothing yet";
}

}  // namespace
}  // namespace hangar::modules
