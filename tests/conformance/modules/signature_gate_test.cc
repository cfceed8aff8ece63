// Modules that need a signature by cosign, from servers that have signatures in each of the places
// where registries have them, and from servers that lie about them.

#include "modules/signature_gate.h"

#include "base/base64.h"
#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/reservation_queue.h"
#include "fetching.h"
#include "io/run.h"
#include "modules/cosign.h"
#include "modules/fetcher.h"
#include "modules/module_policy.h"
#include "modules/reference.h"
#include "modules/requester.h"
#include "modules/test_signers.h"
#include "raw_server.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::testing {
namespace {

constexpr std::string_view kSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json";
constexpr std::string_view kArtifact = "application/vnd.dev.cosign.artifact.sig.v1+json";

using modules::NamedSigner;

std::string sha(std::string_view bytes) {
  return "sha256:" + sha256_of(bytes);
}

std::string layer_of(std::string_view type, std::string_view bytes, std::string_view more = "") {
  return fmt::format(R"({{"mediaType": "{}", "digest": "{}", "size": {}{}}})", type, sha(bytes),
                     bytes.size(), more);
}

// The paths of a repository, after /v2/team/f/, and what is behind them. Any thread.
class Repository {
 public:
  void put(const std::string& path, const std::string& bytes) {
    const std::scoped_lock lock(mutex_);
    files_[path] = bytes;
  }
  void remove(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    files_.erase(path);
  }
  void put_blob(const std::string& bytes) { put("blobs/" + sha(bytes), bytes); }
  void put_manifest(const std::string& tag, const std::string& bytes) {
    put("manifests/" + tag, bytes);
    put("manifests/" + sha(bytes), bytes);
  }
  // Adds the manifest with a signature by that name of the manifest with that digest.
  std::string sign(const std::string& digest, const std::string& by) {
    const std::string payload = payload_of(digest, by);
    put_blob(payload);
    const std::string manifest = fmt::format(
        R"({{"schemaVersion": 2, "layers": [{}]}})",
        layer_of(kSimpleSigning, payload,
                 fmt::format(R"(, "annotations": {{"dev.cosignproject.cosign/signature": "{}"}})",
                             base64_encode(by + payload))));
    put("manifests/" + sha(manifest), manifest);
    return manifest;
  }
  static std::string payload_of(const std::string& digest, const std::string& by) {
    return fmt::format(
        R"({{"critical": {{"type": "cosign container image signature",
             "image": {{"docker-manifest-digest": "{}"}}}}, "by": "{}"}})",
        digest, by);
  }
  static std::string index_of(const std::vector<std::string>& manifests) {
    std::string entries;
    for (const std::string& manifest : manifests) {
      entries += (entries.empty() ? "" : ",") +
                 layer_of("application/vnd.oci.image.manifest.v1+json", manifest,
                          fmt::format(R"(, "artifactType": "{}")", kArtifact));
    }
    return fmt::format(R"({{"schemaVersion": 2, "manifests": [{}]}})", entries);
  }

  std::string answer_to(const std::string& path) const {
    constexpr std::string_view kBase = "/v2/team/f/";
    const std::scoped_lock lock(mutex_);
    const auto found =
        path.starts_with(kBase) ? files_.find(path.substr(kBase.size())) : files_.end();
    return found == files_.end() ? answer(404, "{}") : answer(200, found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> files_;
};

class SignatureGateTest : public ::testing::Test {
 protected:
  SignatureGateTest() {
    // Compressed, so that the layer's digest is not that of the module.
    repository_.put_blob(packed_);
    repository_.put_manifest("v1", manifest_);
    restart();
  }

  // Forgets everything in memory and keeps what is on disk.
  void restart(const std::string& signer = "team") {
    gate_.reset();
    host_.reset();
    host_.emplace(directory_.path());
    std::vector<modules::PolicyRule> rules;
    rules.push_back({.prefix = fmt::format("oci://{}/team", server_.address()),
                     .requirement = modules::Requirement::Cosign,
                     .signers = std::make_shared<NamedSigner>(signer)});
    gate_.emplace(
        modules::SignatureGate::Parts{.workers = host_->workers,
                                      .fetcher = *host_->fetcher,
                                      .store = *host_->store,
                                      .directory = proofs_},
        modules::ModulePolicy(std::move(rules), {.requirement = modules::Requirement::Deny}));
  }

  modules::Reference reference() const {
    return modules::Reference::parse(fmt::format("oci://{}/team/f:v1", server_.address())).value();
  }
  // Fetches the module and says why it may not run; empty: it may.
  std::string refusal() {
    const Result<modules::Fetched> fetched =
        host_->fetch(fmt::format("oci://{}/team/f:v1", server_.address()));
    EXPECT_TRUE(fetched) << fetched.error().message();
    return fetched ? refusal_of(*fetched) : "not fetched";
  }
  std::string refusal_of(const modules::Fetched& fetched) {
    const Result<> admitted =
        io::run_to_end(host_->loop, gate_->admit({.requester = modules::Requester::cluster_wide(),
                                                  .reference = reference(),
                                                  .manifest = fetched.manifest,
                                                  .sha256 = fetched.sha256},
                                                 {}));
    EXPECT_EQ(admitted.has_value(), gate_->is_admitted(reference(), fetched.sha256));
    return admitted ? "" : admitted.error().message();
  }
  bool is_recalled() {
    return io::run_to_end(host_->loop, gate_->recall(budget::unnamed_consumer(), reference(),
                                                     sha256_of(module_), {}))
        .has_value();
  }

  TemporaryDirectory directory_;
  const std::filesystem::path proofs_ = directory_.path() / "signatures";
  const std::string module_ = module_named("signed");
  const std::string packed_ = gzip_of(module_);
  const std::string manifest_ = fmt::format(R"({{"schemaVersion": 2, "layers": [{}]}})",
                                            layer_of("application/vnd.yoke.wasm.gzip", packed_));
  Repository repository_;
  RawServer server_{
      [this](const RawServer::Request& request) { return repository_.answer_to(request.path); }};
  std::optional<FetchingHost> host_;
  std::optional<modules::SignatureGate> gate_;
};

TEST_F(SignatureGateTest, FindsASignatureWhereRegistriesHaveThem) {
  const std::string digest = sha(manifest_);
  const std::string signature = repository_.sign(digest, "team");
  const std::map<std::string, std::string> places = {
      {"manifests/" + modules::signature_tag(digest), signature},
      {"referrers/" + digest, Repository::index_of({signature})},
      {"manifests/" + modules::referrers_tag(digest), Repository::index_of({signature})}};
  for (const auto& [path, bytes] : places) {
    std::filesystem::remove_all(proofs_);
    restart();
    EXPECT_NE(refusal(), "") << "without the signature at " << path;
    repository_.put(path, bytes);

    EXPECT_EQ(refusal(), "") << path;

    repository_.remove(path);
  }
}

TEST_F(SignatureGateTest, SaysWhatIsMissing) {
  const std::string none = refusal();
  EXPECT_TRUE(none.contains("no signature found for " + sha(manifest_))) << none;
  EXPECT_TRUE(none.contains("sign it by name")) << none;
  EXPECT_TRUE(none.contains(server_.address() + "/team requires a signature by cosign")) << none;

  repository_.put("manifests/" + modules::signature_tag(sha(manifest_)),
                  repository_.sign(sha(manifest_), "stranger"));
  const std::string strangers = refusal();
  EXPECT_TRUE(strangers.contains("by none of the rule's keys")) << strangers;

  repository_.put("manifests/" + modules::signature_tag(sha(manifest_)),
                  repository_.sign(sha("another manifest"), "team"));
  const std::string others = refusal();
  EXPECT_TRUE(others.contains("but for " + sha("another manifest"))) << others;
}

TEST_F(SignatureGateTest, FindsTheOneAmongMany) {
  const std::string digest = sha(manifest_);
  const std::vector<std::string> all = {repository_.sign(digest, "stranger"),
                                        repository_.sign(sha("other"), "team"),
                                        repository_.sign(digest, "team")};
  repository_.put("referrers/" + digest, Repository::index_of(all));

  EXPECT_EQ(refusal(), "");
}

TEST_F(SignatureGateTest, LooksAtABoundedNumberOfSignatures) {
  const std::string digest = sha(manifest_);
  std::vector<std::string> all;
  for (std::size_t at = 0; at < 2 * modules::kSignatureManifestsMax; ++at)
    all.push_back(repository_.sign(digest, fmt::format("stranger {}", at)));
  all.push_back(repository_.sign(digest, "team"));
  repository_.put("referrers/" + digest, Repository::index_of(all));

  EXPECT_NE(refusal(), "");
  std::size_t blob_count = 0;
  for (const RawServer::Request& request : server_.requests())
    blob_count += request.path.contains("/blobs/") ? 1 : 0;
  EXPECT_EQ(blob_count, modules::kSignatureManifestsMax + 1) << "and the module";
}

TEST_F(SignatureGateTest, ReservesTheMemoryInWhichItReadsManifests) {
  const std::string digest = sha(manifest_);
  budget::Accounts accounts({.host_bytes_max = 16 * limits::kMiB});
  budget::ReservationQueue memory(host_->loop, accounts);
  modules::Fetcher fetcher({.loop = host_->loop,
                            .workers = host_->workers,
                            .client = host_->client,
                            .store = *host_->store,
                            .memory = &memory});
  const auto find = [&] {
    return io::run_to_end(
        host_->loop,
        fetcher.find_proof(modules::Requester::cluster_wide(), reference(), /*insecure=*/false,
                           digest, std::make_shared<NamedSigner>("team"), {}));
  };
  repository_.put("manifests/" + modules::signature_tag(digest), repository_.sign(digest, "team"));
  const Result<modules::VerifiedProof> usual = find();
  EXPECT_TRUE(usual) << usual.error().message();

  std::string numbers = "1";
  for (int count = 0; count < 500'000; ++count)
    numbers += ",1";
  repository_.put("manifests/" + modules::signature_tag(digest),
                  fmt::format(R"({{"schemaVersion": 2, "layers": [{}]}})", numbers));
  const Result<modules::VerifiedProof> dense = find();

  ASSERT_FALSE(dense);
  EXPECT_EQ(dense.error().kind(), ErrorKind::LimitExceeded) << dense.error().message();
  EXPECT_EQ(accounts.held_bytes(), 0U);
}

TEST_F(SignatureGateTest, RefusesBlobsThatAreNotTheirDigests) {
  repository_.put("manifests/" + modules::signature_tag(sha(manifest_)),
                  repository_.sign(sha(manifest_), "team"));
  std::string payload = Repository::payload_of(sha(manifest_), "team");
  const std::string path = "blobs/" + sha(payload);
  payload[1] = ' ';
  repository_.put(path, payload);

  const std::string why = refusal();
  EXPECT_TRUE(why.contains("are not those of blob")) << why;
}

TEST_F(SignatureGateTest, RefusesAModuleThatIsNotTheSignedLayer) {
  repository_.put("manifests/" + modules::signature_tag(sha(manifest_)),
                  repository_.sign(sha(manifest_), "team"));
  const Result<modules::Fetched> fetched =
      host_->fetch(fmt::format("oci://{}/team/f:v1", server_.address()));
  ASSERT_TRUE(fetched);

  // As if somebody had changed what the store remembers of the manifest.
  modules::Fetched other = *fetched;
  other.sha256 = sha256_of("another module");
  const std::string why = refusal_of(other);
  EXPECT_TRUE(why.contains("is not the layer of the signed manifest")) << why;
  other = *fetched;
  other.manifest = "../../other/manifests/v1";
  EXPECT_NE(refusal_of(other), "");
}

TEST_F(SignatureGateTest, RemembersAfterARestartWithoutTheRegistry) {
  repository_.put("manifests/" + modules::signature_tag(sha(manifest_)),
                  repository_.sign(sha(manifest_), "team"));
  ASSERT_EQ(refusal(), "");
  server_.stop();

  restart();
  EXPECT_FALSE(gate_->is_admitted(reference(), sha256_of(module_))) << "only once it is verified";
  EXPECT_TRUE(is_recalled());

  restart("another team");
  EXPECT_FALSE(is_recalled()) << "by other keys";
}

TEST_F(SignatureGateTest, TrustsNoFileAboutASignature) {
  repository_.put("manifests/" + modules::signature_tag(sha(manifest_)),
                  repository_.sign(sha(manifest_), "team"));
  ASSERT_EQ(refusal(), "");
  const std::filesystem::path file = proofs_ / fmt::format("{}-team.json", sha256_of(module_));
  ASSERT_TRUE(std::filesystem::exists(file));
  const std::filesystem::path stolen = proofs_ / fmt::format("{}-team.json", sha256_of("evil"));
  std::filesystem::copy_file(file, stolen);

  restart();
  EXPECT_FALSE(io::run_to_end(
      host_->loop, gate_->recall(budget::unnamed_consumer(), reference(), sha256_of("evil"), {})))
      << "the proof of another module";
  std::ofstream(file) << "{}";
  EXPECT_FALSE(is_recalled());
}

TEST_F(SignatureGateTest, DeniesWhatNoRuleAllows) {
  const modules::Reference other =
      modules::Reference::parse(fmt::format("oci://{}/other/f:v1", server_.address())).value();
  const Result<> denied = gate_->check(other);

  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().kind(), ErrorKind::Denied);
  EXPECT_TRUE(denied.error().message().contains("the default rule denies"));
  EXPECT_TRUE(gate_->check(reference()));
}

}  // namespace
}  // namespace hangar::testing
