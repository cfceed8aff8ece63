#include "admission/conversion_review.h"

#include "base/invalid.h"
#include "base/limits.h"
#include "base/result.h"
#include "json/skim.h"
#include "json/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hangar::admission {

namespace {

constexpr std::string_view kConversionApiVersion = "apiextensions.k8s.io/v1";
constexpr std::string_view kConversionKind = "ConversionReview";

// The least text of an object, on average. One with a group, a version and a kind has more. It
// bounds the memory for objects without any text, which only a stranger would send.
constexpr std::size_t kObjectBytesMin = 64;

// The most text that parts repeat: a review of the API server has some hundred bytes around its
// objects.
constexpr std::size_t kSharedBytesMax = 16 * limits::kKiB;

// An object of a request. Views are into the body.
struct Item {
  std::string_view text;
  std::string_view cut;     // The member metadata.managedFields and one comma; empty: it has none.
  std::string_view status;  // Empty: it has none.

  [[nodiscard]] std::size_t kept_bytes() const { return text.size() - cut.size(); }
};

struct Skimmed {
  std::string api_version;
  std::string kind;
  std::string uid;
  std::string desired_api_version;
  std::string_view objects;  // With its brackets.
  std::vector<Item> items;
  bool has_request = false;
  bool has_objects = false;
};

// What is no text counts as empty.
std::string string_of(json::Skim& skim) {
  if (skim.peek() == '"') return skim.string();
  skim.value();
  return {};
}

// The document up to here, from `begin` on.
std::string_view text_since(std::size_t begin, const json::Skim& skim, std::string_view body) {
  return body.substr(begin, skim.offset() - begin);
}

void skim_metadata(json::Skim& skim, std::string_view body, Item& item) {
  if (skim.peek() != '{') {
    skim.value();
    return;
  }
  std::size_t previous_end = 0;  // Zero: there is no member before.
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    const auto key_at = static_cast<std::size_t>(key->data() - body.data()) - 1;
    skim.value();
    if (*key != "managedFields") {
      previous_end = skim.offset();
      continue;
    }
    if (!item.cut.empty()) skim.refuse("metadata.managedFields twice");
    // The cut includes the comma before the member, or else the one after it.
    if (previous_end > 0) {
      item.cut = text_since(previous_end, skim, body);
    } else {
      item.cut = text_since(key_at, skim, body);
      if (skim.peek() == ',') item.cut = body.substr(key_at, skim.offset() + 1 - key_at);
    }
  }
}

Item skim_item(json::Skim& skim, std::string_view body) {
  Item item;
  const bool is_object = skim.peek() == '{';
  const std::size_t begin = skim.offset();
  if (!is_object) {
    skim.value();
  } else {
    for (auto members = skim.object(); const auto key = skim.next_key(members);) {
      if (*key == "metadata") {
        skim_metadata(skim, body, item);
      } else if (*key == "status") {
        item.status = skim.value();
      } else {
        skim.value();
      }
    }
  }
  item.text = text_since(begin, skim, body);
  return item;
}

void skim_objects(json::Skim& skim, std::string_view body, Skimmed& out) {
  if (out.has_objects) skim.refuse("request.objects twice");
  if (skim.peek() != '[') {
    skim.value();
    return;
  }
  out.has_objects = true;
  const std::size_t begin = skim.offset();
  for (auto elements = skim.array(); skim.next_element(elements);) {
    if ((out.items.size() + 1) * kObjectBytesMin > body.size()) {
      skim.refuse("more objects than have text");
    }
    out.items.push_back(skim_item(skim, body));
  }
  out.objects = text_since(begin, skim, body);
}

void skim_request(json::Skim& skim, std::string_view body, Skimmed& out) {
  if (out.has_request) skim.refuse("request twice");
  out.has_request = true;
  if (skim.peek() != '{') {
    skim.value();
    return;
  }
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    if (*key == "uid") {
      out.uid = string_of(skim);
    } else if (*key == "desiredAPIVersion") {
      out.desired_api_version = string_of(skim);
    } else if (*key == "objects") {
      skim_objects(skim, body, out);
    } else {
      skim.value();
    }
  }
}

Result<Skimmed> skim_review(std::string_view body) {
  Skimmed out;
  json::Skim skim(body);
  for (auto members = skim.object(); const auto key = skim.next_key(members);) {
    if (*key == "apiVersion") {
      out.api_version = string_of(skim);
    } else if (*key == "kind") {
      out.kind = string_of(skim);
    } else if (*key == "request") {
      skim_request(skim, body, out);
    } else {
      skim.value();
    }
  }
  HANGAR_TRY(skim.finish());
  return out;
}

Result<> check_review(const Skimmed& review) {
  if (review.api_version != kConversionApiVersion || review.kind != kConversionKind) {
    return invalid(fmt::format("expected {} {}, not {} {}", kConversionApiVersion, kConversionKind,
                               review.api_version, review.kind));
  }
  if (review.uid.empty()) return invalid("request.uid: is required");
  if (review.desired_api_version.empty()) {
    return invalid("request.desiredAPIVersion: is required");
  }
  if (!review.has_objects) return invalid("request.objects: is required");
  return {};
}

// The review of some of its objects.
ConversionReview::Part part_of(std::string_view body, std::string_view objects,
                               std::span<const Item> items) {
  const auto begin = static_cast<std::size_t>(objects.data() - body.data());
  const std::string_view before = body.substr(0, begin + 1);
  const std::string_view after = body.substr(begin + objects.size() - 1);
  std::size_t size = before.size() + after.size() + items.size();
  for (const Item& item : items)
    size += item.kept_bytes();
  ConversionReview::Part part{.object_count = items.size()};
  part.body.reserve(size);
  part.body += before;
  for (const Item& item : items) {
    if (&item != items.data()) part.body += ',';
    const std::size_t head =
        item.cut.empty() ? 0 : static_cast<std::size_t>(item.cut.data() - item.text.data());
    part.body += item.text.substr(0, head);
    part.body += item.text.substr(head + item.cut.size());
  }
  part.body += after;
  return part;
}

}  // namespace

Result<ConversionReview> parse_conversion_review(std::string_view body, std::size_t parts_max) {
  const Skimmed skimmed = HANGAR_TRY(skim_review(body));
  HANGAR_TRY(check_review(skimmed));
  ConversionReview review{.uid = skimmed.uid, .desired_api_version = skimmed.desired_api_version};
  const std::span<const Item> items = skimmed.items;
  review.statuses.reserve(items.size());
  std::size_t bytes = 0;
  for (const Item& item : items) {
    review.statuses.emplace_back(item.status);
    bytes += item.kept_bytes();
  }
  // Each part has the text around the objects.
  if (body.size() - skimmed.objects.size() > kSharedBytesMax) parts_max = 1;
  const std::size_t part_count = std::max<std::size_t>(
      1, std::min({parts_max, items.size(), bytes / kConversionPartBytesMin}));
  review.parts.reserve(part_count);
  for (std::size_t part = 0; part < part_count; ++part) {
    const std::size_t begin = items.size() * part / part_count;
    const std::size_t end = items.size() * (part + 1) / part_count;
    review.parts.push_back(part_of(body, skimmed.objects, items.subspan(begin, end - begin)));
  }
  return review;
}

std::uint64_t conversion_review_bytes_max(std::uint64_t body_bytes) {
  // The text is in parts, and at most once more in statuses. While the vector of items grows, there
  // are up to three for each object.
  return 2 * body_bytes + kConversionPartBytesMin +
         body_bytes / kObjectBytesMin * (3 * sizeof(Item) + sizeof(std::string));
}

std::string conversion_answer(std::string_view response) {
  return fmt::format(R"({{"apiVersion":"{}","kind":"{}","response":{}}})", kConversionApiVersion,
                     kConversionKind, response);
}

std::string conversion_failure(std::string_view uid, std::string_view message) {
  return conversion_answer(json::dump(
      json::Object{{"uid", uid},
                   {"convertedObjects", json::Array()},
                   {"result", json::Object{{"status", "Failure"}, {"message", message}}}}));
}

}  // namespace hangar::admission
