#include "console/page_files.h"

#include <cstddef>

extern "C" {
// Defined by cmake/ConsolePage.cmake.
extern const char hangar_console_html_begin[];
extern const char hangar_console_html_end[];
extern const char hangar_console_js_begin[];
extern const char hangar_console_js_end[];
extern const char hangar_console_css_begin[];
extern const char hangar_console_css_end[];
extern const char hangar_console_icon_begin[];
extern const char hangar_console_icon_end[];
}

namespace hangar::console {

namespace {

std::string_view bytes_between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::optional<PageFile> page_file(std::string_view path) {
  if (path == "/") {
    return PageFile{.content_type = "text/html; charset=utf-8",
                    .gzipped = bytes_between(hangar_console_html_begin, hangar_console_html_end)};
  }
  if (path == "/console.js") {
    return PageFile{.content_type = "text/javascript; charset=utf-8",
                    .gzipped = bytes_between(hangar_console_js_begin, hangar_console_js_end)};
  }
  if (path == "/console.css") {
    return PageFile{.content_type = "text/css; charset=utf-8",
                    .gzipped = bytes_between(hangar_console_css_begin, hangar_console_css_end)};
  }
  if (path == "/icon.svg") {
    return PageFile{.content_type = "image/svg+xml",
                    .gzipped = bytes_between(hangar_console_icon_begin, hangar_console_icon_end)};
  }
  return std::nullopt;
}

}  // namespace hangar::console
