// Which proxy a request goes through, as curl(1) reads the environment. hangar decides this and not
// libcurl, because hangar has to resolve the name of the proxy.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hangar::http::internal {

class ProxyEnvironment {
 public:
  // `variable` returns the value of an environment variable, or "".
  explicit ProxyEnvironment(const std::function<std::string(const char*)>& variable);
  // Reads http_proxy (not in capitals: a CGI server sets that from a header), https_proxy,
  // all_proxy and no_proxy, or their capitals, from the environment of this process.
  [[nodiscard]] static ProxyEnvironment of_process();

  // The URL of the proxy for a request to `host` (without brackets); empty: none.
  [[nodiscard]] const std::string& proxy_for(std::string_view scheme, std::string_view host) const;

 private:
  [[nodiscard]] bool is_exempt(std::string_view host) const;

  std::string http_;
  std::string https_;
  std::string no_proxy_;
  std::string none_;
};

}  // namespace hangar::http::internal
