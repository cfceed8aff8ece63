#include "airways/conversion.h"

#include "admission/conversion_review.h"
#include "airways/airway.h"
#include "base/assert.h"
#include "base/result.h"
#include "json/skim.h"
#include "json/value.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::airways {

namespace {

constexpr std::string_view kNoMetadata = R"("metadata":{})";
constexpr std::string_view kStatusKey = R"("status":)";

// The response that a converter printed. Views are into its text.
struct Printed {
  std::string_view response;
  std::string uid;
  std::string result_status;
  std::string_view list;  // The array of converted objects, with its brackets; empty: none.
  std::string objects;    // The objects of the list with what they lacked, without brackets.
  std::size_t object_count = 0;

  [[nodiscard]] std::string_view before_objects() const {
    return response.substr(0, begin_of_list() + 1);
  }
  [[nodiscard]] std::string_view after_objects() const {
    return response.substr(begin_of_list() + list.size() - 1);
  }

 private:
  [[nodiscard]] std::size_t begin_of_list() const {
    return static_cast<std::size_t>(list.data() - response.data());
  }
};

// Reads what one converter printed.
class PrintedReader {
 public:
  // `statuses`: of the objects that it was asked to convert. Both outlive this object.
  PrintedReader(std::string_view text, std::span<const std::string> statuses)
      : text_(text), skim_(text), statuses_(statuses) {}

  Result<Printed> read() {
    bool has_response = false;
    if (skim_.peek() != '{') {
      skim_.value();
    } else {
      for (auto members = skim_.object(); const auto key = skim_.next_key(members);) {
        if (*key != "response" || skim_.peek() != '{') {
          skim_.value();
          continue;
        }
        if (std::exchange(has_response, true)) skim_.refuse("response twice");
        read_response();
      }
    }
    if (Result<> read = skim_.finish(); !read) {
      return fail(ErrorKind::GuestFault,
                  "the converter printed no ConversionReview: " + read.error().message());
    }
    if (!has_response) {
      return fail(ErrorKind::GuestFault,
                  "the converter printed a ConversionReview without response");
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string_view since(std::size_t begin) const {
    return text_.substr(begin, skim_.offset() - begin);
  }

  // What is no text counts as empty.
  std::string read_text() {
    if (skim_.peek() == '"') return skim_.string();
    skim_.value();
    return {};
  }

  void read_response() {
    const std::size_t begin = skim_.offset();
    for (auto members = skim_.object(); const auto key = skim_.next_key(members);) {
      if (*key == "uid") {
        out_.uid = read_text();
      } else if (*key == "result") {
        read_result();
      } else if (*key == "convertedObjects" && skim_.peek() == '[') {
        read_objects();
      } else {
        skim_.value();
      }
    }
    out_.response = since(begin);
  }

  void read_result() {
    if (skim_.peek() != '{') {
      skim_.value();
      return;
    }
    for (auto members = skim_.object(); const auto key = skim_.next_key(members);) {
      if (*key == "status") {
        out_.result_status = read_text();
      } else {
        skim_.value();
      }
    }
  }

  void read_objects() {
    if (!out_.list.empty()) skim_.refuse("response.convertedObjects twice");
    out_.objects.reserve(text_.size());
    const std::size_t begin = skim_.offset();
    for (auto elements = skim_.array(); skim_.next_element(elements);) {
      const std::size_t index = out_.object_count++;
      if (index > 0) out_.objects += ',';
      if (skim_.peek() != '{' || index >= statuses_.size()) {
        out_.objects += skim_.value();
      } else {
        read_object(statuses_[index]);
      }
    }
    out_.list = since(begin);
  }

  // While the API server merges an apply in another version, it has objects converted whose
  // metadata it has taken out. It refuses the answer if that lacks the member `metadata`, which
  // converters leave out or print as null when it is empty.
  void read_object(std::string_view status) {
    bool has_metadata = false;
    bool is_first = true;
    const auto add = [&](std::string_view name, std::string_view value = {}) {
      if (!std::exchange(is_first, false)) out_.objects += ',';
      out_.objects += name;
      out_.objects += value;
    };
    out_.objects += '{';
    for (auto members = skim_.object(); const auto key = skim_.next_key(members);) {
      const auto begin = static_cast<std::size_t>(key->data() - text_.data()) - 1;
      const std::string_view value = skim_.value();
      if (*key == "metadata") {
        if (value == "null") continue;
        has_metadata = true;
      }
      if (*key == "status" && !status.empty()) continue;
      add(since(begin));
    }
    if (!has_metadata) add(kNoMetadata);
    if (!status.empty()) add(kStatusKey, status);
    out_.objects += '}';
  }

  const std::string_view text_;
  json::Skim skim_;
  const std::span<const std::string> statuses_;
  Printed out_;
};

std::string answer_with(const Printed& printed, std::string_view objects) {
  std::string response;
  response.reserve(printed.response.size() + objects.size());
  response += printed.before_objects();
  response += objects;
  response += printed.after_objects();
  return admission::conversion_answer(response);
}

}  // namespace

std::string conversion_path(const Airway& airway) {
  return std::string(kConversionPath) + airway.name;
}

bool has_conversion(const Airway& airway) {
  const json::Array* const versions = json::array_at(airway.template_, {"versions"});
  return !airway.converter_url.empty() && versions != nullptr && versions->size() > 1;
}

Result<std::string> converted(const admission::ConversionReview& asked,
                              std::span<const std::string> printed) {
  HANGAR_ASSERT(printed.size() == asked.parts.size() && !printed.empty(),
                "a converter ran for each part");
  if (printed.size() == 1) {
    const Printed only = HANGAR_TRY(PrintedReader(printed.front(), asked.statuses).read());
    if (only.list.empty()) return admission::conversion_answer(only.response);
    return answer_with(only, only.objects);
  }
  std::optional<Printed> whole;
  std::span<const std::string> statuses = asked.statuses;
  for (std::size_t part = 0; part < printed.size(); ++part) {
    const std::size_t expected = asked.parts[part].object_count;
    Printed read = HANGAR_TRY(PrintedReader(printed[part], statuses.first(expected)).read());
    statuses = statuses.subspan(expected);
    // The API server refuses such a response, whatever objects are in it.
    if (read.uid != asked.uid || read.result_status != "Success") {
      return admission::conversion_answer(read.response);
    }
    if (read.list.empty() || read.object_count != expected) {
      return fail(ErrorKind::GuestFault, fmt::format("the converter printed {} objects for {}",
                                                     read.object_count, expected));
    }
    if (!whole) {
      whole = std::move(read);
      continue;
    }
    if (!whole->objects.empty() && !read.objects.empty()) whole->objects += ',';
    whole->objects += read.objects;
  }
  return answer_with(*whole, whole->objects);
}

std::uint64_t converted_bytes_max(const admission::ConversionReview& asked,
                                  std::span<const std::string> printed) {
  std::uint64_t bytes = 0;
  for (const std::string& text : printed)
    bytes += text.size();
  for (const std::string& status : asked.statuses)
    bytes += status.size() + kStatusKey.size() + kNoMetadata.size() + 2;
  // The objects of each part, in the end those of all parts, and twice the answer. Text that grows
  // may have twice the room that it needs.
  return 5 * bytes;
}

}  // namespace hangar::airways
