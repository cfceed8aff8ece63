// An Operator while its guest runs, in as few bytes as it goes: most of it is needed again only
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
  // Of the spec all but its key, which whoever has the rest has at hand, and what leads to the
  // module, which is there.
  explicit PackedOperator(const Parts& parts);

  [[nodiscard]] Parts unpack(kube::ObjectKey key) const;
  // The same but for args, environment and files, which may be long: there are none.
  [[nodiscard]] Parts outline(kube::ObjectKey key) const;
  // What says whose it is, as views into this.
  struct Origin {
    std::string_view uid;
    std::string_view service_account;
  };
  [[nodiscard]] Origin origin() const;

 private:
  PackedBytes bytes_;
};

}  // namespace hangar::operators
