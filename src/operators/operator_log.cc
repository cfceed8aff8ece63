#include "operators/operator_log.h"

#include "base/limits.h"
#include "io/file.h"
#include "wasm/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::operators {

namespace {

std::unexpected<Error> failed(std::string_view doing, const std::filesystem::path& path) {
  return fail(
      errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable,
      fmt::format("{} {}: {}", doing, path.string(), std::generic_category().message(errno)));
}

std::filesystem::path previous_of(std::filesystem::path path) {
  return path += ".1";
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

// What begins a file.
std::string header_of(std::string_view uid) {
  return fmt::format("# {}\n", uid);
}

std::string_view without_header(std::string_view text) {
  if (!text.starts_with("# ")) return text;
  return text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
}

bool begins_with(const std::filesystem::path& path, std::string_view bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::string begin(bytes.size(), '\0');
  return file.number() >= 0 &&
         ::read(file.number(), begin.data(), begin.size()) ==
             static_cast<::ssize_t>(begin.size()) &&
         begin == bytes;
}

// Zero: there is none.
std::uint64_t inode_of(const std::filesystem::path& path) {
  struct ::stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// Kubernetes' names have neither '/' nor '_'. That of `hangar run` has no namespace.
std::string file_name(const kube::ObjectKey& key) {
  // A file system's bound, without ".log.1".
  constexpr std::size_t kStemBytesMax = 255 - 6;
  std::string stem = fmt::format("{}_{}", key.namespace_, key.name);
  if (stem.size() > kStemBytesMax) {
    const std::string digest = wasm::Digest::of(stem).to_hex();
    stem = fmt::format("{}_{}", stem.substr(0, kStemBytesMax - digest.size() - 1), digest);
  }
  return stem + ".log";
}

bool is_continuation(unsigned char byte) {
  return byte >= 0x80 && byte < 0xc0;
}

// In UTF-8, after the first byte of a character.
std::size_t continuations_after(unsigned char byte) {
  if (byte < 0xc0) return 0;
  if (byte < 0xe0) return 1;
  return byte < 0xf0 ? 2 : 3;
}

}  // namespace

std::string OperatorLogs::format(const Line& line) {
  std::string text = fmt::format("{} {} ", to_rfc3339_micro(line.time), line.stream);
  std::size_t rest = 0;  // Of the bytes of one character, as its first one says.
  for (std::size_t i = 0; i < line.text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line.text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < line.text.size() ? line.text[i + 1] : 0);
    const bool is_within = rest > 0 && is_continuation(byte);
    rest = is_within ? rest - 1 : continuations_after(byte);
    // A guest must not be able to forge lines, nor to play with the terminal of who reads them:
    // some take U+0080 to U+009F, or these bytes alone, for the beginning of a command.
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      rest = 0;
      text += "\\xc2";
    } else if (byte == '\t' || (byte >= 0x20 && byte < 0x7f) || byte >= 0xc0 || is_within) {
      text += line.text[i];
    } else {
      text += fmt::format("\\x{:02x}", byte);
    }
  }
  text += '\n';
  return text;
}

std::filesystem::path OperatorLogs::path_of(const kube::ObjectKey& key) const {
  return directory_ / file_name(key);
}

void OperatorLogs::begin(const Owner& owner) const {
  const std::filesystem::path path = path_of(owner.key);
  const std::string header = header_of(owner.uid);
  for (const std::filesystem::path& file : {path, previous_of(path)}) {
    std::error_code ignored;
    if (!begins_with(file, header)) std::filesystem::remove(file, ignored);
  }
}

Result<> OperatorLogs::append(const Owner& owner, std::string_view printed) const {
  const std::filesystem::path path = path_of(owner.key);
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct ::stat status{};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) return failed("open", path);
  const std::string begun =
      status.st_size == 0 ? header_of(owner.uid) + std::string(printed) : std::string();
  std::string_view text = begun.empty() ? printed : begun;
  while (!text.empty()) {
    const ::ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fstat(file.number(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) > limits::kOperatorLogBytesMax &&
      ::rename(path.c_str(), previous_of(path).c_str()) != 0) {
    return failed("rename", path);
  }
  return {};
}

Result<std::string> OperatorLogs::read(const kube::ObjectKey& key) const {
  // One turn's output is appended at once, whatever the bound: OutputAllowance's burst.
  constexpr std::uint64_t kFileBytesMax =
      limits::kOperatorLogBytesMax + 8 * limits::kOperatorOutputBytesMax;
  const std::filesystem::path path = path_of(key);
  // A file that becomes the previous one between the two would be in neither.
  const std::filesystem::path previous = previous_of(path);
  Result<std::string> before;
  Result<std::string> now;
  std::uint64_t seen = 0;
  do {
    seen = inode_of(previous);
    before = io::read_file(previous, kFileBytesMax);
    now = io::read_file(path, kFileBytesMax);
  } while (seen != inode_of(previous));
  if (!before && !now) {
    return fail(ErrorKind::NotFound,
                fmt::format("no output of {} is kept in {}; it has printed nothing yet, or another "
                            "host runs it",
                            key.to_string(), directory_.string()));
  }
  return fmt::format("{}{}", without_header(before.value_or("")), without_header(now.value_or("")));
}

std::string OperatorLogs::added(std::string_view before, std::string_view now) {
  if (now.starts_with(before)) return std::string(now.substr(before.size()));
  // Lines leave at the beginning: from the last one that was seen, or else nothing is known.
  const std::size_t end = before.find_last_not_of('\n');
  const std::size_t line_end = before.rfind('\n', end == std::string_view::npos ? 0 : end);
  const std::string_view last = before.substr(line_end == std::string_view::npos ? 0 : line_end);
  const std::size_t found = now.rfind(last);
  if (found != std::string_view::npos) return std::string(now.substr(found + last.size()));
  return fmt::format("[output was lost here: more came at once than is kept]\n{}", now);
}

void OperatorLogs::remove(const kube::ObjectKey& key) const {
  const std::filesystem::path path = path_of(key);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::filesystem::remove(previous_of(path), ignored);
}

void OperatorLogs::remove_others(std::span<const kube::ObjectKey> keys) const {
  std::set<std::string> kept;
  for (const kube::ObjectKey& key : keys)
    kept.insert(file_name(key));
  std::vector<std::filesystem::path> others;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".log.1")) name.resize(name.size() - 2);
    const bool is_log = name.ends_with(".log") && !name.starts_with('_');
    if (is_log && !kept.contains(name)) others.push_back(entry.path());
  }
  for (const std::filesystem::path& path : others)
    std::filesystem::remove(path, ignored);
}

}  // namespace hangar::operators
