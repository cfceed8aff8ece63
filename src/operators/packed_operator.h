// An Operator in as few bytes as possible while its guest runs: most of it is needed again only
// when a guest starts.
#pragma once

#include "base/packing.h"
#include "kube/object.h"
#include "operators/operator.h"

#include <string>
#include <string_view>

namespace hangar::operators {

class PackedOperator {
 public:
  struct Parts {
    Operator spec;
    std::string resolved;  // OperatorModule::resolved.
  };
  // Packs the spec without its key, which the caller keeps, without the source of the module, which
  // is loaded, and without the configurations of webhooks, which the controller keeps.
  explicit PackedOperator(const Parts& parts);

  [[nodiscard]] Parts unpack(kube::ObjectKey key) const;
  // The same without args, environment and files, which may be long.
  [[nodiscard]] Parts outline(kube::ObjectKey key) const;
  // The owner's uid and service account, as views into this.
  struct Origin {
    std::string_view uid;
    std::string_view service_account;
  };
  [[nodiscard]] Origin origin() const;

 private:
  PackedBytes bytes_;
};

}  // namespace hangar::operators
