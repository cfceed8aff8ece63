// fd_* and path_*: the standard streams, and read-only files.

#include "base/result.h"
#include "wasm/guest_memory.h"
#include "wasm/host_call.h"
#include "wasm/limits.h"
#include "wasm/wasi/calls.h"
#include "wasm/wasi/errno.h"
#include "wasm/wasi/files.h"
#include "wasm/wasi/preview1.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::wasm::wasi {

namespace {

using Kind = Descriptor::Kind;

// The elements of one readv or writev; the guest calls again for the others, as POSIX allows.
constexpr std::uint32_t kVectorsMax = 1024;

constexpr std::uint16_t kNonBlocking = 1U << 2;  // Of fdflags.

// Layouts of preview 1, in bytes.
constexpr std::uint32_t kVectorBytes = 8;
constexpr std::uint32_t kFdstatBytes = 24;
constexpr std::uint32_t kFilestatBytes = 64;
constexpr std::uint32_t kDirentBytes = 24;
constexpr std::uint32_t kPrestatBytes = 8;

enum FileType : std::uint8_t { kUnknown = 0, kDirectoryType = 3, kRegularFile = 4 };

constexpr std::uint64_t kRightRead = 1U << 1;
constexpr std::uint64_t kRightSeek = 1U << 2;
constexpr std::uint64_t kRightTell = 1U << 5;
constexpr std::uint64_t kRightWrite = 1U << 6;
constexpr std::uint64_t kRightAdvise = 1U << 7;
constexpr std::uint64_t kRightPathOpen = 1U << 13;
constexpr std::uint64_t kRightReaddir = 1U << 14;
constexpr std::uint64_t kRightReadlink = 1U << 15;
constexpr std::uint64_t kRightPathFilestat = 1U << 18;
constexpr std::uint64_t kRightFilestat = 1U << 21;
constexpr std::uint64_t kRightPoll = 1U << 27;

constexpr std::uint64_t kFileRights =
    kRightRead | kRightSeek | kRightTell | kRightAdvise | kRightFilestat | kRightPoll;
constexpr std::uint64_t kDirectoryRights =
    kRightPathOpen | kRightReaddir | kRightReadlink | kRightPathFilestat | kRightFilestat;
// wasi-libc requests no more rights than these in path_open. They include the right to write, so
// that a program that opens a file for writing fails there, with EROFS, and not at its first write.
constexpr std::uint64_t kInheritedRights = kFileRights | kDirectoryRights | kRightWrite;

enum OpenFlag : std::uint32_t { kCreate = 1, kOnlyDirectory = 2, kExclusive = 4, kTruncate = 8 };

// The directory that the host presents; it has the first number after the standard streams.
constexpr std::string_view kPresented = "/";

bool is_file_system(const Descriptor& descriptor) {
  return descriptor.kind == Kind::File || descriptor.kind == Kind::Directory;
}

// One element of a readv or writev.
struct Vector {
  std::uint32_t address = 0;
  std::uint32_t size = 0;
};

// std::nullopt means EFAULT.
std::optional<std::vector<Vector>> read_vectors(const GuestMemory& memory, std::uint32_t address,
                                                std::uint32_t count) {
  count = std::min(count, kVectorsMax);
  const auto bytes = memory.range(address, std::uint64_t{count} * kVectorBytes);
  if (!bytes) return std::nullopt;
  std::vector<Vector> vectors(count);
  static_assert(sizeof(Vector) == kVectorBytes);
  if (count > 0) std::memcpy(vectors.data(), bytes->data(), bytes->size());
  for (const Vector& vector : vectors) {
    if (!memory.has_range(vector.address, vector.size)) return std::nullopt;
  }
  return vectors;
}

// Copies the bytes that `take` returns, for each vector at most its size, into the guest's memory.
template <class Take>
Status read_into(HostCall call, std::uint32_t vectors_at, std::uint32_t count,
                 std::uint32_t size_at, Take take) {
  const GuestMemory memory = HANGAR_TRY(call.memory());
  const auto vectors = read_vectors(memory, vectors_at, count);
  if (!vectors || !memory.has_range(size_at, 4)) return kFault;
  std::uint32_t total = 0;
  for (const Vector& vector : *vectors) {
    // Keeps the total within the 32 bits in which it is reported; the result is a short read.
    if (vector.size > std::numeric_limits<std::uint32_t>::max() - total) break;
    const std::string_view bytes = take(vector.size);
    HANGAR_TRY(memory.write(vector.address, bytes));
    total += static_cast<std::uint32_t>(bytes.size());
    if (bytes.size() < vector.size) break;
  }
  return status(memory.write_u32(size_at, total));
}

std::string_view content_at(const std::string& content, std::uint64_t offset, std::size_t size) {
  return std::string_view(content).substr(std::min<std::uint64_t>(offset, content.size()), size);
}

Status fd_read(HostCall call, std::uint32_t number, std::uint32_t vectors_at, std::uint32_t count,
               std::uint32_t size_at) {
  Process& process = process_of(call);
  Descriptor& descriptor = process.descriptor(number);
  switch (descriptor.kind) {
    case Kind::Stdin:
      return read_into(call, vectors_at, count, size_at,
                       [&process](std::size_t size) { return process.take_stdin(size); });
    case Kind::File:
      return read_into(call, vectors_at, count, size_at, [&](std::size_t size) {
        const std::string_view bytes =
            content_at(process.node(descriptor).content, descriptor.offset, size);
        descriptor.offset += bytes.size();
        return bytes;
      });
    case Kind::Directory:
      return kIsDirectory;
    case Kind::Idle:
      return kAgain;
    default:
      return kBadDescriptor;
  }
}

Status fd_write(HostCall call, std::uint32_t number, std::uint32_t vectors_at, std::uint32_t count,
                std::uint32_t size_at) {
  Process& process = process_of(call);
  const Kind kind = process.descriptor(number).kind;
  if (kind != Kind::Stdout && kind != Kind::Stderr) return kBadDescriptor;
  const OutputStream stream = kind == Kind::Stdout ? OutputStream::Stdout : OutputStream::Stderr;
  const GuestMemory memory = HANGAR_TRY(call.memory());
  const auto vectors = read_vectors(memory, vectors_at, count);
  if (!vectors || !memory.has_range(size_at, 4)) return kFault;
  std::uint32_t total = 0;
  for (const Vector& vector : *vectors) {
    // Keeps the total within the 32 bits in which it is reported; the result is a short write.
    if (vector.size > std::numeric_limits<std::uint32_t>::max() - total) break;
    const auto bytes = HANGAR_TRY(memory.range(vector.address, vector.size));
    HANGAR_TRY(process.print(stream, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    total += vector.size;
  }
  return status(memory.write_u32(size_at, total));
}

Status fd_close(HostCall call, std::uint32_t number) {
  Descriptor& descriptor = process_of(call).descriptor(number);
  if (descriptor.kind == Kind::Closed) return kBadDescriptor;
  descriptor = {};
  return kSuccess;
}

std::uint64_t rights_of(Kind kind) {
  switch (kind) {
    case Kind::Stdin:
      return kRightPoll | kRightRead;
    case Kind::File:
      return kFileRights;
    case Kind::Directory:
      return kDirectoryRights;
    case Kind::Idle:
      return kRightPoll | kRightRead;
    default:
      return kRightPoll | kRightWrite;
  }
}

// The type of the standard streams is "unknown", as for a pipe: programs take a character device
// for a terminal.
FileType type_of(Kind kind) {
  if (kind == Kind::File) return kRegularFile;
  return kind == Kind::Directory ? kDirectoryType : kUnknown;
}

template <class T>
void put(std::string& structure, std::size_t offset, T value) {
  std::memcpy(structure.data() + offset, &value, sizeof value);
}

Status fd_fdstat_get(HostCall call, std::uint32_t number, std::uint32_t address) {
  const Kind kind = process_of(call).descriptor(number).kind;
  if (kind == Kind::Closed) return kBadDescriptor;
  std::string fdstat(kFdstatBytes, '\0');
  put(fdstat, 0, type_of(kind));
  if (kind == Kind::Idle) put(fdstat, 2, kNonBlocking);
  put(fdstat, 8, rights_of(kind));
  if (kind == Kind::Directory) put(fdstat, 16, kInheritedRights);
  return status(HANGAR_TRY(call.memory()).write(address, fdstat));
}

std::uint64_t inode_of(FileTree::Index node) {
  return std::uint64_t{node} + 1;
}

std::string filestat_of(const FileTree& files, FileTree::Index index) {
  const FileTree::Node& node = files.node(index);
  std::string filestat(kFilestatBytes, '\0');
  put(filestat, 8, inode_of(index));
  put(filestat, 16, node.is_directory ? kDirectoryType : kRegularFile);
  put(filestat, 24, std::uint64_t{1});  // The number of links.
  put(filestat, 32, std::uint64_t{node.content.size()});
  return filestat;
}

Status fd_filestat_get(HostCall call, std::uint32_t number, std::uint32_t address) {
  Process& process = process_of(call);
  const Descriptor& descriptor = process.descriptor(number);
  if (descriptor.kind == Kind::Closed) return kBadDescriptor;
  const std::string filestat = is_file_system(descriptor)
                                   ? filestat_of(process.files(), descriptor.node)
                                   : std::string(kFilestatBytes, '\0');
  return status(HANGAR_TRY(call.memory()).write(address, filestat));
}

Status fd_pread(HostCall call, std::uint32_t number, std::uint32_t vectors_at, std::uint32_t count,
                std::uint64_t offset, std::uint32_t size_at) {
  Process& process = process_of(call);
  const Descriptor& descriptor = process.descriptor(number);
  if (descriptor.kind == Kind::Closed) return kBadDescriptor;
  if (descriptor.kind == Kind::Directory) return kIsDirectory;
  if (descriptor.kind != Kind::File) return kIllegalSeek;
  return read_into(call, vectors_at, count, size_at, [&, offset](std::size_t size) mutable {
    const std::string_view bytes = content_at(process.node(descriptor).content, offset, size);
    offset += bytes.size();
    return bytes;
  });
}

Status fd_pwrite(HostCall call, std::uint32_t number, std::uint32_t /*vectors*/,
                 std::uint32_t /*count*/, std::uint64_t /*offset*/, std::uint32_t /*size*/) {
  const Descriptor& descriptor = process_of(call).descriptor(number);
  const bool is_stream = descriptor.kind != Kind::Closed && !is_file_system(descriptor);
  return is_stream ? kIllegalSeek : kBadDescriptor;
}

Status fd_seek(HostCall call, std::uint32_t number, std::uint64_t delta, std::uint32_t whence,
               std::uint32_t position_at) {
  enum : std::uint32_t { kSet = 0, kCurrent = 1, kEnd = 2 };
  Process& process = process_of(call);
  Descriptor& descriptor = process.descriptor(number);
  if (descriptor.kind == Kind::Closed || descriptor.kind == Kind::Directory) return kBadDescriptor;
  if (descriptor.kind != Kind::File) return kIllegalSeek;
  if (whence > kEnd) return kInvalid;
  const std::uint64_t size = process.node(descriptor).content.size();
  const std::uint64_t base = whence == kSet ? 0 : whence == kEnd ? size : descriptor.offset;
  std::int64_t position = 0;
  if (__builtin_add_overflow(static_cast<std::int64_t>(base), static_cast<std::int64_t>(delta),
                             &position) ||
      position < 0) {
    return kInvalid;
  }
  const Errno written = status(
      HANGAR_TRY(call.memory()).write_u64(position_at, static_cast<std::uint64_t>(position)));
  if (written == kSuccess) descriptor.offset = static_cast<std::uint64_t>(position);
  return written;
}

Status fd_tell(HostCall call, std::uint32_t number, std::uint32_t position_at) {
  const Descriptor& descriptor = process_of(call).descriptor(number);
  if (descriptor.kind == Kind::Closed || descriptor.kind == Kind::Directory) return kBadDescriptor;
  if (descriptor.kind != Kind::File) return kIllegalSeek;
  return status(HANGAR_TRY(call.memory()).write_u64(position_at, descriptor.offset));
}

// The entries of a directory are numbered: itself, its parent, and its contents.
std::string dirent_of(const FileTree& files, FileTree::Index directory, std::uint64_t number) {
  constexpr std::array<std::string_view, 2> kDots = {".", ".."};
  const FileTree::Node& node = files.node(directory);
  const FileTree::Index index = number == 0   ? directory
                                : number == 1 ? node.parent
                                              : node.children[number - kDots.size()];
  const std::string_view name = number < kDots.size() ? kDots[number] : files.node(index).name;
  std::string dirent(kDirentBytes, '\0');
  put(dirent, 0, number + 1);
  put(dirent, 8, inode_of(index));
  put(dirent, 16, static_cast<std::uint32_t>(name.size()));
  put(dirent, 20, files.node(index).is_directory ? kDirectoryType : kRegularFile);
  dirent += name;
  return dirent;
}

// Fills the buffer to its end and cuts the last entry if necessary: a guest takes a buffer that is
// not full for the end of the directory.
Status fd_readdir(HostCall call, std::uint32_t number, std::uint32_t buffer_at, std::uint32_t size,
                  std::uint64_t cookie, std::uint32_t used_at) {
  Process& process = process_of(call);
  const Descriptor& descriptor = process.descriptor(number);
  if (descriptor.kind == Kind::Closed) return kBadDescriptor;
  if (descriptor.kind == Kind::File) return kNotDirectory;
  if (descriptor.kind != Kind::Directory) return kInvalid;
  const GuestMemory memory = HANGAR_TRY(call.memory());
  if (!memory.has_range(buffer_at, size) || !memory.has_range(used_at, 4)) return kFault;
  const std::uint64_t entries = process.node(descriptor).children.size() + 2;
  std::uint32_t used = 0;
  for (std::uint64_t entry = cookie; entry < entries && used < size; ++entry) {
    const std::string dirent = dirent_of(process.files(), descriptor.node, entry);
    const std::string_view fitting = std::string_view(dirent).substr(0, size - used);
    HANGAR_TRY(memory.write(buffer_at + used, fitting));
    used += static_cast<std::uint32_t>(fitting.size());
  }
  return status(memory.write_u32(used_at, used));
}

// The answer of functions that a descriptor does not support: `answer`, unless it is closed.
Status unless_closed(HostCall call, std::uint32_t number, Errno answer) {
  return process_of(call).descriptor(number).kind == Kind::Closed ? kBadDescriptor : answer;
}

Status fd_fdstat_set_flags(HostCall call, std::uint32_t number, std::uint32_t /*flags*/) {
  return unless_closed(call, number, kSuccess);
}
Status fd_fdstat_set_rights(HostCall call, std::uint32_t number, std::uint64_t /*base*/,
                            std::uint64_t /*inheriting*/) {
  return unless_closed(call, number, kNotSupported);
}
Status fd_filestat_set_size(HostCall call, std::uint32_t number, std::uint64_t /*size*/) {
  return unless_closed(call, number, kInvalid);
}
Status fd_filestat_set_times(HostCall call, std::uint32_t number, std::uint64_t /*access*/,
                             std::uint64_t /*change*/, std::uint32_t /*flags*/) {
  return unless_closed(call, number, kNotSupported);
}
Status fd_advise(HostCall call, std::uint32_t number, std::uint64_t /*offset*/,
                 std::uint64_t /*size*/, std::uint32_t /*advice*/) {
  const bool is_file = process_of(call).descriptor(number).kind == Kind::File;
  return unless_closed(call, number, is_file ? kSuccess : kIllegalSeek);
}
Status fd_allocate(HostCall call, std::uint32_t number, std::uint64_t /*offset*/,
                   std::uint64_t /*size*/) {
  return unless_closed(call, number, kNotSupported);
}
Status fd_sync(HostCall call, std::uint32_t number) {
  return unless_closed(call, number, kSuccess);
}
Status fd_renumber(HostCall call, std::uint32_t from, std::uint32_t /*to*/) {
  return unless_closed(call, from, kNotSupported);
}

Status fd_prestat_get(HostCall call, std::uint32_t number, std::uint32_t prestat_at) {
  // A libc asks about each descriptor in turn, until the first one that is not presented.
  if (!process_of(call).descriptor(number).is_presented) return kBadDescriptor;
  std::string prestat(kPrestatBytes, '\0');  // The first byte, zero, means a directory.
  put(prestat, 4, static_cast<std::uint32_t>(kPresented.size()));
  return status(HANGAR_TRY(call.memory()).write(prestat_at, prestat));
}

Status fd_prestat_dir_name(HostCall call, std::uint32_t number, std::uint32_t path_at,
                           std::uint32_t size) {
  if (!process_of(call).descriptor(number).is_presented) return kBadDescriptor;
  if (size < kPresented.size()) return kNameTooLong;
  return status(HANGAR_TRY(call.memory()).write(path_at, kPresented));
}

// Resolves `path` in the directory `number`.
Result<std::expected<FileTree::Index, Errno>> find_path(HostCall call, std::uint32_t number,
                                                        std::uint32_t path_at, std::uint32_t size) {
  using Found = std::expected<FileTree::Index, Errno>;
  Process& process = process_of(call);
  const Descriptor& directory = process.descriptor(number);
  if (directory.kind == Kind::File) return Found(std::unexpect, kNotDirectory);
  if (directory.kind != Kind::Directory) return Found(std::unexpect, kBadDescriptor);
  const GuestMemory memory = HANGAR_TRY(call.memory());
  const auto bytes = memory.range(path_at, size);
  if (!bytes) return Found(std::unexpect, kFault);
  return process.files().find(directory.node,
                              {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

Status path_open(HostCall call, std::uint32_t number, std::uint32_t /*lookup*/,
                 std::uint32_t path_at, std::uint32_t size, std::uint32_t flags,
                 std::uint64_t rights, std::uint64_t /*inheriting*/, std::uint32_t /*fdflags*/,
                 std::uint32_t opened_at) {
  const auto found = HANGAR_TRY(find_path(call, number, path_at, size));
  if (!found) {
    return found.error() == kNotFound && (flags & kCreate) != 0 ? kReadOnlyFileSystem
                                                                : found.error();
  }
  Process& process = process_of(call);
  const bool is_directory = process.files().node(*found).is_directory;
  if ((flags & kCreate) != 0 && (flags & kExclusive) != 0) return kExists;
  if ((flags & kOnlyDirectory) != 0 && !is_directory) return kNotDirectory;
  if ((flags & kTruncate) != 0 || (rights & kRightWrite) != 0) {
    return is_directory ? kIsDirectory : kReadOnlyFileSystem;
  }
  const GuestMemory memory = HANGAR_TRY(call.memory());
  if (!memory.has_range(opened_at, 4)) return kFault;
  const std::optional<std::uint32_t> opened =
      process.open({.kind = is_directory ? Kind::Directory : Kind::File, .node = *found});
  if (!opened) return kTooManyOpen;
  return status(memory.write_u32(opened_at, *opened));
}

Status path_filestat_get(HostCall call, std::uint32_t number, std::uint32_t /*lookup*/,
                         std::uint32_t path_at, std::uint32_t size, std::uint32_t address) {
  const auto found = HANGAR_TRY(find_path(call, number, path_at, size));
  if (!found) return found.error();
  return status(
      HANGAR_TRY(call.memory()).write(address, filestat_of(process_of(call).files(), *found)));
}

// There are no links.
Status path_readlink(HostCall call, std::uint32_t number, std::uint32_t path_at, std::uint32_t size,
                     std::uint32_t /*buffer*/, std::uint32_t /*buffer_size*/,
                     std::uint32_t /*used*/) {
  const auto found = HANGAR_TRY(find_path(call, number, path_at, size));
  return found ? kInvalid : found.error();
}

// The answer to calls that would change the file system.
Status refuse_change(HostCall call, std::uint32_t directory) {
  const Kind kind = process_of(call).descriptor(directory).kind;
  return kind == Kind::Directory ? kReadOnlyFileSystem : kBadDescriptor;
}

Status path_change(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t) {
  return refuse_change(call, number);
}
Status path_filestat_set_times(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t,
                               std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t) {
  return refuse_change(call, number);
}
Status path_link(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t, std::uint32_t,
                 std::uint32_t, std::uint32_t, std::uint32_t) {
  return refuse_change(call, number);
}
Status path_rename(HostCall call, std::uint32_t number, std::uint32_t, std::uint32_t, std::uint32_t,
                   std::uint32_t, std::uint32_t) {
  return refuse_change(call, number);
}
Status path_symlink(HostCall call, std::uint32_t, std::uint32_t, std::uint32_t number,
                    std::uint32_t, std::uint32_t) {
  return refuse_change(call, number);
}

Descriptors first_descriptors(bool has_files) {
  Descriptors descriptors;
  descriptors.reserve(4);
  for (const Kind kind : {Kind::Stdin, Kind::Stdout, Kind::Stderr})
    descriptors.push_back({.kind = kind});
  if (has_files) descriptors.push_back({.kind = Kind::Directory, .is_presented = true});
  return descriptors;
}

}  // namespace

Process::Process(ProcessState state)
    : arguments(std::move(state.arguments)),
      environment(std::move(state.environment)),
      files_(std::move(state.files)),
      descriptors_(state.descriptors.empty() ? first_descriptors(files_ != nullptr)
                                             : std::move(state.descriptors)) {}

ProcessState Process::take_state() {
  // Keeps one descriptor: a guest that has closed all of them must differ from one that has
  // not started.
  while (descriptors_.size() > 1 && descriptors_.back().kind == Kind::Closed)
    descriptors_.pop_back();
  if (descriptors_ == first_descriptors(files_ != nullptr)) descriptors_ = {};
  descriptors_.shrink_to_fit();
  return {.arguments = std::move(arguments),
          .environment = std::move(environment),
          .files = std::move(files_),
          .descriptors = std::move(descriptors_)};
}

Descriptor& Process::descriptor(std::uint32_t number) {
  if (number < descriptors_.size()) return descriptors_[number];
  closed_ = {};
  return closed_;
}

std::optional<std::uint32_t> Process::open(Descriptor descriptor) {
  const auto free = std::ranges::find(descriptors_, Kind::Closed, &Descriptor::kind);
  const auto number = static_cast<std::uint32_t>(free - descriptors_.begin());
  if (free != descriptors_.end()) {
    *free = descriptor;
  } else if (descriptors_.size() < limits::kGuestDescriptorsMax) {
    descriptors_.push_back(descriptor);
  } else {
    return std::nullopt;
  }
  return number;
}

std::optional<std::uint32_t> Process::idle_descriptor() {
  const auto found = std::ranges::find(descriptors_, Kind::Idle, &Descriptor::kind);
  if (found == descriptors_.end()) return open({.kind = Kind::Idle});
  return static_cast<std::uint32_t>(found - descriptors_.begin());
}

void add_descriptor_functions(HostFunctions& functions) {
  functions.add<&fd_advise>(kModule, "fd_advise");
  functions.add<&fd_allocate>(kModule, "fd_allocate");
  functions.add<&fd_close>(kModule, "fd_close");
  functions.add<&fd_sync>(kModule, "fd_datasync");
  functions.add<&fd_fdstat_get>(kModule, "fd_fdstat_get");
  functions.add<&fd_fdstat_set_flags>(kModule, "fd_fdstat_set_flags");
  functions.add<&fd_fdstat_set_rights>(kModule, "fd_fdstat_set_rights");
  functions.add<&fd_filestat_get>(kModule, "fd_filestat_get");
  functions.add<&fd_filestat_set_size>(kModule, "fd_filestat_set_size");
  functions.add<&fd_filestat_set_times>(kModule, "fd_filestat_set_times");
  functions.add<&fd_pread>(kModule, "fd_pread");
  functions.add<&fd_prestat_dir_name>(kModule, "fd_prestat_dir_name");
  functions.add<&fd_prestat_get>(kModule, "fd_prestat_get");
  functions.add<&fd_pwrite>(kModule, "fd_pwrite");
  functions.add<&fd_read>(kModule, "fd_read");
  functions.add<&fd_readdir>(kModule, "fd_readdir");
  functions.add<&fd_renumber>(kModule, "fd_renumber");
  functions.add<&fd_seek>(kModule, "fd_seek");
  functions.add<&fd_sync>(kModule, "fd_sync");
  functions.add<&fd_tell>(kModule, "fd_tell");
  functions.add<&fd_write>(kModule, "fd_write");
  functions.add<&path_change>(kModule, "path_create_directory");
  functions.add<&path_filestat_get>(kModule, "path_filestat_get");
  functions.add<&path_filestat_set_times>(kModule, "path_filestat_set_times");
  functions.add<&path_link>(kModule, "path_link");
  functions.add<&path_open>(kModule, "path_open");
  functions.add<&path_readlink>(kModule, "path_readlink");
  functions.add<&path_change>(kModule, "path_remove_directory");
  functions.add<&path_rename>(kModule, "path_rename");
  functions.add<&path_symlink>(kModule, "path_symlink");
  functions.add<&path_change>(kModule, "path_unlink_file");
}

}  // namespace hangar::wasm::wasi
