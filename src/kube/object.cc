#include "kube/object.h"

#include "base/assert.h"
#include "base/number.h"
#include "base/result.h"
#include "base/slots.h"
#include "json/skim.h"
#include "json/value.h"
#include "kube/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::kube {

namespace {

using json::Skim;

// The fields extracted from an object in one pass over its bytes. Views are into those bytes.
struct Skimmed {
  std::string_view api_version;
  std::string_view kind;
  std::string namespace_;
  std::string name;
  std::string_view uid;
  std::string_view resource_version;
  std::string_view labels;
  std::int64_t generation = 0;
  bool being_deleted = false;
  std::vector<std::string_view> owner_uids;
  // The key, the value and one comma.
  std::string_view managed_fields;
  bool has_metadata = false;
  bool has_blanks = false;
};

// A uid or a version: an opaque word that the server made. It is kept as a view, so it must be
// written without escapes.
std::string_view plain_word(Skim& skim) {
  const std::string_view word = skim.raw_string();
  if (word.find('\\') != std::string_view::npos) skim.refuse("an escape in an identifier");
  return word;
}

std::int64_t integer(Skim& skim) {
  const std::string_view text = skim.value();
  const auto number = parse_number<std::int64_t>(text);
  if (!number && text != "null") skim.refuse("expected an integer");
  return number.value_or(0);
}

void skim_owners(Skim& skim, std::vector<std::string_view>& uids) {
  if (skim.skip_null()) return;
  for (auto owners = skim.array(); skim.next_element(owners);) {
    for (auto members = skim.object(); const auto key = skim.next_key(members);) {
      if (*key == "uid") {
        // Whoever writes the object chooses it, and may put anything there: that is nobody's uid,
        // and no reason to refuse the object, with which the watch of all of its kind would end.
        const std::string_view uid = skim.raw_string();
        if (!uid.contains('\\')) uids.push_back(uid);
      } else {
        skim.value();
      }
    }
  }
}

void skim_metadata(Skim& skim, std::string_view text, Skimmed& out) {
  const char* previous_end = nullptr;
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    if (*key == "name") {
      out.name = skim.string();
    } else if (*key == "namespace") {
      out.namespace_ = skim.string();
    } else if (*key == "uid") {
      out.uid = plain_word(skim);
    } else if (*key == "resourceVersion") {
      out.resource_version = plain_word(skim);
    } else if (*key == "generation") {
      out.generation = integer(skim);
    } else if (*key == "deletionTimestamp") {
      out.being_deleted = !skim.raw_string().empty();
    } else if (*key == "labels") {
      const bool is_object = skim.peek() == '{';
      const std::string_view labels = skim.value();
      out.labels = is_object ? labels : std::string_view();
    } else if (*key == "ownerReferences") {
      skim_owners(skim, out.owner_uids);
    } else if (*key == "managedFields") {
      skim.value();
      if (skim.is_failed()) return;
      // The cut includes the comma before the member, or else the one after it.
      const char* const begin = previous_end != nullptr ? previous_end : key->data() - 1;
      const char* end = text.data() + skim.offset();
      if (previous_end == nullptr && skim.peek() == ',') {
        end = text.data() + skim.offset() + 1;
      }
      if (!out.managed_fields.empty()) skim.refuse("metadata.managedFields twice");
      out.managed_fields = {begin, static_cast<std::size_t>(end - begin)};
      continue;
    } else {
      skim.value();
    }
    previous_end = text.data() + skim.offset();
  }
}

Result<Skimmed> skim_object(std::string_view text) {
  Skimmed out;
  Skim skim(text);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    if (*key == "apiVersion") {
      out.api_version = skim.raw_string();
    } else if (*key == "kind") {
      out.kind = skim.raw_string();
    } else if (*key == "metadata") {
      if (out.has_metadata) skim.refuse("metadata twice");
      out.has_metadata = true;
      skim_metadata(skim, text, out);
    } else {
      skim.value();
    }
  }
  HANGAR_TRY(skim.finish());
  out.has_blanks = skim.saw_blanks();
  return out;
}

}  // namespace

std::string GroupKind::to_string() const {
  return group.empty() ? kind : kind + "." + group;
}

std::string Resource::qualified_plural() const {
  return group.empty() ? plural : plural + "." + group;
}

std::string GroupVersionKind::api_version() const {
  return group.empty() ? version : group + "/" + version;
}

Result<GroupVersionKind> gvk_of(const json::Value& object) {
  const std::string_view api_version = json::string_at(object, {"apiVersion"});
  const std::string_view kind = json::string_at(object, {"kind"});
  if (api_version.empty()) {
    return fail(ErrorKind::InvalidInput, "the object has no apiVersion");
  }
  if (kind.empty()) return fail(ErrorKind::InvalidInput, "the object has no kind");
  return make_gvk(api_version, kind);
}

GroupVersionKind make_gvk(std::string_view api_version, std::string_view kind) {
  const std::size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", std::string(api_version), std::string(kind)};
  return {std::string(api_version.substr(0, slash)), std::string(api_version.substr(slash + 1)),
          std::string(kind)};
}

std::string ObjectKey::to_string() const {
  return namespace_.empty() ? name : namespace_ + "/" + name;
}

ObjectKey key_of(const json::Value& object) {
  return {std::string(json::string_at(object, {"metadata", "namespace"})),
          std::string(json::string_at(object, {"metadata", "name"}))};
}

std::string_view Identification::group() const {
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

std::optional<Identification> identify(std::string_view bytes) {
  Identification found;
  bool has_metadata = false;
  Skim skim(bytes);
  const auto is_typed = [&found] { return !found.api_version.empty() && !found.kind.empty(); };
  const auto take_metadata = [&] {
    for (auto members = skim.object(); const auto key = skim.next_key(members);) {
      if (*key == "name") {
        found.name = skim.string();
      } else if (*key == "namespace") {
        found.namespace_ = skim.string();
      } else if (*key == "resourceVersion") {
        found.resource_version = plain_word(skim);
      } else {
        skim.value();
      }
      const bool is_all =
          !found.name.empty() && !found.namespace_.empty() && !found.resource_version.empty();
      // What follows may be most of the object: managedFields.
      if (is_all && is_typed()) return;
    }
  };
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    if (*key == "apiVersion") {
      found.api_version = skim.raw_string();
    } else if (*key == "kind") {
      found.kind = skim.raw_string();
    } else if (*key == "metadata") {
      has_metadata = true;
      take_metadata();
    } else {
      skim.value();
    }
    if ((has_metadata && is_typed()) || skim.is_failed()) break;
  }
  if (skim.is_failed() || !has_metadata || found.kind.empty()) return std::nullopt;
  return found;
}

struct Object::Packed final : Object {
  std::shared_ptr<const PackDictionary> dictionary;
};

namespace {

// An aggregated API server says itself what its kinds are called.
bool ends_no_string(std::string_view text) {
  return std::ranges::none_of(text, [](char character) {
    return character == '"' || character == '\\' || static_cast<unsigned char>(character) < 0x20;
  });
}

}  // namespace

struct ObjectBuilder {
  // Copies the bytes once, and removes and adds what make() promises.
  static Result<ObjectPtr> build(std::string_view text, const GroupVersionKind* gvk) {
    Skimmed skimmed = HANGAR_TRY(skim_object(text));
    if (skimmed.has_blanks) {
      const std::string compacted = json::compact(text);
      return build(compacted, gvk);
    }
    if (!skimmed.has_metadata) return fail(ErrorKind::InvalidInput, "the object has no metadata");
    std::string type;
    if (skimmed.kind.empty()) {
      // Otherwise the text would not be an object, and all that follows takes it for one.
      if (gvk == nullptr || !ends_no_string(gvk->kind)) {
        return fail(ErrorKind::InvalidInput, "the object has no kind");
      }
      type = fmt::format(R"("kind":"{}",)", gvk->kind);
    }
    if (skimmed.api_version.empty()) {
      const std::string api_version = gvk != nullptr ? gvk->api_version() : std::string();
      if (gvk == nullptr || !ends_no_string(api_version)) {
        return fail(ErrorKind::InvalidInput, "the object has no apiVersion");
      }
      type += fmt::format(R"("apiVersion":"{}",)", api_version);
    }
    return copy(text, std::move(skimmed), type);
  }

  // `text`: parts of an object's bytes, so that this cannot fail.
  static ObjectPtr bare(std::string_view text) {
    const std::shared_ptr<Made> object = copy(text, skim_object(text).value(), {}).value();
    object->is_bare_ = true;
    return object;
  }

 private:
  // A type through which allocate_shared reaches the private constructor.
  struct Made final : Object {};

  static Result<std::shared_ptr<Made>> copy(std::string_view text, Skimmed skimmed,
                                            std::string_view type) {
    text = text.substr(0, text.rfind('}') + 1);
    const std::string_view cut = skimmed.managed_fields;
    const std::size_t size = text.size() - cut.size() + type.size();
    if (size > std::numeric_limits<std::uint32_t>::max()) {
      return fail(ErrorKind::LimitExceeded, "the object is larger than 4 GiB");
    }
    // The copy is: `{`, apiVersion and kind, the bytes before the cut, those after it.
    const std::size_t cut_begin =
        cut.empty() ? text.size() : static_cast<std::size_t>(cut.data() - text.data());
    auto object = std::allocate_shared<Made>(slots::Allocator<Made>());
    object->bytes_.reserve(size);
    object->bytes_ += text.substr(0, 1);
    object->bytes_ += type;
    object->bytes_ += text.substr(1, cut_begin - 1);
    object->bytes_ += text.substr(cut_begin + cut.size());
    object->text_size_ = static_cast<std::uint32_t>(size);

    // The position of a view into `text` in the copy.
    const auto moved = [&](std::string_view view) {
      auto offset = static_cast<std::size_t>(view.data() - text.data());
      if (offset > cut_begin) offset -= cut.size();
      return Object::Span{static_cast<std::uint32_t>(offset + type.size()),
                          static_cast<std::uint32_t>(view.size())};
    };
    object->key_ = {std::move(skimmed.namespace_), std::move(skimmed.name)};
    object->generation_ = skimmed.generation;
    object->being_deleted_ = skimmed.being_deleted;
    if (!skimmed.uid.empty()) object->uid_ = moved(skimmed.uid);
    if (!skimmed.resource_version.empty()) {
      object->resource_version_ = moved(skimmed.resource_version);
    }
    if (!skimmed.labels.empty()) object->labels_ = moved(skimmed.labels);
    std::erase(skimmed.owner_uids, std::string_view());
    object->owner_uids_.reserve(skimmed.owner_uids.size());
    for (const std::string_view uid : skimmed.owner_uids) {
      object->owner_uids_.push_back(object->view(moved(uid)));
    }
    std::ranges::sort(object->owner_uids_);
    return object;
  }
};

Result<ObjectPtr> Object::make(std::string_view bytes) {
  return ObjectBuilder::build(bytes, nullptr);
}

Result<ObjectPtr> Object::make(json::Value value, const GroupVersionKind& gvk) {
  if (!value.is_object()) return fail(ErrorKind::InvalidInput, "the object is not a JSON object");
  json::erase_at(value, {"metadata", "managedFields"});
  return make_item(json::dump(value), gvk);
}

Result<ObjectPtr> Object::make_item(std::string_view bytes, const GroupVersionKind& gvk) {
  return ObjectBuilder::build(bytes, &gvk);
}

ObjectPtr Object::packed(std::shared_ptr<const PackDictionary> dictionary) const {
  HANGAR_ASSERT(!is_packed(), "an object is packed once");
  const std::string packed = dictionary->pack(bytes_);
  std::size_t size = packed.size() + uid_.size + resource_version_.size + labels_.size;
  for (const std::string_view uid : owner_uids_)
    size += uid.size();
  if (size > bytes_.size() / 4 * 3) return nullptr;

  const auto object = std::allocate_shared<Packed>(slots::Allocator<Packed>());
  Object& to = *object;
  to.bytes_.reserve(size);  // No view into it moves.
  const auto append = [&to](std::string_view bytes) {
    const auto offset = static_cast<std::uint32_t>(to.bytes_.size());
    to.bytes_ += bytes;
    return Span{offset, static_cast<std::uint32_t>(bytes.size())};
  };
  to.owner_uids_.reserve(owner_uids_.size());
  for (const std::string_view uid : owner_uids_)
    to.owner_uids_.push_back(to.view(append(uid)));
  to.uid_ = append(uid());
  to.resource_version_ = append(resource_version());
  to.labels_ = append(labels());
  (void)append(packed);
  to.key_ = key_;
  to.generation_ = generation_;
  to.being_deleted_ = being_deleted_;
  to.text_size_ = text_size_;
  to.is_packed_ = true;
  object->dictionary = std::move(dictionary);
  return object;
}

ObjectText Object::text() const {
  const std::string_view bytes = bytes_;
  if (!is_packed()) return ObjectText(bytes);
  const std::string_view packed = bytes.substr(labels_.offset + labels_.size);
  return ObjectText(static_cast<const Packed&>(*this).dictionary->unpack(packed, text_size_));
}

json::Value Object::to_value() const {
  const ObjectText text = this->text();
  // make() checked the text: parsing it fails only where it is nested too deep.
  if (Result<json::Value> whole = json::parse(text.view())) return *std::move(whole);
  json::Object members_that_parse;
  Skim skim(text.view());
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    if (Result<json::Value> value = json::parse(skim.value())) {
      members_that_parse[*key] = *std::move(value);
    }
  }
  return members_that_parse;
}

std::size_t Object::size_bytes() const {
  return bytes_with(sizeof(Object), text_size_);
}

std::size_t Object::resident_bytes() const {
  return bytes_with(is_packed() ? sizeof(Packed) : sizeof(Object), bytes_.capacity());
}

std::size_t Object::bytes_with(std::size_t own, std::size_t characters) const {
  const auto heap = [](const std::string& text) {
    constexpr std::size_t kWithinString = 15;  // libstdc++ stores that much in the string itself.
    return text.capacity() > kWithinString ? text.capacity() + 1 : 0;
  };
  constexpr std::size_t kSharedCounts = 16;
  return slots::slot_size(own + kSharedCounts) + slots::slot_size(characters + 1) +
         slots::slot_size(owner_uids_.capacity() * sizeof(std::string_view)) +
         heap(key_.namespace_) + heap(key_.name);
}

namespace {

// Appends one member of an object.
void append_member(std::string& to, std::string_view key, std::string_view value) {
  to += to.empty() ? '{' : ',';
  to.append("\"").append(key).append("\":").append(value);
}

// The first members of an object of strings.
std::string first_members(std::string_view map, std::size_t bytes_max) {
  std::string kept;
  Skim skim(map);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const std::string_view value = skim.value();
    if (kept.size() + key->size() + value.size() > bytes_max) break;
    append_member(kept, *key, value);
  }
  return kept.empty() ? "{}" : kept + '}';
}

std::string bare_metadata(std::string_view metadata) {
  std::string kept;
  Skim skim(metadata);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const bool is_map = skim.peek() == '{';
    const std::string_view value = skim.value();
    if (is_map) {
      append_member(kept, *key, first_members(value, kBareMapBytesMax));
    } else if (value.size() <= kBareMemberBytesMax) {
      append_member(kept, *key, value);
    }
  }
  return kept + '}';
}

// apiVersion, kind, and what `of_metadata` returns for the text of metadata.
std::string reduced(std::string_view object_text, const auto& of_metadata) {
  std::string kept;
  Skim skim(object_text);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const std::string_view value = skim.value();
    if (*key == "metadata") {
      append_member(kept, *key, of_metadata(value));
    } else if (*key == "apiVersion" || *key == "kind") {
      append_member(kept, *key, value);
    }
  }
  return kept + '}';
}

}  // namespace

ObjectPtr bare_of(const Object& object) {
  const ObjectText text = object.text();
  return ObjectBuilder::bare(reduced(text.view(), bare_metadata));
}

ObjectPtr metadata_of(const Object& object) {
  const ObjectText text = object.text();
  // These are parts of an object's bytes, so that making an object of them cannot fail.
  return Object::make(reduced(text.view(), [](std::string_view whole) { return whole; })).value();
}

std::string_view metadata_text_of(std::string_view object_text) {
  Skim skim(object_text);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const std::string_view value = skim.value();
    if (*key == "metadata") return value;
  }
  return "{}";  // make() refuses objects without metadata.
}

std::string_view label_of(const json::Value& object, std::string_view key) {
  return json::string_at(object, {"metadata", "labels", key});
}

std::string_view annotation_of(const json::Value& object, std::string_view key) {
  return json::string_at(object, {"metadata", "annotations", key});
}

std::vector<OwnerReference> owners_of(const json::Value& object) {
  std::vector<OwnerReference> owners;
  const json::Array* const references = json::array_at(object, {"metadata", "ownerReferences"});
  if (references == nullptr) return owners;
  owners.reserve(references->size());
  for (const json::Value& reference : *references) {
    const auto text = [&reference](std::string_view member) {
      return std::string(json::string_at(reference, {member}));
    };
    owners.push_back({.api_version = text("apiVersion"),
                      .kind = text("kind"),
                      .name = text("name"),
                      .uid = text("uid"),
                      .controller = json::bool_at(reference, {"controller"})});
  }
  return owners;
}

bool has_finalizer(const json::Value& object, std::string_view finalizer) {
  const json::Array* const finalizers = json::array_at(object, {"metadata", "finalizers"});
  return finalizers != nullptr &&
         std::ranges::any_of(*finalizers, [finalizer](const json::Value& value) {
           return value.is_string() && value.get_string() == finalizer;
         });
}

std::optional<std::uint64_t> parse_version(std::string_view text) {
  return parse_number<std::uint64_t>(text);
}

}  // namespace hangar::kube
