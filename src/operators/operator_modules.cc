#include "operators/operator_modules.h"

#include "abi/kube_runtime/local_guest.h"
#include "base/result.h"
#include "budget/beneficiaries.h"
#include "budget/consumer.h"
#include "io/task.h"
#include "modules/requester.h"
#include "modules/supply.h"
#include "wasm/digest.h"
#include "wasm/module.h"
#include "wasm/snapshot/sleepable_module.h"

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace hangar::operators {

OperatorModules::OperatorModules(Parts parts)
    : parts_(std::move(parts)), supply_(parts_.sources, *this) {}

OperatorModule OperatorModules::module_of(const modules::Supplied& supplied) {
  return {.code = std::static_pointer_cast<const wasm::SleepableModule>(supplied.product),
          .resolved = supplied.resolved};
}

io::Task<Result<OperatorModule>> OperatorModules::prepare(modules::Requester requester,
                                                          modules::Source source,
                                                          std::stop_token stop) {
  const modules::Supplied supplied = HANGAR_CO_TRY(co_await supply_.get(
      {.requester = std::move(requester), .module = std::move(source)}, std::move(stop)));
  co_return module_of(supplied);
}

modules::Product OperatorModules::find(const std::string& sha256) {
  const Result<wasm::Digest> digest = wasm::Digest::from_hex(sha256);
  const auto found = digest ? known_.find(*digest) : known_.end();
  return found == known_.end() ? nullptr : found->second.lock();
}

io::Task<Result<modules::Product>> OperatorModules::make(std::string sha256,
                                                         std::shared_ptr<const std::string> bytes,
                                                         budget::Beneficiaries beneficiaries,
                                                         std::stop_token stop) {
  std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
  const wasm::Digest digest = HANGAR_CO_TRY(wasm::Digest::from_hex(sha256));
  std::shared_ptr<const wasm::SleepableModule> module = HANGAR_CO_TRY(
      co_await wasm::SleepableModule::load(parts_.code_cache, digest, std::move(bytes),
                                           parts_.image_directory, std::move(stop), beneficiaries));
  const std::shared_ptr<const wasm::Module> code =
      HANGAR_CO_TRY(co_await module->code(beneficiaries.first()));
  HANGAR_CO_TRY(parts_.runtime.check(*code));
  if (parts_.run_once == RunOnce::Refused) {
    HANGAR_CO_TRY(abi::kube_runtime::Runtime::check_can_live_on(*code));
  }
  known_.insert_or_assign(digest, module);
  co_return modules::Product(std::move(module));
}

io::Task<Result<std::shared_ptr<const void>>> OperatorModules::charge(modules::Product product,
                                                                      budget::Consumer consumer) {
  const auto module = std::static_pointer_cast<const wasm::SleepableModule>(product);
  co_return co_await parts_.code_cache.charge(module->code_digest(), module->image_bytes(),
                                              std::move(consumer));
}

}  // namespace hangar::operators
