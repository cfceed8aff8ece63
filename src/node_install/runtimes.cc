#include "node_install/runtimes.h"

#include "base/digest.h"
#include "base/result.h"
#include "node_install/config_edit.h"
#include "node_install/files.h"
#include "node_install/limits.h"
#include "node_install/outcome.h"
#include "node_install/runtime_source.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::node_install {

namespace {

constexpr std::string_view kList = "SHA256SUMS";

#if defined(__x86_64__)
constexpr std::string_view kArchitecture = "amd64";
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::string_view kArchitecture = "arm64";
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
#error "name this architecture as Kubernetes does, and its number in elf.h"
#endif

std::unexpected<Error> invalid(std::string message) {
  return refuse(ErrorKind::InvalidInput, reason::kRuntimeInvalid, std::move(message));
}

// The names that Kubernetes accepts as the handler of a RuntimeClass.
bool is_handler_name(std::string_view name) {
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
         std::ranges::all_of(name, is_inner);
}

struct Listed {
  std::string sha256;
  std::string file;
};

Result<std::vector<Listed>> parse_list(std::string_view text, const std::string& path) {
  std::vector<Listed> listed;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t newline = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    // 64 digits, a space, a space or a star (binary), the name.
    const bool is_line = line.size() > 66 && is_sha256_hex(line.substr(0, 64)) && line[64] == ' ' &&
                         (line[65] == ' ' || line[65] == '*');
    std::string_view file = is_line ? line.substr(66) : std::string_view();
    if (file.starts_with("./")) file.remove_prefix(2);
    if (file.empty() || file.contains('/') || file == "." || file == "..")
      return invalid(fmt::format("{}: line {} is not as sha256sum writes them", path, number));
    listed.push_back({.sha256 = std::string(line.substr(0, 64)), .file = std::string(file)});
  }
  if (listed.empty()) return invalid(fmt::format("{} lists nothing", path));
  return listed;
}

// The digest of the whole file; rewinds it afterwards.
Result<std::string> digest_of(int file, const std::string& path) {
  constexpr std::size_t kPiece = std::size_t{256} * 1024;
  const auto piece = std::make_unique<std::array<char, kPiece>>();
  Sha256 hash;
  std::uint64_t total = 0;
  while (true) {
    const ssize_t count = ::read(file, piece->data(), piece->size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return invalid(fmt::format("{}: {}", path, std::generic_category().message(errno)));
    if (count == 0) break;
    total += static_cast<std::uint64_t>(count);
    if (total > limits::kRuntimeBytesMax)
      return invalid(fmt::format("{}: larger than {} bytes", path, limits::kRuntimeBytesMax));
    hash.add({piece->data(), static_cast<std::size_t>(count)});
  }
  ::lseek(file, 0, SEEK_SET);
  return to_hex(hash.finish());
}

Result<> check_architecture(int file, const std::string& path) {
  std::array<char, sizeof(Elf64_Ehdr)> header{};
  const ssize_t count = ::pread(file, header.data(), header.size(), 0);
  if (count < SELFMAG || std::memcmp(header.data(), ELFMAG, SELFMAG) != 0) return {};
  std::uint16_t machine = 0;
  std::memcpy(&machine, header.data() + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
  if (machine == kMachine) return {};
  return invalid(fmt::format("{} is a program for another architecture than {} (ELF machine {})",
                             path, kArchitecture, machine));
}

Result<std::string> read_list(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open())
    return invalid(fmt::format("{}: {}", path, std::generic_category().message(errno)));
  std::string text(limits::kListBytesMax + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.value(), text.data() + size, text.size() - size);
    if (count < 0)
      return invalid(fmt::format("{}: {}", path, std::generic_category().message(errno)));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > limits::kListBytesMax) return invalid(fmt::format("{} is too large", path));
  text.resize(size);
  return text;
}

Result<std::vector<Listed>> listed_in(const std::string& list,
                                      std::span<const RuntimeSource> expected) {
  if (expected.empty()) {
    const std::string text = HANGAR_TRY(read_list(list));
    return parse_list(text, list);
  }
  std::vector<Listed> listed;
  for (RuntimeSource& source : HANGAR_TRY(choose_sources(expected, kArchitecture)))
    listed.push_back({.sha256 = std::move(source.program_sha256), .file = std::move(source.file)});
  return listed;
}

}  // namespace

std::string_view architecture() {
  return kArchitecture;
}

Result<Handler> handler_of(std::string_view file, std::string program) {
  Handler handler{.program = std::move(program)};
  std::string_view rest = file;
  constexpr std::string_view kShim = "containerd-shim-";
  constexpr std::string_view kCrun = "crun";
  if (file.starts_with(kShim)) {
    rest.remove_prefix(kShim.size());
    // containerd finds the shim by this name, so it has to end in the protocol's version.
    const std::size_t dash = rest.rfind("-v");
    const std::string_view version =
        dash == std::string_view::npos ? std::string_view() : rest.substr(dash + 2);
    if (!version.empty() &&
        std::ranges::all_of(version, [](char c) { return c >= '0' && c <= '9'; })) {
      handler.name = rest.substr(0, dash);
    }
  } else if (file == kCrun) {
    handler = {.name = "crun", .kind = Handler::Kind::Oci, .program = std::move(handler.program)};
  } else if (file.starts_with("crun-")) {
    handler.kind = Handler::Kind::Oci;
    handler.name = rest.substr(kCrun.size() + 1);
  }
  if (!is_handler_name(handler.name)) {
    return invalid(fmt::format(
        "{}: the name of a runtime's file is containerd-shim-NAME-v1 or crun-NAME", file));
  }
  return handler;
}

Result<std::vector<Runtime>> runtimes_in(const std::string& directory,
                                         std::string_view install_directory,
                                         std::span<const RuntimeSource> expected) {
  const std::string special = fmt::format("{}/{}", directory, kArchitecture);
  struct stat status{};
  const std::string& from = ::stat(special.c_str(), &status) == 0 ? special : directory;
  const std::string list = expected.empty() ? fmt::format("{}/{}", from, kList) : "--checksum";
  std::vector<Runtime> runtimes;
  std::set<std::string> names;
  for (Listed& listed : HANGAR_TRY(listed_in(list, expected))) {
    const std::string path = fmt::format("{}/{}", from, listed.file);
    const Handler handler = HANGAR_TRY(
        handler_of(listed.file, fmt::format("{}/bin/{}", install_directory, listed.file)));
    if (!names.insert(handler.name).second)
      return invalid(fmt::format("{} lists two runtimes for the handler {}", list, handler.name));
    Descriptor source(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!source.is_open())
      return invalid(fmt::format("{}: {}", path, std::generic_category().message(errno)));
    const std::string found = HANGAR_TRY(digest_of(source.value(), path));
    if (found != listed.sha256) {
      return refuse(
          ErrorKind::InvalidInput, reason::kChecksumMismatch,
          fmt::format("{}: its sha256 is {}, but {} has {}", path, found, list, listed.sha256));
    }
    HANGAR_TRY(check_architecture(source.value(), path));
    runtimes.push_back({.file = std::move(listed.file),
                        .sha256 = std::move(listed.sha256),
                        .source = std::move(source),
                        .handler = handler});
  }
  std::ranges::sort(runtimes, {}, &Runtime::file);
  return runtimes;
}

}  // namespace hangar::node_install
