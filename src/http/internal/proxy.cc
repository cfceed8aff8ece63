#include "http/internal/proxy.h"

#include "base/text.h"
#include "http/internal/network.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hangar::http::internal {

namespace {

// "example.com" and ".example.com" both mean that host and all hosts below it.
bool is_within(std::string_view host, std::string_view domain) {
  if (domain.starts_with('.')) domain.remove_prefix(1);
  if (domain.ends_with('.')) domain.remove_suffix(1);
  if (host.ends_with('.')) host.remove_suffix(1);
  if (domain.empty() || host.size() < domain.size()) return false;
  const std::string_view rest = host.substr(0, host.size() - domain.size());
  return equals_ignoring_case(host.substr(rest.size()), domain) &&
         (rest.empty() || rest.ends_with('.'));
}

}  // namespace

ProxyEnvironment::ProxyEnvironment(const std::function<std::string(const char*)>& variable) {
  const auto first_of = [&variable](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (std::string value = variable(name); !value.empty()) return value;
    }
    return std::string();
  };
  http_ = first_of({"http_proxy", "all_proxy", "ALL_PROXY"});
  https_ = first_of({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  no_proxy_ = first_of({"no_proxy", "NO_PROXY"});
}

ProxyEnvironment ProxyEnvironment::of_process() {
  return ProxyEnvironment([](const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any.
    return std::string(value == nullptr ? "" : value);
  });
}

const std::string& ProxyEnvironment::proxy_for(std::string_view scheme,
                                               std::string_view host) const {
  const std::string& proxy = scheme == "https" ? https_ : http_;
  return proxy.empty() || is_exempt(host) ? none_ : proxy;
}

bool ProxyEnvironment::is_exempt(std::string_view host) const {
  constexpr std::string_view kSeparators = ", \t";
  const std::optional<AddressBytes> address = parse_address(host);
  std::string_view rest = no_proxy_;
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(kSeparators), rest.size()));
    if (rest.empty()) return false;
    const std::string_view entry = rest.substr(0, rest.find_first_of(kSeparators));
    rest.remove_prefix(entry.size());
    if (entry == "*") return true;
    if (address) {
      const std::optional<Network> network = parse_network(entry);
      if (network && network->contains(*address)) return true;
    } else if (is_within(host, entry)) {
      return true;
    }
  }
}

}  // namespace hangar::http::internal
