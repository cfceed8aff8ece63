#include "kube/internal/documents.h"

#include "base/consumer.h"
#include "kube/client.h"

#include <string>
#include <string_view>
#include <utility>

namespace hangar::kube::internal {

Consumer reader_of(std::string_view user, std::string namespace_) {
  if (user.starts_with(kServiceAccountPrefix)) {
    const std::string_view rest = user.substr(kServiceAccountPrefix.size());
    namespace_ = rest.substr(0, rest.find(':'));
  }
  return {.tenant = Tenant::of_namespace(std::move(namespace_)), .name = "documents"};
}

std::string namespace_in(std::string_view path) {
  constexpr std::string_view kNamespaces = "/namespaces/";
  path = path.substr(0, path.find('?'));
  const std::size_t at = path.find(kNamespaces);
  if (at == std::string_view::npos) return {};
  path.remove_prefix(at + kNamespaces.size());
  return std::string(path.substr(0, path.find('/')));
}

}  // namespace hangar::kube::internal
