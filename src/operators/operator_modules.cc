#include "operators/operator_modules.h"

#include "base/result.h"
#include "io/task.h"
#include "io/turns.h"
#include "modules/fetcher.h"
#include "modules/reference.h"
#include "wasm/digest.h"
#include "wasm/module.h"
#include "wasm/snapshot/sleepable_module.h"

#include <fmt/format.h>

#include <expected>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::operators {

io::Task<Result<OperatorModule>> OperatorModules::prepare(ModuleSource source,
                                                          std::stop_token stop) {
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  HANGAR_CO_TRY(parts_.allow_list.check(source.reference));
  modules::Reference reference = HANGAR_CO_TRY(modules::Reference::parse(source.reference));
  const std::string display = reference.display();
  const wasm::Digest key = wasm::Digest::of((source.insecure ? "insecure:" : "") + reference.key());
  modules::FetchOptions options{.expected_sha256 = std::move(source.sha256),
                                .insecure = source.insecure};
  Module present;  // Held until we know if it is the one.
  if (const auto known = known_.find(key); known != known_.end()) {
    present = known->second.lock();
    if (present) options.have_sha256 = present->digest().to_hex();
  }
  modules::Fetched fetched =
      HANGAR_CO_TRY(co_await parts_.fetcher.fetch(std::move(reference), std::move(options), stop));
  const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(fetched.sha256));
  if (!fetched.is_unchanged) {
    Result<Module> made = co_await make(
        key, digest, std::make_shared<const std::string>(std::move(fetched.wasm)), std::move(stop));
    if (!made) {
      co_return std::unexpected(Error(made.error()).in(fmt::format("module {}", display)));
    }
    present = *std::move(made);
  }
  co_return OperatorModule{.code = std::move(present), .resolved = std::move(fetched.resolved)};
}

io::Task<Result<OperatorModules::Module>> OperatorModules::make(
    wasm::Digest key, wasm::Digest digest, std::shared_ptr<const std::string> bytes,
    std::stop_token stop) {
  const io::Turns<wasm::Digest>::Turn turn = co_await making_.take(digest);
  Module code = find(digest);
  if (code == nullptr) {
    code = HANGAR_CO_TRY(co_await wasm::SleepableModule::load(
        parts_.code_cache, digest, std::move(bytes), parts_.image_directory, std::move(stop)));
    HANGAR_CO_TRY(co_await check(*code));
  }
  known_.insert_or_assign(key, code);
  co_return code;
}

io::Task<Result<>> OperatorModules::check(const wasm::SleepableModule& module) const {
  const std::shared_ptr<const wasm::Module> code = HANGAR_CO_TRY(co_await module.code());
  co_return parts_.runtime.check(*code);
}

OperatorModules::Module OperatorModules::find(const wasm::Digest& digest) const {
  for (const auto& [key, known] : known_) {
    Module module = known.lock();
    if (module && module->digest() == digest) return module;
  }
  return nullptr;
}

}  // namespace hangar::operators
