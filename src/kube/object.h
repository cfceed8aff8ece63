// The nouns of the API: kinds, resources, keys, objects.
#pragma once

#include "base/result.h"
#include "base/slots.h"
#include "json/value.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hangar::kube {

class PackDictionary;

struct GroupKind {
  std::string group;  // Empty: the core group.
  std::string kind;

  // "Deployment.apps", "Secret".
  [[nodiscard]] std::string to_string() const;
  auto operator<=>(const GroupKind&) const = default;
};

struct GroupVersionKind {
  std::string group;
  std::string version;
  std::string kind;

  [[nodiscard]] GroupKind group_kind() const { return {group, kind}; }
  // "apps/v1", "v1".
  [[nodiscard]] std::string api_version() const;
  auto operator<=>(const GroupVersionKind&) const = default;
};

// apiVersion and kind of a document. InvalidInput when either is missing.
[[nodiscard]] Result<GroupVersionKind> gvk_of(const json::Value& object);
[[nodiscard]] GroupVersionKind make_gvk(std::string_view api_version, std::string_view kind);

// One collection that the API server serves, as discovery describes it.
struct Resource {
  std::string group;
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = false;

  [[nodiscard]] GroupVersionKind gvk() const { return {group, version, kind}; }
  // "deployments.apps", "pods": as errors of the API server and names of CRDs write it.
  [[nodiscard]] std::string qualified_plural() const;
  auto operator<=>(const Resource&) const = default;
};

struct ObjectKey {
  std::string namespace_;  // Empty for cluster-scoped objects.
  std::string name;

  // "ns/name", or "name".
  [[nodiscard]] std::string to_string() const;
  auto operator<=>(const ObjectKey&) const = default;
};

[[nodiscard]] ObjectKey key_of(const json::Value& object);

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
};

// The text of an object: compact JSON. Must not outlive the object.
class ObjectText {
 public:
  explicit ObjectText(std::string_view kept) : text_(kept) {}
  explicit ObjectText(std::string unpacked) : text_(std::move(unpacked)) {}

  // Not of a temporary: the view may be one of its own memory.
  [[nodiscard]] std::string_view view() const& {
    const auto* const kept = std::get_if<std::string_view>(&text_);
    return kept != nullptr ? *kept : std::string_view(std::get<std::string>(text_));
  }
  std::string_view view() const&& = delete;
  [[nodiscard]] std::string str() && {
    auto* const unpacked = std::get_if<std::string>(&text_);
    return unpacked != nullptr ? std::move(*unpacked) : std::string(view());
  }

 private:
  std::variant<std::string_view, std::string> text_;
};

// An object as the API server sent it: immutable, shared, compact. The fields that queues,
// indexes and predicates read are extracted once; the rest stays text until a caller parses it.
// Any thread.
class Object {
 public:
  // `bytes` is one JSON object with apiVersion, kind and metadata. InvalidInput otherwise.
  // metadata.managedFields is dropped: no code here reads it, and it is half of many objects.
  [[nodiscard]] static Result<std::shared_ptr<const Object>> make(std::string_view bytes);
  // Items of a list lack apiVersion and kind: these are added.
  [[nodiscard]] static Result<std::shared_ptr<const Object>> make(json::Value value,
                                                                  const GroupVersionKind& gvk);
  // The same from bytes, without building a document.
  [[nodiscard]] static Result<std::shared_ptr<const Object>> make_item(std::string_view bytes,
                                                                       const GroupVersionKind& gvk);

  [[nodiscard]] const ObjectKey& key() const { return key_; }
  // Views into the object.
  [[nodiscard]] std::string_view uid() const { return view(uid_); }
  [[nodiscard]] std::string_view resource_version() const { return view(resource_version_); }
  [[nodiscard]] std::int64_t generation() const { return generation_; }
  [[nodiscard]] bool is_being_deleted() const { return being_deleted_; }
  // The uids of the owners, sorted, as views into the object.
  [[nodiscard]] std::span<const std::string_view> owner_uids() const { return owner_uids_; }

  // metadata.labels as a JSON object: see labels.h. Empty when there are none.
  [[nodiscard]] std::string_view labels() const { return view(labels_); }

  // A packed object unpacks it at each call, in some microseconds.
  [[nodiscard]] ObjectText text() const;
  [[nodiscard]] std::size_t text_size() const { return text_size_; }
  // Parses the text at each call.
  [[nodiscard]] json::Value to_value() const;
  // The same object in less memory: all but the fields above is compressed. Null when that would
  // save less than a quarter. For an object that is not packed.
  [[nodiscard]] std::shared_ptr<const Object> packed(
      std::shared_ptr<const PackDictionary> dictionary) const;
  [[nodiscard]] bool is_packed() const { return is_packed_; }
  // Made by bare_of(): only what identifies the object is known.
  [[nodiscard]] bool is_bare() const { return is_bare_; }
  // The bytes of memory that it occupies while it is not packed. Tenants are charged for these: the
  // size of a packed object would tell them what is in its dictionary, which has texts of others.
  [[nodiscard]] std::size_t size_bytes() const;
  // The bytes that it occupies.
  [[nodiscard]] std::size_t resident_bytes() const;

 private:
  friend struct ObjectBuilder;
  Object() = default;

  struct Packed;
  // Offsets of 32 bits: there is an Object for every watched object of the cluster.
  struct Span {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
  };
  [[nodiscard]] std::string_view view(Span span) const {
    return std::string_view(bytes_).substr(span.offset, span.size);
  }

  [[nodiscard]] std::size_t bytes_with(std::size_t own, std::size_t characters) const;

  ObjectKey key_;
  std::vector<std::string_view, slots::Allocator<std::string_view>> owner_uids_;
  // The text. Of a packed object: the uids of its owners, the other fields, the packed text.
  std::basic_string<char, std::char_traits<char>, slots::Allocator<char>> bytes_;
  std::int64_t generation_ = 0;
  Span uid_;
  Span resource_version_;
  Span labels_;
  std::uint32_t text_size_ = 0;
  bool being_deleted_ = false;
  bool is_packed_ = false;
  bool is_bare_ = false;
};

using ObjectPtr = std::shared_ptr<const Object>;

// The object reduced to apiVersion, kind and metadata: what Detail::Metadata shows.
[[nodiscard]] ObjectPtr metadata_of(const Object& object);
// What identifies the object, in little memory whatever its size: apiVersion, kind, and metadata
// with the first kBareMapBytesMax bytes of labels and of annotations, and without other members of
// more than kBareMemberBytesMax.
inline constexpr std::size_t kBareMapBytesMax = 2048;
inline constexpr std::size_t kBareMemberBytesMax = 1024;
[[nodiscard]] ObjectPtr bare_of(const Object& object);
// The value of metadata in an object's text, as a view into it. Searches the text at each call.
[[nodiscard]] std::string_view metadata_text_of(std::string_view object_text);

// The identity and version of a document. Views are into its bytes.
struct Identification {
  std::string_view api_version;
  std::string_view kind;
  std::string namespace_;
  std::string name;
  std::string_view resource_version;

  // "apps" for "apps/v1"; empty for the core group.
  [[nodiscard]] std::string_view group() const;
};
// Reads only as far as the last of these fields and ignores the rest. std::nullopt for bytes that
// are not a Kubernetes object.
[[nodiscard]] std::optional<Identification> identify(std::string_view bytes);

// A resourceVersion as a number; std::nullopt for other text, and for more than 64 bits.
[[nodiscard]] std::optional<std::uint64_t> parse_version(std::string_view text);

// Readers of the metadata of a document, for code that works on json::Value.
[[nodiscard]] std::string_view label_of(const json::Value& object, std::string_view key);
[[nodiscard]] std::string_view annotation_of(const json::Value& object, std::string_view key);
[[nodiscard]] std::vector<OwnerReference> owners_of(const json::Value& object);
[[nodiscard]] bool has_finalizer(const json::Value& object, std::string_view finalizer);

}  // namespace hangar::kube
