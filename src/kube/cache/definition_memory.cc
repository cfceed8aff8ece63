#include "kube/cache/definition_memory.h"

#include "base/limits.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "budget/consumer.h"
#include "budget/stepped_reservation.h"
#include "kube/cache/cache.h"
#include "kube/cache/ration.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace hangar::kube {

namespace {

// Less of each namespace is not counted.
constexpr std::uint64_t kCountedStep = 64 * limits::kKiB;

// For the objects of one namespace.
class DefinitionMemory final : public Allowance {
 public:
  DefinitionMemory(std::shared_ptr<budget::Accounts> accounts, const std::string& namespace_name)
      : accounts_(std::move(accounts)),
        held_(*accounts_,
              {.tenant = budget::Tenant::of_namespace(namespace_name), .name = "definitions"},
              kCountedStep) {}

  [[nodiscard]] Result<> resize(std::uint64_t bytes) override {
    const auto shortage = held_.set(bytes);
    if (!shortage) return {};
    return fail(ErrorKind::LimitExceeded,
                fmt::format("{}; delete or shorten objects of the namespace", to_text(*shortage)));
  }

 private:
  const std::shared_ptr<budget::Accounts> accounts_;
  budget::SteppedReservation held_;
};

}  // namespace

std::shared_ptr<const Ration> make_ration(std::shared_ptr<budget::Accounts> cache_memory) {
  return std::make_shared<const Ration>(
      [cache_memory = std::move(cache_memory)](const std::string& namespace_name) {
        return std::make_unique<DefinitionMemory>(cache_memory, namespace_name);
      });
}

}  // namespace hangar::kube
