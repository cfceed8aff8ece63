#include "signatures/prebuilt_directory.h"

#include "base/digest.h"
#include "base/result.h"
#include "budget/accounts.h"
#include "io/descriptor.h"
#include "io/file.h"
#include "schematics/keys.h"
#include "schematics/signature.h"
#include "wasm/code_target.h"
#include "wasm/digest.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace hangar::signatures {

namespace {

// The SHA-256 of what was copied. Others may make `from` grow meanwhile.
Result<std::string> copy(const std::filesystem::path& from, const std::filesystem::path& to,
                         std::uint64_t bytes_max) {
  // Opening a pipe would wait for its writer.
  std::error_code error;
  if (std::filesystem::exists(from, error) && !std::filesystem::is_regular_file(from, error)) {
    return fail(ErrorKind::Denied, fmt::format("{} is not a file", from.string()));
  }
  io::FilePieces pieces = HANGAR_TRY(io::FilePieces::open(from));
  const io::Descriptor out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (out.value() < 0) {
    return fail(ErrorKind::Unavailable,
                fmt::format("create {}: {}", to.string(), std::generic_category().message(errno)));
  }
  Sha256 hash;
  std::uint64_t total = 0;
  while (true) {
    const std::string_view piece = HANGAR_TRY(pieces.next());
    if (piece.empty()) break;
    total += piece.size();
    if (total > bytes_max) {
      return fail(ErrorKind::LimitExceeded,
                  fmt::format("{} is larger than {}", from.string(), budget::size_text(bytes_max)));
    }
    hash.add(piece);
    if (const int code = io::write_all(out.value(), piece); code != 0) {
      return fail(ErrorKind::Unavailable,
                  fmt::format("write native code: {}", std::generic_category().message(code)));
    }
  }
  return to_hex(hash.finish());
}

}  // namespace

PrebuiltFiles PrebuiltFiles::of(const std::filesystem::path& directory, const wasm::Digest& module,
                                const wasm::CodeTarget& target) {
  const std::string name = fmt::format("{}-{}", module.to_hex(), target.id());
  return {.code = directory / (name + ".cwasm"), .signature = directory / (name + ".json")};
}

Result<std::string> PrebuiltDirectory::copy_to(const std::filesystem::path& output,
                                               const wasm::Digest& module,
                                               std::uint64_t bytes_max) const {
  const wasm::CodeTarget exact = wasm::CodeTarget::this_machine();
  Result<std::string> copied = copy_for(exact, output, module, bytes_max);
  if (!copied && copied.error().kind() == ErrorKind::NotFound) {
    copied = copy_for(wasm::CodeTarget::any_machine(), output, module, bytes_max);
  }
  if (copied || copied.error().kind() != ErrorKind::NotFound) return copied;
  const std::filesystem::path file =
      PrebuiltFiles::of(directory_, module, wasm::CodeTarget::any_machine()).code;
  log_.info("no builder has compiled a module",
            {{"file", file.string()}, {"engine", exact.engine}, {"processor", exact.processor}});
  return fail(ErrorKind::NotFound,
              fmt::format("there is no native code of this module ({}). Make it with hangar build "
                          "code",
                          file.filename().string()));
}

Result<std::string> PrebuiltDirectory::copy_for(const wasm::CodeTarget& target,
                                                const std::filesystem::path& output,
                                                const wasm::Digest& module,
                                                std::uint64_t bytes_max) const {
  const PrebuiltFiles files = PrebuiltFiles::of(directory_, module, target);
  // The signature first: nothing is copied for code that nobody has signed.
  const Result<std::string> signature =
      io::read_file(files.signature, schematics::kSignatureBytesMax);
  if (!signature && signature.error().kind() == ErrorKind::NotFound)
    return std::unexpected(signature.error());
  if (!signature) return refuse(files.signature, signature.error(), "its signature cannot be read");
  const Result<std::string> code_sha256 = copy(files.code, output, bytes_max);
  if (!code_sha256 && code_sha256.error().kind() == ErrorKind::NotFound)
    return std::unexpected(code_sha256.error());
  if (!code_sha256) {
    const bool is_large = code_sha256.error().kind() == ErrorKind::LimitExceeded;
    return refuse(files.code, code_sha256.error(),
                  is_large ? "it is too large" : "it cannot be copied");
  }
  Result<std::string> verified = schematics::verify_code(*signature,
                                                         {.module_sha256 = module.to_hex(),
                                                          .engine = target.engine,
                                                          .processor = target.processor,
                                                          .code_sha256 = *code_sha256},
                                                         keys_);
  if (verified) {
    log_.info("native code of a builder", {{"file", files.code.string()}});
    return verified;
  }
  std::error_code ignored;
  std::filesystem::remove(output, ignored);
  return refuse(files.signature, Error(ErrorKind::Denied, verified.error().message()),
                verified.error().message());
}

std::unexpected<Error> PrebuiltDirectory::refuse(const std::filesystem::path& file,
                                                 const Error& why, std::string_view told) const {
  log_.error("native code is refused", {{"file", file.string()}, {"error", why.message()}});
  return fail(why.kind(), fmt::format("the native code of a builder is refused: {}", told));
}

}  // namespace hangar::signatures
