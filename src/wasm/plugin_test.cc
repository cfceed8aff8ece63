#include "wasm/plugin.h"

#include "base/result.h"
#include "wasm/module_header.h"
#include "wasm/test_guests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangar::wasm {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string guest(const std::string& name) {
  return *GuestRig::bytes_of(name);
}

// A module as bytes; all lengths are below 128.
std::string with_section(std::string module, std::uint8_t id, std::string_view contents) {
  module += static_cast<char>(id);
  module += static_cast<char>(contents.size());
  module += contents;
  return module;
}
std::string empty_module() {
  return {"\0asm\1\0\0\0", 8};
}
// A plugin that names the namespace from which its users import.
std::string named_plugin(const std::string& name) {
  return with_section(guest("plugin"), 0, "\x10import_namespace" + name);
}

std::string refusal(std::string_view module, std::string_view plugin) {
  const Result<std::string> linked = link_plugin(bytes_of(module), bytes_of(plugin));
  if (linked) return "linked";
  EXPECT_EQ(linked.error().kind(), ErrorKind::InvalidInput);
  return linked.error().message();
}

// The compiler's result for the two together.
std::string compiled(const std::string& module, const std::string& plugin) {
  GuestRig rig;
  const Result<std::string> both = carry_plugin(bytes_of(module), bytes_of(plugin));
  if (!both) return both.error().message();
  const auto loaded = rig.try_load(std::make_shared<const std::string>(*both));
  return loaded ? "compiled" : loaded.error().message();
}

TEST(Plugin, IsCarriedAsItIs) {
  const std::string module = guest("plugged");
  const std::string plugin = guest("plugin");

  const Result<std::string> both = carry_plugin(bytes_of(module), bytes_of(plugin));

  ASSERT_TRUE(both.has_value()) << both.error().message();
  EXPECT_TRUE(both->starts_with(module));
  const Result<ModuleHeader> header = read_module_header(bytes_of(*both));
  ASSERT_TRUE(header.has_value()) << header.error().message();
  const auto carried = carried_plugin(*header);
  ASSERT_TRUE(carried.has_value());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(carried->data()), carried->size()), plugin);
  EXPECT_EQ(missing_plugin(*header), std::nullopt);
  EXPECT_EQ(missing_plugin(read_module_header(bytes_of(module)).value()), "javy-default-plugin-v4");
}

TEST(Plugin, IsOneModuleWithItsUser) {
  const std::string module = guest("plugged");
  const std::string plugin = guest("plugin");

  const Result<std::string> linked = link_plugin(bytes_of(module), bytes_of(plugin));

  ASSERT_TRUE(linked.has_value()) << linked.error().message();
  const ModuleHeader header = read_module_header(bytes_of(*linked)).value();
  const ModuleHeader of_plugin = read_module_header(bytes_of(plugin)).value();
  EXPECT_EQ(header.imports, of_plugin.imports);
  EXPECT_EQ(header.memory_bytes_min, of_plugin.memory_bytes_min);
  EXPECT_EQ(header.function_count,
            of_plugin.function_count + read_module_header(bytes_of(module))->function_count);
  std::vector<std::string> names;
  for (const Export& exported : header.exports)
    names.push_back(exported.name);
  EXPECT_EQ(names, (std::vector<std::string>{"_start", "function", "memory"}));
}

TEST(Plugin, MayBeOfAnyVersion) {
  EXPECT_EQ(compiled(guest("plugged"), guest("plugin")), "compiled");
  EXPECT_EQ(compiled(guest("plugged"), named_plugin("javy-default-plugin-v4")), "compiled");
  EXPECT_EQ(compiled(guest("plugged_v2"), guest("plugin")), "compiled");
  EXPECT_EQ(compiled(guest("plugged_all"), guest("plugin")), "compiled");
}

TEST(Plugin, StartsBeforeItsUser) {
  // Start functions and _initialize of the plugin, and a start function of the module.
  const std::string plugin = with_section(
      with_section(with_section(with_section(with_section(empty_module(), 1, {"\1\x60\0\0", 4}), 3,
                                             {"\2\0\0", 3}),
                                7, std::string("\1\x0b_initialize\0\1", 15)),
                   8, {"\0", 1}),
      10, {"\2\2\0\x0b\2\0\x0b", 7});
  const std::string module = with_section(
      with_section(with_section(with_section(empty_module(), 1, {"\1\x60\0\0", 4}), 3, {"\1\0", 2}),
                   8, {"\0", 1}),
      10, {"\1\2\0\x0b", 4});

  const Result<std::string> linked = link_plugin(bytes_of(module), bytes_of(plugin));

  ASSERT_TRUE(linked.has_value()) << linked.error().message();
  EXPECT_EQ(read_module_header(bytes_of(*linked))->function_count, 4U) << "one that calls three";
  EXPECT_THAT(*linked, HasSubstr(std::string("\x08\0\x10\0\x10\1\x10\2\x0b", 9)));
  EXPECT_EQ(compiled(module, plugin), "compiled");
}

TEST(Plugin, ThatDoesNotFitIsNamedWithWhatItLacks) {
  const std::string plugin = guest("plugin");
  EXPECT_THAT(refusal(guest("plugged"), guest("machine_named")),
              HasSubstr("imports the function javy-default-plugin-v4.cabi_realloc(i32, i32, i32, "
                        "i32) -> (i32), which its plugin does not export"));
  EXPECT_THAT(refusal(guest("plugged"), named_plugin("javy-default-plugin-v3")),
              HasSubstr("wants the plugin javy-default-plugin-v4, and was given "
                        "javy-default-plugin-v3"));
  // An import from "p": name, kind and type.
  const auto importing = [](std::string_view name, std::string_view what) {
    std::string contents = "\1\1p";
    contents += static_cast<char>(name.size());
    contents += name;
    contents += what;
    return with_section(with_section(empty_module(), 1, {"\1\x60\0\0", 4}), 2, contents);
  };
  EXPECT_THAT(refusal(importing("invoke", {"\0\0", 2}), plugin),
              HasSubstr("imports p.invoke as a function() -> (), and its plugin exports a "
                        "function(i32, i32, i32, i32, i32) -> ()"));
  EXPECT_THAT(refusal(importing("memory", {"\0\0", 2}), plugin),
              HasSubstr("imports p.memory as a function() -> (), and its plugin exports a memory"));
  EXPECT_THAT(refusal(importing("other", {"\2\0\0", 3}), plugin),
              HasSubstr("imports the memory p.other, which its plugin does not export"));
  EXPECT_THAT(refusal(importing("memory", {"\2\0\3", 3}), plugin),
              HasSubstr("imports a memory of 196608 bytes, and its plugin's has 131072"));
  EXPECT_THAT(refusal(importing("g", {"\3\x7f\0", 3}), plugin),
              HasSubstr("only functions and the memory of a plugin are for others"));
  EXPECT_EQ(refusal(importing("memory", {"\2\0\2", 3}), plugin), "linked");
  EXPECT_THAT(refusal(guest("plugged"), guest("plugged_v2")),
              HasSubstr("its plugin imports a memory"));
  EXPECT_THAT(refusal(guest("plugged"), "text"),
              HasSubstr("its plugin: is not a WebAssembly module"));
}

TEST(Plugin, TakesNoModuleThatHasMoreThanJavysHave) {
  const std::string plugin = guest("plugin");
  EXPECT_THAT(refusal(with_section(empty_module(), 5, {"\1\0\1", 3}), plugin),
              HasSubstr("has a memory of its own"));
  EXPECT_THAT(refusal(with_section(empty_module(), 4, {"\1\x70\0\1", 4}), plugin),
              HasSubstr("has a table of its own"));
  EXPECT_THAT(refusal(guest("machine_named"), plugin), HasSubstr("has a memory of its own"));
  EXPECT_THAT(refusal(guest("two_namespaces"), plugin), HasSubstr("imports from a and from b"));
}

TEST(Plugin, MakesNothingValidThatIsNotValidByItself) {
  const std::string type_and_function =
      with_section(with_section(empty_module(), 1, {"\1\x60\0\0", 4}), 3, {"\1\0", 2});
  // If linked to a plugin, there would be a memory and a function 5.
  const std::string stores =
      with_section(type_and_function, 10, {"\1\x09\0\x41\0\x41\0\x36\0\0\x0b", 11});
  EXPECT_EQ(refusal(stores, guest("plugin")), "linked");
  EXPECT_THAT(compiled(stores, guest("plugin")), HasSubstr("memory"));
  const std::string calls = with_section(type_and_function, 10, {"\1\4\0\x10\5\x0b", 6});
  EXPECT_THAT(refusal(calls, guest("plugin")), HasSubstr("names a function 5"));
  EXPECT_THAT(compiled(calls, guest("plugin")), HasSubstr("function"));
  const std::string broken_plugin = with_section(type_and_function, 10, {"\1\3\0\x6a\x0b", 5});
  EXPECT_THAT(compiled(guest("plugged"), broken_plugin), HasSubstr("its plugin: invalid module"));
}

// Cut or changed bytes give a result or an error, and a result can always be read.
TEST(Plugin, BearsAnyBytes) {
  const std::string module = guest("plugged_all");
  const std::string plugin = guest("plugin");
  const auto check = [](std::string_view changed_module, std::string_view changed_plugin) {
    const Result<std::string> linked =
        link_plugin(bytes_of(changed_module), bytes_of(changed_plugin));
    if (linked) {
      EXPECT_TRUE(read_module_header(bytes_of(*linked)).has_value());
    } else {
      EXPECT_FALSE(linked.error().message().empty());
    }
  };
  for (const auto& [text, is_module] : {std::pair(module, true), std::pair(plugin, false)}) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      std::string cut = text.substr(0, at);
      check(is_module ? cut : module, is_module ? plugin : cut);
      for (const unsigned bit : {0U, 3U, 7U}) {
        std::string changed = text;
        changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ (1U << bit));
        check(is_module ? changed : module, is_module ? plugin : changed);
      }
    }
  }
}

}  // namespace
}  // namespace hangar::wasm
