#include "operators/packed_operator.h"

#include <utility>

namespace hangar::operators {

namespace {

template <class Archive, class Parts>
void visit(Archive& archive, Parts& parts) {
  auto& spec = parts.spec;
  archive(spec.uid, spec.generation);
  archive.each(spec.args, [&](auto& arg) { archive(arg); });
  archive.each(spec.environment, [&](auto& entry) {
    archive(entry.name, entry.source, entry.value, entry.object, entry.key, entry.is_optional);
  });
  archive.each(spec.files, [&](auto& entry) {
    archive(entry.path, entry.is_secret, entry.object, entry.is_optional);
  });
  archive(spec.service_account);
  archive(spec.limits.memory_bytes, spec.limits.cpu_time_per_wake, spec.limits.requests_per_second,
          spec.limits.log_bytes);
  archive(spec.sleep.kind, spec.sleep.after);
  archive(parts.resolved);
}

}  // namespace

PackedOperator::PackedOperator(const Parts& parts) {
  Packer packer;
  visit(packer, parts);
  bytes_ = packer.bytes();
}

PackedOperator::Parts PackedOperator::unpack(kube::ObjectKey key) const {
  Parts parts;
  parts.spec.key = std::move(key);
  Unpacker unpacker(bytes_);
  visit(unpacker, parts);
  return parts;
}

}  // namespace hangar::operators
