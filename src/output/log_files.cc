#include "output/log_files.h"

#include "io/descriptor.h"
#include "io/file.h"
#include "output/limits.h"
#include "wasm/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::output {

namespace {

std::unexpected<Error> failed(std::string_view doing, const std::filesystem::path& path) {
  return fail(
      errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Unavailable,
      fmt::format("{} {}: {}", doing, path.string(), std::generic_category().message(errno)));
}

std::filesystem::path previous_of(std::filesystem::path path) {
  return path += ".1";
}

// The first line of a file. The file's name may be cut, so that line names the owner of a
// resource's file.
std::string header_of(const LogFiles::Owner& owner) {
  if (owner.resource.empty()) return fmt::format("# {}\n", owner.uid);
  return fmt::format("# {} {}\n", owner.uid, owner.key.to_string());
}

// "namespace/name" from such a header; empty when there is none.
std::string_view owner_in(std::string_view text) {
  if (!text.starts_with("# ")) return {};
  const std::string_view header = text.substr(2, text.find('\n') - 2);
  const std::size_t space = header.find(' ');
  return space == std::string_view::npos ? std::string_view() : header.substr(space + 1);
}

kube::ObjectKey key_from(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {.namespace_ = {}, .name = std::string(text)};
  return {.namespace_ = std::string(text.substr(0, slash)),
          .name = std::string(text.substr(slash + 1))};
}

std::uint64_t bytes_max_of(const LogFiles::Owner& owner) {
  return owner.resource.empty() ? limits::kOperatorLogBytesMax : kFlightLogBytesMax;
}

std::string_view without_header(std::string_view text) {
  if (!text.starts_with("# ")) return text;
  return text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
}

bool begins_with(const std::filesystem::path& path, std::string_view bytes) {
  const io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::string begin(bytes.size(), '\0');
  return file.value() >= 0 &&
         ::read(file.value(), begin.data(), begin.size()) == static_cast<::ssize_t>(begin.size()) &&
         begin == bytes;
}

// Zero: the file does not exist.
std::uint64_t inode_of(const std::filesystem::path& path) {
  struct ::stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// Kubernetes' names have neither '/' nor '_'. The key of `hangar run` has no namespace.
std::string file_name(const kube::ObjectKey& key) {
  // A file system's bound, minus ".log.1".
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

// How many bytes follow the first byte of a UTF-8 sequence.
std::size_t continuations_after(unsigned char byte) {
  if (byte < 0xc0) return 0;
  if (byte < 0xe0) return 1;
  return byte < 0xf0 ? 2 : 3;
}

}  // namespace

std::string LogFiles::format(const Line& line) {
  std::string text = fmt::format("{} {} ", to_rfc3339_micro(line.time), line.stream);
  std::size_t rest = 0;  // Continuation bytes that the current character still needs.
  for (std::size_t i = 0; i < line.text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line.text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < line.text.size() ? line.text[i + 1] : 0);
    const bool is_within = rest > 0 && is_continuation(byte);
    rest = is_within ? rest - 1 : continuations_after(byte);
    // A guest must not be able to forge lines, nor to control the reader's terminal: some terminals
    // take U+0080 to U+009F, or these bytes alone, for the start of a command.
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

// The name of a resource has no slash, and is not "..": it names a kind that the API server served,
// or comes from a command line, which checks it.
std::filesystem::path LogFiles::directory_of(const std::string& resource) const {
  return resource.empty() ? directory_ : directory_ / resource;
}

std::filesystem::path LogFiles::path_of(const kube::ObjectKey& key,
                                        const std::string& resource) const {
  return directory_of(resource) / file_name(key);
}

void LogFiles::begin(const Owner& owner) const {
  const std::filesystem::path path = path_of(owner.key, owner.resource);
  const std::string header = header_of(owner);
  for (const std::filesystem::path& file : {path, previous_of(path)}) {
    std::error_code ignored;
    if (!begins_with(file, header)) std::filesystem::remove(file, ignored);
  }
}

Result<> LogFiles::append(const Owner& owner, std::string_view printed) const {
  const std::filesystem::path path = path_of(owner.key, owner.resource);
  // Not only for its first file: somebody may have removed it, because a cache may be removed.
  HANGAR_TRY(io::make_private_directory(directory_of(owner.resource)));
  const io::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct ::stat status{};
  if (file.value() < 0 || ::fstat(file.value(), &status) != 0) return failed("open", path);
  const std::string begun =
      status.st_size == 0 ? header_of(owner) + std::string(printed) : std::string();
  errno = io::write_all(file.value(), begun.empty() ? printed : std::string_view(begun));
  if (errno != 0) return failed("write", path);
  if (::fstat(file.value(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) > bytes_max_of(owner) &&
      ::rename(path.c_str(), previous_of(path).c_str()) != 0) {
    return failed("rename", path);
  }
  return {};
}

Result<std::string> LogFiles::read(const kube::ObjectKey& key, const std::string& resource) const {
  // One turn's output is appended at once, whatever the bound: Allowance's burst.
  constexpr std::uint64_t kFileBytesMax =
      limits::kOperatorLogBytesMax + 8 * limits::kPrintedAtOnceBytesMax;
  const std::filesystem::path path = path_of(key, resource);
  // A file that is rotated between the two reads would be in neither.
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
    return fail(
        ErrorKind::NotFound,
        fmt::format("{} has no stored output in {}: it has printed nothing yet, or it runs on "
                    "another host",
                    key.to_string(), directory_.string()));
  }
  return fmt::format("{}{}", without_header(before.value_or("")), without_header(now.value_or("")));
}

std::string LogFiles::added(std::string_view before, std::string_view now) {
  if (now.starts_with(before)) return std::string(now.substr(before.size()));
  // Old lines disappear from the beginning, so look for the last line of `before`; if it is
  // missing, output may have been lost.
  const std::size_t end = before.find_last_not_of('\n');
  const std::size_t line_end = before.rfind('\n', end == std::string_view::npos ? 0 : end);
  const std::string_view last = before.substr(line_end == std::string_view::npos ? 0 : line_end);
  const std::size_t found = now.rfind(last);
  if (found != std::string_view::npos) return std::string(now.substr(found + last.size()));
  return fmt::format("[output was lost here: more came at once than is kept]\n{}", now);
}

std::string LogFiles::named(std::string_view line, const kube::ObjectKey& key) {
  const std::size_t space = std::min(line.find(' '), line.size());
  return fmt::format("{} {}{}", line.substr(0, space), key.to_string(), line.substr(space));
}

Result<std::string> LogFiles::read_all(const std::string& resource) const {
  constexpr std::uint64_t kHeaderBytesMax = 1024;
  std::set<kube::ObjectKey> keys;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_of(resource), error)) {
    const io::Descriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    std::string begin(kHeaderBytesMax, '\0');
    const ::ssize_t size = file.value() < 0 ? 0 : ::read(file.value(), begin.data(), begin.size());
    begin.resize(static_cast<std::size_t>(std::max<::ssize_t>(size, 0)));
    if (const std::string_view owner = owner_in(begin); !owner.empty())
      keys.insert(key_from(owner));
  }
  if (keys.empty()) {
    return fail(
        ErrorKind::NotFound,
        fmt::format("{} has no stored output in {}: its flights have printed nothing yet, or "
                    "they run on another host",
                    resource, directory_.string()));
  }
  // All times have the same length, and lines of the same time keep their order.
  std::multimap<std::string, std::string, std::less<>> lines;
  for (const kube::ObjectKey& key : keys) {
    const Result<std::string> text = read(key, resource);
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size() - 1) + 1);
      lines.emplace(line.substr(0, line.find(' ')), named(line, key));
      rest.remove_prefix(line.size());
    }
  }
  std::string all;
  for (const auto& [time, line] : lines)
    all += line;
  return all;
}

void LogFiles::remove(const kube::ObjectKey& key, const std::string& resource) const {
  const std::filesystem::path path = path_of(key, resource);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  std::filesystem::remove(previous_of(path), ignored);
}

void LogFiles::remove_other_resources(std::span<const std::string> resources) const {
  std::vector<std::filesystem::path> others;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(ignored) && std::ranges::find(resources, name) == resources.end()) {
      others.push_back(entry.path());
    }
  }
  for (const std::filesystem::path& path : others)
    std::filesystem::remove_all(path, ignored);
}

void LogFiles::remove_others(std::span<const kube::ObjectKey> keys,
                             const std::string& resource) const {
  std::set<std::string> kept;
  for (const kube::ObjectKey& key : keys)
    kept.insert(file_name(key));
  std::vector<std::filesystem::path> others;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory_of(resource), ignored)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".log.1")) name.resize(name.size() - 2);
    const bool is_of_run = resource.empty() && name.starts_with('_');
    const bool is_log = name.ends_with(".log") && !is_of_run;
    if (is_log && !kept.contains(name)) others.push_back(entry.path());
  }
  for (const std::filesystem::path& path : others)
    std::filesystem::remove(path, ignored);
}

}  // namespace hangar::output
