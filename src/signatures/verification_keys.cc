#include "signatures/verification_keys.h"

#include "base/base64.h"
#include "base/invalid.h"
#include "base/log.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "io/loop.h"
#include "io/task.h"
#include "json/value.h"
#include "kube/cache/cache.h"
#include "kube/cache/secret_watch.h"
#include "kube/object.h"
#include "schematics/key_files.h"
#include "schematics/keys.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::signatures {

namespace {

// How often the files are read. A change of a mounted Secret takes a minute or two to
// arrive anyway.
constexpr std::chrono::seconds kLook{10};

}  // namespace

Result<schematics::PublicKeys> keys_in_secret(const json::Value& secret) {
  schematics::PublicKeys keys;
  const json::Object* const data = json::object_at(secret, {"data"});
  if (data == nullptr) return keys;
  for (const auto& entry : *data) {
    const std::string_view name = entry.key();
    if (!name.ends_with(".pem") || !entry.value().is_string()) continue;
    const std::optional<std::string> pem = base64_decode(entry.value().get_string());
    if (!pem) return invalid(fmt::format("{} is not base64", name));
    Result<schematics::PublicKey> key = schematics::PublicKey::parse(*pem);
    if (!key) return std::unexpected(std::move(key).error().in(name));
    HANGAR_TRY(keys.add(*std::move(key)));
  }
  return keys;
}

VerificationKeys::VerificationKeys(Parts parts, Options options, Listener listener)
    : parts_(std::move(parts)), options_(std::move(options)), listener_(std::move(listener)) {}

VerificationKeys::~VerificationKeys() = default;

void VerificationKeys::start() {
  if (!options_.path.empty()) {
    ended_.emplace(parts_.loop);
    parts_.loop.spawn(keep_reading());
    return;
  }
  secret_.emplace(parts_.cache,
                  kube::ObjectKey{.namespace_ = options_.namespace_, .name = options_.secret},
                  kube::SecretWatch::Handlers{
                      .on_secret = [this](const kube::ObjectPtr& secret) { read_secret(secret); },
                      .on_failed =
                          [this](const Error& error) {
                            take(std::unexpected(Error(error).in("the Secret cannot be read")));
                          }});
}

io::Task<void> VerificationKeys::stop() {
  stop_.request_stop();
  secret_.reset();
  if (ended_) co_await ended_->wait();
}

Result<> VerificationKeys::check() const {
  if (has_keys_) return {};
  return fail(ErrorKind::Unavailable,
              fmt::format("the keys to verify modules with: {}",
                          problem_ ? problem_->message() : "have not been read yet"));
}

io::Task<void> VerificationKeys::keep_reading() {
  do {
    take(co_await parts_.workers.run(budget::Consumer::of_host("keys"), [path = options_.path] {
      return schematics::load_public_keys(path);
    }));
  } while (co_await parts_.loop.sleep(kLook, stop_.get_token()));
  ended_->set(true);
}

void VerificationKeys::read_secret(const kube::ObjectPtr& secret) {
  if (!secret) {
    parts_.log.warning("the Secret with the verification keys does not exist: no flight may run",
                       {{"namespace", options_.namespace_}, {"secret", options_.secret}});
  }
  take(secret ? keys_in_secret(secret->to_value()) : schematics::PublicKeys());
}

void VerificationKeys::take(Result<schematics::PublicKeys> keys) {
  if (stop_.stop_requested()) return;
  if (!keys) {
    if (!problem_ || problem_->message() != keys.error().message()) {
      parts_.log.warning("the keys to verify modules with cannot be read",
                         {{"error", keys.error().message()}});
    }
    problem_ = std::move(keys).error();
    return;
  }
  problem_.reset();
  has_keys_ = true;
  listener_(*std::move(keys));
}

}  // namespace hangar::signatures
