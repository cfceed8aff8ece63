#include "abi/kube_runtime/messages.h"

#include "abi/kube_runtime/limits.h"
#include "base/result.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::abi::kube_runtime {

namespace {

static_assert(std::endian::native == std::endian::little);

// No method of HTTP is as long. The host copies it into descriptions of what it does.
constexpr std::size_t kMethodBytesMax = 64;

// The bound of the guests' own HTTP library.
constexpr std::size_t kUriBytesMax = 65534;

// The overhead of a header as HTTP/2 counts it: it bounds the number of empty headers.
constexpr std::uint64_t kHeaderOverheadBytes = 32;

constexpr int kStatusMin = 100;
constexpr int kStatusMax = 999;
constexpr int kBadGateway = 502;

// The statuses of answers to requests into a guest: an interim or unknown one would confuse the
// client.
constexpr int kFinalStatusMin = 200;
constexpr int kFinalStatusMax = 599;

// Reads bincode from beginning to end.
class Reader {
 public:
  // `noun`: what the bytes should be, for errors.
  Reader(std::string_view bytes, std::string_view noun) : rest_(bytes), noun_(noun) {}

  [[nodiscard]] std::unexpected<Error> refuse(std::string_view why) const {
    return fail(ErrorKind::GuestFault, fmt::format("the bytes are not {}: {}", noun_, why));
  }

  template <class T = std::uint64_t>
  Result<T> number(std::string_view what) {
    T value = 0;
    if (rest_.size() < sizeof value) return refuse(fmt::format("they end in {}", what));
    rest_.copy(reinterpret_cast<char*>(&value), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }

  // The number of elements that take at least `bytes_each` bytes.
  Result<std::uint64_t> count(std::string_view what, std::uint64_t bytes_each) {
    const std::uint64_t value = HANGAR_TRY(number(what));
    if (value > rest_.size() / bytes_each) {
      return refuse(
          fmt::format("{} is to have {} parts, {} bytes are left", what, value, rest_.size()));
    }
    return value;
  }

  Result<std::string_view> text(std::string_view what) {
    const std::uint64_t size = HANGAR_TRY(number(what));
    if (size > rest_.size()) {
      return refuse(fmt::format("{} is to have {} bytes, {} are left", what, size, rest_.size()));
    }
    const std::string_view value = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return value;
  }

 private:
  std::string_view rest_;
  std::string_view noun_;
};

bool is_token_character(char character) {
  const bool is_alphanumeric = (character >= '0' && character <= '9') ||
                               (character >= 'A' && character <= 'Z') ||
                               (character >= 'a' && character <= 'z');
  return is_alphanumeric ||
         std::string_view("!#$%&'*+-.^_`|~").find(character) != std::string_view::npos;
}

// RFC 9110's token: methods and names of headers.
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

bool is_header_value(std::string_view text) {
  return std::ranges::all_of(text, [](char character) {
    const auto byte = static_cast<unsigned char>(character);
    return character == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

bool is_uri(std::string_view text) {
  return !text.empty() && text.size() <= kUriBytesMax &&
         std::ranges::all_of(text, [](char character) {
           const auto byte = static_cast<unsigned char>(character);
           return byte > 0x20 && byte < 0x7f;
         });
}

class Writer {
 public:
  template <class T>
  void number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void text(std::string_view value) {
    number(std::uint64_t{value.size()});
    bytes_ += value;
  }
  // Guests keep only the last list of a name that occurs twice, so each name occurs once. Invalid
  // headers are omitted.
  void headers(const Headers& headers) {
    std::map<std::string, std::vector<std::string_view>> values_by_name;
    for (const auto& [name, value] : headers) {
      if (is_token(name) && is_header_value(value)) values_by_name[to_lower(name)].push_back(value);
    }
    number(std::uint64_t{values_by_name.size()});
    for (const auto& [name, values] : values_by_name) {
      text(name);
      number(std::uint64_t{values.size()});
      for (const std::string_view value : values)
        text(value);
    }
  }
  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// A header map in the form of http-serde: for each name the list of its values.
Result<Headers> read_headers(Reader& reader) {
  Headers headers;
  std::uint64_t total = 0;
  const std::uint64_t names = HANGAR_TRY(reader.count("the map of headers", 16));
  for (std::uint64_t index = 0; index < names; ++index) {
    const std::string_view name = HANGAR_TRY(reader.text("the name of a header"));
    if (!is_token(name)) return reader.refuse("the name of a header is not a token");
    const std::uint64_t values = HANGAR_TRY(reader.count("the values of a header", 8));
    for (std::uint64_t each = 0; each < values; ++each) {
      const std::string_view value = HANGAR_TRY(reader.text("the value of a header"));
      if (!is_header_value(value)) return reader.refuse("a header has control characters");
      // Checked before anything is copied: each value is stored with its own copy of the name.
      total += name.size() + value.size() + kHeaderOverheadBytes;
      if (total > limits::kGuestRequestHeaderBytesMax) {
        return reader.refuse(fmt::format("its headers take more than {} bytes",
                                         limits::kGuestRequestHeaderBytesMax));
      }
      headers.emplace_back(to_lower(name), value);
    }
  }
  return headers;
}

}  // namespace

std::uint64_t memory_bytes_of(const Headers& headers) {
  std::uint64_t bytes = headers.size() * sizeof(Headers::value_type);
  for (const auto& [name, value] : headers)
    bytes += name.size() + value.size();
  return bytes;
}

std::uint64_t memory_bytes_of(const HttpRequest& request) {
  return request.method.size() + request.uri.size() + memory_bytes_of(request.headers) +
         request.body.size();
}

std::uint64_t memory_bytes_of(const InboundAnswer& answer) {
  return memory_bytes_of(answer.headers) + answer.body.size();
}

Result<HttpRequest> decode_request(std::string_view bytes) {
  Reader reader(bytes, "a request");
  const std::string_view method = HANGAR_TRY(reader.text("the method"));
  if (method.size() > kMethodBytesMax || !is_token(method)) {
    return reader.refuse(
        fmt::format("the method is not a token of at most {} bytes", kMethodBytesMax));
  }
  const std::string_view uri = HANGAR_TRY(reader.text("the URI"));
  if (!is_uri(uri)) return reader.refuse("the URI is empty, too long or not of printable ASCII");
  Headers headers = HANGAR_TRY(read_headers(reader));
  const std::string_view body = HANGAR_TRY(reader.text("the body"));
  return HttpRequest{.method = std::string(method),
                     .uri = std::string(uri),
                     .headers = std::move(headers),
                     .body = std::string(body)};
}

Result<InboundAnswer> decode_inbound_answer(std::string_view bytes) {
  Reader reader(bytes, "an answer");
  const std::uint16_t status = HANGAR_TRY(reader.number<std::uint16_t>("the status"));
  if (status < kFinalStatusMin || status > kFinalStatusMax) {
    return reader.refuse(fmt::format("the status is {}, it is to be {} to {}", status,
                                     kFinalStatusMin, kFinalStatusMax));
  }
  Headers headers = HANGAR_TRY(read_headers(reader));
  const std::string_view body = HANGAR_TRY(reader.text("the body"));
  return InboundAnswer{.status = status, .headers = std::move(headers), .body = std::string(body)};
}

std::string to_bytes(const HttpRequest& request) {
  Writer writer;
  writer.text(request.method);
  writer.text(request.uri);
  writer.headers(request.headers);
  writer.text(request.body);
  return std::move(writer).take();
}

std::string to_bytes(const InboundAnswer& answer) {
  Writer writer;
  writer.number(static_cast<std::uint16_t>(answer.status));
  writer.headers(answer.headers);
  writer.text(answer.body);
  return std::move(writer).take();
}

std::string encode_inbound_request(std::uint64_t id, const HttpRequest& request) {
  Writer writer;
  writer.number(id);
  writer.text(request.method);
  writer.text(request.uri);
  writer.headers(request.headers);
  writer.text(request.body);
  return std::move(writer).take();
}

std::string encode_response_meta(int status, const Headers& headers) {
  const bool is_status = status >= kStatusMin && status <= kStatusMax;
  Writer writer;
  writer.number(static_cast<std::uint16_t>(is_status ? status : kBadGateway));
  writer.headers(headers);
  return std::move(writer).take();
}

}  // namespace hangar::abi::kube_runtime
