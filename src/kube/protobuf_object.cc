#include "kube/protobuf_object.h"

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hangar::kube {

namespace {

constexpr std::string_view kMagic("k8s\0", 4);
// Fields that are read of each message. Those that are sought are among the first six.
constexpr int kFieldsMax = 64;
// The length of a DNS subdomain; no name, version or kind is longer.
constexpr std::size_t kTextBytesMax = 253;

bool is_plain(std::string_view text) {
  return text.size() <= kTextBytesMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

// Gives the texts and messages among the first fields, with their tags. Throws for what is no
// protobuf.
template <typename Take>
void read_fields(std::string_view message, const Take& take) {
  protozero::pbf_reader reader(message.data(), message.size());
  for (int count = 0; count < kFieldsMax && reader.next(); ++count) {
    if (reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
      reader.skip();
      continue;
    }
    const std::uint32_t tag = reader.tag();  // get_view() consumes it.
    const protozero::data_view view = reader.get_view();
    take(tag, std::string_view(view.data(), view.size()));
  }
}

// The first field of a message, if it is metadata.
std::string_view metadata_in(std::string_view object) {
  protozero::pbf_reader reader(object.data(), object.size());
  const bool is_first = reader.next() && reader.tag() == 1 &&
                        reader.wire_type() == protozero::pbf_wire_type::length_delimited;
  if (!is_first) return {};
  const protozero::data_view view = reader.get_view();
  return {view.data(), view.size()};
}

// runtime.Unknown, runtime.TypeMeta and meta.v1.ObjectMeta of k8s.io/apimachinery.
Identification read_envelope(std::string_view envelope) {
  Identification found;
  std::string_view type;
  std::string_view object;
  read_fields(envelope, [&](std::uint32_t tag, std::string_view value) {
    if (tag == 1) type = value;
    if (tag == 2) object = value;
  });
  read_fields(type, [&](std::uint32_t tag, std::string_view value) {
    if (tag == 1) found.api_version = value;
    if (tag == 2) found.kind = value;
  });
  // Their first field is a ListMeta.
  if (found.kind == "Status" || found.kind.ends_with("List")) return {};
  std::string_view name;
  std::string_view namespace_;
  read_fields(metadata_in(object), [&](std::uint32_t tag, std::string_view value) {
    if (tag == 1) name = value;
    if (tag == 3) namespace_ = value;
    if (tag == 6) found.resource_version = value;
  });
  if (!is_plain(name) || !is_plain(namespace_)) return {};
  found.name = name;
  found.namespace_ = namespace_;
  return found;
}

}  // namespace

std::optional<Identification> identify_protobuf(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  try {
    Identification found = read_envelope(bytes.substr(kMagic.size()));
    const bool is_object = !found.api_version.empty() && !found.kind.empty() &&
                           is_plain(found.api_version) && is_plain(found.kind) &&
                           is_plain(found.resource_version);
    if (!is_object) return std::nullopt;
    return found;
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
}

std::optional<Identification> identify_json_or_protobuf(std::string_view bytes) {
  return bytes.starts_with(kMagic) ? identify_protobuf(bytes) : identify(bytes);
}

}  // namespace hangar::kube
