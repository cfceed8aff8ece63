// Any text as a node's configuration: others' text is kept byte by byte, keeps its meaning, and is
// restored when our part goes; also when others write after our part meanwhile.
#include "node_install/config_edit.h"
#include "node_install/toml.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace hangar::node_install;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

const std::vector<Handler> kFirst = {
    {.name = "wasmtime", .program = "/opt/hangar-node/bin/containerd-shim-wasmtime-v1"}};
const std::vector<Handler> kSecond = {{.name = "spin", .program = "/opt/hangar-node/bin/spin"},
                                      {.name = "wasmedge",
                                       .kind = Handler::Kind::Oci,
                                       .program = "/opt/hangar-node/bin/crun-wasmedge"}};

bool has_marker(std::string_view text) {
  return text.contains("# hangar-node:");
}

void edit(std::string_view text, Dialect dialect) {
  constexpr std::string_view kPlugin = "io.containerd.grpc.v1.cri";
  const auto put = put_part(text, "", render_handlers(kPlugin, kFirst, false), dialect);
  if (!put) return;
  if (!has_marker(text)) {
    require(put->starts_with(text));
    require(take_part(*put, dialect).value() == std::optional(std::string(text)));
  }
  require(put_part(*put, "", render_handlers(kPlugin, kFirst, false), dialect).value() == *put);

  // Another version of our part, which is then removed.
  const auto other = put_part(*put, "", render_handlers(kPlugin, kSecond, true), dialect);
  if (other && !has_marker(text)) {
    require(take_part(*other, dialect).value() == std::optional(std::string(text)));
    require(!read_part(*other).value().value().contains("wasmtime"));
  }

  const auto before = Toml::parse(text);
  const auto after = Toml::parse(*put);
  if (before && after && !has_marker(text)) {
    for (const auto& [path, value] : before->leaves())
      require(after->leaves().contains(path) && after->leaves().at(path) == value);
  }

  // Others write after our part: theirs stays, ours goes.
  const std::string more = *put + "[theirs-alone]\nkey = 1\n";
  const auto left = take_part(more, dialect);
  if (left && !has_marker(text))
    require((*left)->starts_with(text) && (*left)->ends_with("key = 1\n"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  edit(text, Dialect::Toml);
  edit(text, Dialect::GoTemplate);
  // A file as we left it, then changed in any way: an error or a removal, but never a crash.
  if (const auto left = take_part(text, Dialect::Toml); left && *left) {
    if (const auto again = take_part(**left, Dialect::Toml)) require(*again == *left);
  }
  return 0;
}
