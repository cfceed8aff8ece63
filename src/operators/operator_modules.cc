#include "operators/operator_modules.h"

#include "modules/reference.h"
#include "wasm/digest.h"

#include <fmt/format.h>

#include <utility>

namespace hangar::operators {

io::Task<Result<OperatorModule>> OperatorModules::prepare(ModuleSource source,
                                                          std::stop_token stop) {
  std::erase_if(known_, [](const auto& entry) {
    return entry.second.making.expired() && entry.second.code.expired();
  });
  HANGAR_CO_TRY(parts_.allow_list.check(source.reference));
  modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(source.reference));
  const std::string display = reference.display();
  const wasm::Digest key = wasm::Digest::of((source.insecure ? "insecure:" : "") + reference.key());
  modules::FetchOptions options{.expected_sha256 = std::move(source.sha256),
                                .insecure = source.insecure};
  std::shared_ptr<const wasm::SleepableModule> present;  // Held until we know if it is the one.
  if (const auto seen = digest_of_.find(key); seen != digest_of_.end()) {
    if (const auto known = known_.find(seen->second); known != known_.end()) {
      present = known->second.code.lock();
      if (present) options.have_sha256 = seen->second.to_hex();
    }
  }
  modules::Fetched fetched =
      HANGAR_CO_TRY(co_await parts_.fetcher.fetch(std::move(reference), std::move(options), stop));
  const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(fetched.sha256));
  digest_of_.insert_or_assign(key, digest);
  if (!fetched.is_unchanged) {
    Result<std::shared_ptr<const wasm::SleepableModule>> made = co_await make(
        digest, std::make_shared<const std::string>(std::move(fetched.wasm)), std::move(stop));
    if (!made) {
      co_return std::unexpected(Error(made.error()).in(fmt::format("module {}", display)));
    }
    present = *std::move(made);
  }
  co_return OperatorModule{.code = std::move(present), .resolved = std::move(fetched.resolved)};
}

io::Task<Result<std::shared_ptr<const wasm::SleepableModule>>> OperatorModules::make(
    wasm::Digest digest, std::shared_ptr<const std::string> bytes, std::stop_token stop) {
  std::shared_ptr<io::Semaphore> making = known_[digest].making.lock();
  if (making == nullptr) {
    making = std::make_shared<io::Semaphore>(parts_.loop, 1);
    known_[digest].making = making;
  }
  const io::Semaphore::Slot slot = co_await making->acquire();
  std::shared_ptr<const wasm::SleepableModule> code = known_[digest].code.lock();
  if (code) co_return code;
  Result<std::shared_ptr<const wasm::SleepableModule>> loaded =
      co_await wasm::SleepableModule::load(parts_.code_cache, digest, std::move(bytes),
                                           parts_.image_directory, std::move(stop));
  Result<> checked;
  if (loaded) checked = co_await check(**loaded);
  if (loaded && checked) known_[digest].code = *loaded;
  if (!checked) co_return std::unexpected(std::move(checked).error());
  co_return loaded;
}

io::Task<Result<>> OperatorModules::check(const wasm::SleepableModule& module) const {
  const std::shared_ptr<const wasm::Module> code = HANGAR_CO_TRY(co_await module.code());
  co_return parts_.runtime.check(*code);
}

}  // namespace hangar::operators
