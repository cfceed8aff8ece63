#include "signatures/module_verifier.h"

#include "base/base64.h"
#include "base/result.h"
#include "budget/consumer.h"
#include "budget/fair_slots.h"
#include "io/task.h"
#include "schematics/keys.h"
#include "wasm/compiler_process.h"
#include "wasm/snapshot/private_file.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hangar::signatures {

namespace {

// Hashing the largest module takes a second on a busy machine; half a minute allows for swapping.
constexpr std::chrono::seconds kVerifyMax{30};
// A verification takes some milliseconds and 20 MiB, half a second for the largest module.
constexpr std::size_t kProcessesMax = 2;

std::unexpected<Error> refused(const Error& error) {
  return std::unexpected(Error(error).in("failed to verify module"));
}

}  // namespace

ModuleVerifier::ModuleVerifier(Parts parts)
    : parts_(std::move(parts)), slots_(parts_.loop, {.slots = kProcessesMax, .host_slots = 1}) {}

void ModuleVerifier::use(schematics::PublicKeys keys) {
  if (keys_ && keys_->id() == keys.id()) return;
  keys_ = std::move(keys);
  ++generation_;
  verdicts_.clear();
  if (listener_) listener_();
}

std::optional<Result<>> ModuleVerifier::verdict(const std::string& sha256) const {
  const auto found = verdicts_.find(sha256);
  if (found == verdicts_.end()) return std::nullopt;
  return found->second;
}

io::Task<Result<>> ModuleVerifier::verify(std::string sha256,
                                          std::shared_ptr<const std::string> bytes,
                                          budget::Consumer consumer, std::stop_token stop) {
  const budget::FairSlots::Slot slot =
      HANGAR_CO_TRY(co_await slots_.acquire(consumer, {.cost = bytes->size()}, stop));
  while (true) {
    // Another task may have verified the same module while this one waited for a slot.
    if (std::optional<Result<>> known = verdict(sha256)) co_return *std::move(known);
    const std::uint64_t generation = generation_;
    const Result<> verified = co_await look(bytes, consumer, stop);
    // The keys have changed meanwhile: verify again.
    if (generation != generation_) continue;
    if (!verified && verified.error().kind() != ErrorKind::InvalidInput) {
      co_return refused(verified.error());
    }
    keep(sha256, verified ? Result<>() : Result<>(refused(verified.error())));
  }
}

// Evicted modules are verified again. Anybody can make refusals, by the thousand; an approval takes
// a key, and its module may be running.
void ModuleVerifier::keep(const std::string& sha256, Result<> verdict) {
  if (verdicts_.size() >= parts_.verdicts_max) {
    std::erase_if(verdicts_, [](const auto& one) { return !one.second.has_value(); });
  }
  if (verdicts_.size() >= parts_.verdicts_max) verdicts_.clear();
  verdicts_.insert_or_assign(sha256, std::move(verdict));
}

io::Task<Result<>> ModuleVerifier::look(std::shared_ptr<const std::string> bytes,
                                        budget::Consumer consumer, std::stop_token stop) {
  if (!keys_) co_return fail(ErrorKind::Unavailable, "the keys have not been read yet");
  if (keys_->size() == 0) co_return fail(ErrorKind::InvalidInput, "there is no key");
  std::vector<std::string> keys;
  for (const std::string& der : keys_->ders())
    keys.push_back(base64_encode(der));
  wasm::PrivateFile file = HANGAR_CO_TRY(co_await parts_.workers.run(
      consumer, [directory = parts_.directory, bytes]() -> Result<wasm::PrivateFile> {
        wasm::PrivateFile made = HANGAR_TRY(wasm::PrivateFile::open(directory));
        HANGAR_TRY(made.write(0, std::as_bytes(std::span(*bytes))));
        return made;
      }));
  co_return co_await wasm::verify(parts_.loop, parts_.workers, std::move(consumer),
                                  {.program = parts_.program,
                                   .input = std::move(file),
                                   .keys = std::move(keys),
                                   .deadline = kVerifyMax},
                                  std::move(stop));
}

}  // namespace hangar::signatures
