#include "operators/operator_modules.h"

#include "modules/reference.h"
#include "wasm/digest.h"

#include <fmt/format.h>

#include <utility>

namespace hangar::operators {

io::Task<Result<OperatorModule>> OperatorModules::prepare(ModuleSource source,
                                                          std::stop_token stop) {
  std::erase_if(by_sha256_, [](const auto& entry) {
    return entry.second.use_count() == 1 && entry.second->code.expired();
  });
  modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(source.reference));
  const std::string display = reference.display();
  const std::string key = (source.insecure ? "insecure:" : "") + reference.key();
  modules::FetchOptions options{.expected_sha256 = std::move(source.sha256),
                                .insecure = source.insecure};
  std::shared_ptr<const wasm::SleepableModule> known;  // Held until we know whether it is the one.
  if (const auto seen = sha256_of_.find(key); seen != sha256_of_.end()) {
    if (const auto shared = by_sha256_.find(seen->second); shared != by_sha256_.end()) {
      known = shared->second->code.lock();
      if (known) options.have_sha256 = seen->second;
    }
  }
  modules::Fetched fetched =
      HANGAR_CO_TRY(co_await parts_.fetcher.fetch(std::move(reference), std::move(options), stop));
  sha256_of_[key] = fetched.sha256;
  if (fetched.is_unchanged) {
    co_return OperatorModule{
        .code = std::move(known), .sha256 = fetched.sha256, .resolved = fetched.resolved};
  }

  auto& entry = by_sha256_[fetched.sha256];
  if (!entry) entry = std::make_shared<Shared>(parts_.loop);
  const std::shared_ptr<Shared> shared = entry;
  const io::Semaphore::Slot slot = co_await shared->making.acquire();
  std::shared_ptr<const wasm::SleepableModule> code = shared->code.lock();
  if (!code) {
    const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(fetched.sha256));
    Result<std::shared_ptr<const wasm::SleepableModule>> loaded =
        co_await wasm::SleepableModule::load(
            parts_.code_cache, digest, std::make_shared<const std::string>(std::move(fetched.wasm)),
            parts_.image_directory, stop);
    Result<> checked;
    if (loaded) {
      checked = co_await check(**loaded);
    } else {
      checked = std::unexpected(loaded.error());
    }
    if (!checked) {
      co_return std::unexpected(Error(checked.error()).in(fmt::format("module {}", display)));
    }
    code = *std::move(loaded);
    shared->code = code;
  }
  co_return OperatorModule{.code = std::move(code),
                           .sha256 = std::move(fetched.sha256),
                           .resolved = std::move(fetched.resolved)};
}

io::Task<Result<>> OperatorModules::check(const wasm::SleepableModule& module) const {
  const std::shared_ptr<const wasm::Module> code = HANGAR_CO_TRY(co_await module.code());
  co_return parts_.runtime.check(*code);
}

}  // namespace hangar::operators
