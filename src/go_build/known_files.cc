#include "go_build/known_files.h"

#include "base/digest.h"
#include "base/result.h"
#include "go_build/text_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hangar::go_build {

namespace {

constexpr std::string_view kClientGo = "k8s.io/client-go";
constexpr std::string_view kWorkqueue = "util/workqueue";

constexpr std::string_view kNoLoop =
    "\t\t// hangar: no loop that wakes the program twice a second.";

constexpr std::array kQueue = {
    KnownVersion{.releases = "0.32 and 0.33",
                 .sha256 = "71ccb429dc6582200de8ded74bcc6967ebb666b96c8f5893d31e0fb2a1c29cfb",
                 .edit = {.line = "\t\tgo t.updateUnfinishedWorkLoop()", .replacement = kNoLoop}},
    KnownVersion{.releases = "0.34",
                 .sha256 = "2b6b0d42c8edb6fc1e9efa5bb3925fcd291ce54e2900c0159053bf5d18446648",
                 .edit = {.line = "\t\tgo t.updateUnfinishedWorkLoop()", .replacement = kNoLoop}},
    KnownVersion{
        .releases = "0.35 to 0.37",
        .sha256 = "9e71bf364d9aa9e8a4d8689183585d9dbb083df9c7ee1125e57586b9398cec7a",
        .edit = {.line = "\t\tt.wg.Go(t.updateUnfinishedWorkLoop)", .replacement = kNoLoop}},
};

constexpr std::array kDelayingQueue = {
    KnownVersion{.releases = "0.32",
                 .sha256 = "02049bc3bb780a83160264dd4d756bdba0fbef2cfed743f50df81da299655bed",
                 .edit = {.line = "\tgo ret.waitingLoop()",
                          .replacement = "\tret.heartbeat.Stop() // hangar: it wakes the program.\n"
                                         "\tgo ret.waitingLoop()"}},
    KnownVersion{.releases = "0.33 to 0.37",
                 .sha256 = "6a69f92137eb880d6b335a5a1aad1fb98f38cfe14a9aeb9528c5b2accfe8fcb3",
                 .edit = {.line = "\tgo ret.waitingLoop(logger)",
                          .replacement = "\tret.heartbeat.Stop() // hangar: it wakes the program.\n"
                                         "\tgo ret.waitingLoop(logger)"}},
};

// In New, before the options are used.
constexpr Edit kManagerEdit = {.line = "\t// Set default values for options fields",
                               .replacement =
                                   "\toptions = hangarOptions(options)\n"
                                   "\t// Set default values for options fields"};
constexpr std::array kManager = {
    KnownVersion{.releases = "0.20",
                 .sha256 = "ab8c9360d0ec673d372b89ad50658e7fc576a0a691e134499463bc8c197d420e",
                 .edit = kManagerEdit},
    KnownVersion{.releases = "0.21",
                 .sha256 = "b42379b89237798fa16347a81e2a367a8baabcc70426ae1e68b84f51222b72ce",
                 .edit = kManagerEdit},
    KnownVersion{.releases = "0.22",
                 .sha256 = "fafe08596029df147de9bee4019c153deae7218f36279944d48e3633ccc3e85d",
                 .edit = kManagerEdit},
    KnownVersion{.releases = "0.23",
                 .sha256 = "7db64f0c898589ea59a02be6817f19951271d7b98bf80d2a29411b47e945e185",
                 .edit = kManagerEdit},
    KnownVersion{.releases = "0.24 and 0.25",
                 .sha256 = "8e357a4c31caf484624394a56b6a0bc54749ea2c4c527abc6bd29492d269378d",
                 .edit = kManagerEdit},
};

// Packages that operators link (external-secrets 0.16.2 has all of them) and that have no variant
// for the platform of guests, although an existing variant would work: the one for platforms
// without terminals and routes, or the one for Unix with the names of package syscall.
constexpr std::array kTerminal = {
    KnownVersion{.releases = "0.15 and 0.16",
                 .sha256 = "588465e5e4d62a40d7ff6f9911149bb95f17d07a5079fd6935647508493e4146",
                 .edit = {.line = "//go:build js || plan9 || aix",
                          .replacement = "//go:build js || plan9 || aix || wasip1"}},
};
constexpr std::array kRoutes = {
    KnownVersion{.releases = "1.0.7",
                 .sha256 = "ac9172bebcdc7827ef7e87ebe1e4a6ff1202863ea06a79cb04f0d98875eff061",
                 .edit = {.line = "//go:build nacl || plan9 || js",
                          .replacement = "//go:build nacl || plan9 || js || wasip1"}},
};
constexpr std::array kLogTerminal = {
    KnownVersion{.releases = "1.9.3",
                 .sha256 = "7a9c6f07aff2ab6bafc003ce9ec2619a383ec8bbbdfc80fa38697a29ee149fce",
                 .edit = {.line = "// +build !appengine,!js,!windows,!nacl,!plan9",
                          .replacement = "// +build !appengine,!js,!windows,!nacl,!plan9,!wasip1"}},
};
constexpr std::array kLogNoTerminal = {
    KnownVersion{.releases = "1.9.3",
                 .sha256 = "3dc42eb54664ce50d5e3fbfd0766905158dabb671354ef8312bf4f3c73d5039c",
                 .edit = {.line = "// +build js nacl plan9",
                          .replacement = "// +build js nacl plan9 wasip1"}},
};
constexpr std::array kTeaInput = {
    KnownVersion{.releases = "1.3.4",
                 .sha256 = "1206fdac0fc2d6940ec957f4c530638df2b6611de4a123cfdb99375bd7545f3f",
                 .edit = {.line = "//go:build darwin || dragonfly || freebsd || linux || "
                                  "netbsd || openbsd || solaris || aix || zos",
                          .replacement = "//go:build darwin || dragonfly || freebsd || linux || "
                                         "netbsd || openbsd || solaris || aix || zos || wasip1"}},
};
constexpr std::array kTeaSignals = {
    KnownVersion{.releases = "1.3.4",
                 .sha256 = "3954426922ae0a399a29769ed8e85ace7c451f33bb835b7009336ed086e65bf3",
                 .edit = {.line = "//go:build darwin || dragonfly || freebsd || linux || "
                                  "netbsd || openbsd || solaris || aix || zos",
                          .replacement = "//go:build darwin || dragonfly || freebsd || linux || "
                                         "netbsd || openbsd || solaris || aix || zos || wasip1"}},
};
constexpr std::array kProgressBar = {
    KnownVersion{
        .releases = "1.0.29",
        .sha256 = "df04c173e35f60719ed3e792cc6d8f54b7159775b5d7cc4a536733a659339a68",
        .edit = {.line = "// +build appengine js", .replacement = "// +build appengine js wasip1"}},
};
constexpr std::array kClipboard = {
    KnownVersion{.releases = "0.1.4",
                 .sha256 = "c3c123edf5697462020b0c4fb8613657f36824d3bbb7f49d307de20b12f99f4a",
                 .edit = {.line = "// +build freebsd linux netbsd openbsd solaris dragonfly",
                          .replacement = "// +build freebsd linux netbsd openbsd solaris dragonfly "
                                         "wasip1"}},
};
constexpr std::array kGit = {
    KnownVersion{.releases = "5.16.0",
                 .sha256 = "57faf32c4aff6f751c64d5996a66fd6f4886d53636b49eda0fbb0e5c60dc01dd",
                 .edit = {.line = "var fillSystemInfo func(e *index.Entry, sys interface{})",
                          .replacement = "var fillSystemInfo = func(*index.Entry, interface{}) "
                                         "{}\n\nfunc isSymlinkWindowsNonAdmin(error) bool { return "
                                         "false }"}},
};
constexpr std::array kPulumiChildren = {
    KnownVersion{.releases = "3.163",
                 .sha256 = "46d9f49d45428e9238ce5229b4a8ec01a5ebfd02af99da60a677413a6b525761",
                 .edit = {.line = "\tcmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}",
                          .replacement = "\tcmd.SysProcAttr = &syscall.SysProcAttr{}"}},
};
constexpr std::array kPulumiSignals = {
    KnownVersion{
        .releases = "3.163",
        .sha256 = "ba4a44f18e14b76a26f82186876202eeee28c8c9bacfadbdd4e68b9cb317c2b8",
        .edit = {.line = "\t\"golang.org/x/sys/unix\"", .replacement = "\tunix \"syscall\""}},
};
constexpr std::string_view kNoPlatform = "it does not compile for guests otherwise";

constexpr std::array kChangedFiles = {
    ChangedFile{.module = kClientGo,
                .directory = kWorkqueue,
                .name = "queue.go",
                .why = "metrics of queues would wake the program twice a second",
                .versions = kQueue},
    ChangedFile{.module = kClientGo,
                .directory = kWorkqueue,
                .name = "delaying_queue.go",
                .why = "the heartbeat of queues would wake the program every ten seconds",
                .versions = kDelayingQueue},
    ChangedFile{.module = kControllerRuntime,
                .directory = kManagerDirectory,
                .name = "manager.go",
                .why = "leader election is the host's, and so are the listeners",
                .versions = kManager},
    ChangedFile{.module = "github.com/muesli/termenv",
                .directory = "",
                .name = "termenv_other.go",
                .why = kNoPlatform,
                .versions = kTerminal,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/hashicorp/go-sockaddr",
                .directory = "",
                .name = "route_info_default.go",
                .why = kNoPlatform,
                .versions = kRoutes,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/sirupsen/logrus",
                .directory = "",
                .name = "terminal_check_notappengine.go",
                .why = kNoPlatform,
                .versions = kLogTerminal,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/sirupsen/logrus",
                .directory = "",
                .name = "terminal_check_no_terminal.go",
                .why = kNoPlatform,
                .versions = kLogNoTerminal,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/charmbracelet/bubbletea",
                .directory = "",
                .name = "tty_unix.go",
                .why = kNoPlatform,
                .versions = kTeaInput,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/charmbracelet/bubbletea",
                .directory = "",
                .name = "signals_unix.go",
                .why = kNoPlatform,
                .versions = kTeaSignals,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/cheggaaa/pb",
                .directory = "",
                .name = "pb_appengine.go",
                .why = kNoPlatform,
                .versions = kProgressBar,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/atotto/clipboard",
                .directory = "",
                .name = "clipboard_unix.go",
                .why = kNoPlatform,
                .versions = kClipboard,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/go-git/go-git/v5",
                .directory = "",
                .name = "worktree.go",
                .why = kNoPlatform,
                .versions = kGit,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/pulumi/pulumi/sdk/v3",
                .directory = "go/common/util/cmdutil",
                .name = "child_unix.go",
                .why = kNoPlatform,
                .versions = kPulumiChildren,
                .unknown = Unknown::LeftAlone},
    ChangedFile{.module = "github.com/pulumi/pulumi/sdk/v3",
                .directory = "go/common/util/cmdutil",
                .name = "term_unix.go",
                .why = kNoPlatform,
                .versions = kPulumiSignals,
                .unknown = Unknown::LeftAlone},
};

constexpr std::array kStandardFiles = {
    StandardFile{.path = "os/signal/signal_unix.go",
                 .why = "waiting for signals, which a guest never gets, would keep it busy",
                 .edit = {.line = "\twatchSignalLoop = loop",
                          .replacement = "\t_ = loop // hangar: there are no signals in a guest."},
                 .appended = ""},
    StandardFile{.path = "net/http/roundtrip.go",
                 .why = "requests are the host's to send",
                 .edit = {.line = "\treturn t.roundTrip(req)",
                          .replacement = "\tif hangarRoundTrip != nil {\n"
                                         "\t\treturn hangarRoundTrip(t, req, t.roundTrip)\n"
                                         "\t}\n"
                                         "\treturn t.roundTrip(req)"},
                 .appended =
                     "\n"
                     "// hangarRoundTrip is set by package hangar.dev/sdk/go/hangar/guest.\n"
                     "//\n"
                     "//go:linkname hangarRoundTrip\n"
                     "var hangarRoundTrip func(of *Transport, request *Request, next "
                     "func(*Request) (*Response, error)) "
                     "(*Response, error)\n"},
};

Change change_of(Edited edited, std::string file, std::string_view why, const Edit& edit) {
  return {.file = std::move(file),
          .line_number = edited.line_number,
          .why = std::string(why),
          .before = std::string(edit.line),
          .after = std::string(edit.replacement),
          .text = std::move(edited.text)};
}

}  // namespace

std::string ChangedFile::import_path() const {
  return directory.empty() ? std::string(module) : fmt::format("{}/{}", module, directory);
}

std::span<const ChangedFile> changed_files() {
  return kChangedFiles;
}

std::string_view known_releases() {
  return "client-go 0.32 to 0.37 and controller-runtime 0.20 to 0.25";
}

Result<Change> change(const ChangedFile& file, std::string_view version, std::string_view text) {
  std::string name = fmt::format("{} {} {}{}{}", file.module, version, file.directory,
                                 file.directory.empty() ? "" : "/", file.name);
  const std::string digest = sha256_hex(text);
  const auto known = std::ranges::find(file.versions, digest, &KnownVersion::sha256);
  if (known == file.versions.end()) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("{} is of a version that is not known here ({}), so it cannot be made fit for "
                    "a guest. Known are {}: require one of those, or a hangar that knows yours, or "
                    "say hangar.GetConfigOrDie() in main and use go build "
                    "(docs/operating/go-operators.md)",
                    name, digest.substr(0, 12), known_releases()));
  }
  Edited edited = HANGAR_TRY(apply(known->edit, text));
  return change_of(std::move(edited), std::move(name), file.why, known->edit);
}

std::span<const StandardFile> standard_files() {
  return kStandardFiles;
}

Result<Change> change(const StandardFile& file, std::string_view version, std::string_view text) {
  Result<Edited> edited = apply(file.edit, text);
  if (!edited) {
    return std::unexpected(std::move(edited).error().in(
        fmt::format("{}: {} is not as it is in Go 1.26", version, file.path)));
  }
  edited->text += file.appended;
  return change_of(*std::move(edited), fmt::format("{} {}", version, file.path), file.why,
                   file.edit);
}

}  // namespace hangar::go_build
