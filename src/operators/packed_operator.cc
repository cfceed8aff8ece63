#include "operators/packed_operator.h"

#include "base/packing.h"
#include "kube/object.h"
#include "operators/operator.h"

#include <utility>

namespace hangar::operators {

namespace {

// Members are bound by their number, so that a new one does not compile until it is packed.

// Packed first, so that it can be read without the rest.
template <class Archive, class Text, class Number>
void visit_origin(Archive& archive, Text& uid, Text& service_account, Number& generation) {
  archive(uid, service_account, generation);
}

template <class Archive, class Parts>
void visit_outline(Archive& archive, Parts& parts) {
  auto& [spec, resolved] = parts;
  [[maybe_unused]] auto& [key, uid, generation, module, sha256, insecure, args, environment, files,
                          service_account, limits, sleep, webhooks, isolation, record] = spec;
  auto& [memory_bytes, cpu_time_per_wake, requests_per_second, log_bytes] = limits;
  auto& [kind, after, wake_latency] = sleep;
  visit_origin(archive, uid, service_account, generation);
  archive(memory_bytes, cpu_time_per_wake, requests_per_second, log_bytes, kind, after,
          wake_latency, resolved, isolation, record);
}

// The inputs of a guest, of any length.
template <class Archive, class Spec>
void visit_inputs(Archive& archive, Spec& spec) {
  archive.each(spec.args, [&](auto& arg) { archive(arg); });
  archive.each(spec.environment, [&](auto& entry) {
    auto& [name, source, value, object, key, is_optional] = entry;
    archive(name, source, value, object, key, is_optional);
  });
  archive.each(spec.files, [&](auto& entry) {
    auto& [path, is_secret, object, is_optional] = entry;
    archive(path, is_secret, object, is_optional);
  });
}

}  // namespace

PackedOperator::PackedOperator(const Parts& parts) {
  Packer packer;
  visit_outline(packer, parts);
  visit_inputs(packer, parts.spec);
  bytes_ = packer.bytes();
}

PackedOperator::Parts PackedOperator::outline(kube::ObjectKey key) const {
  Parts parts;
  parts.spec.key = std::move(key);
  Unpacker unpacker(bytes_);
  visit_outline(unpacker, parts);
  return parts;
}

PackedOperator::Origin PackedOperator::origin() const {
  Origin origin;
  decltype(Operator::generation) generation{};
  Unpacker unpacker(bytes_);
  visit_origin(unpacker, origin.uid, origin.service_account, generation);
  return origin;
}

PackedOperator::Parts PackedOperator::unpack(kube::ObjectKey key) const {
  Parts parts;
  parts.spec.key = std::move(key);
  Unpacker unpacker(bytes_);
  visit_outline(unpacker, parts);
  visit_inputs(unpacker, parts.spec);
  return parts;
}

}  // namespace hangar::operators
