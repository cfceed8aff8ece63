#include "kube/urls.h"

#include "base/result.h"
#include "kube/internal/percent.h"
#include "kube/object.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace hangar::kube {

namespace {

// The check of client-go's IsValidPathSegmentName.
Result<std::string> segment(std::string_view text, std::string_view what) {
  if (text.empty()) return fail(ErrorKind::InvalidInput, fmt::format("{} is missing", what));
  if (text == "." || text == ".." || text.find_first_of("/%") != std::string_view::npos) {
    return fail(
        ErrorKind::InvalidInput,
        fmt::format("{} \"{}\" must not be '.' or '..' nor contain '/' or '%'", what, text));
  }
  return internal::percent_encode(text);
}

}  // namespace

Result<std::string> collection_path(const Resource& resource, std::string_view namespace_) {
  std::string path = "/api";
  if (!resource.group.empty()) path += "s/" + HANGAR_TRY(segment(resource.group, "group"));
  path += "/" + HANGAR_TRY(segment(resource.version, "version"));
  if (resource.namespaced && !namespace_.empty()) {
    path += "/namespaces/" + HANGAR_TRY(segment(namespace_, "namespace"));
  }
  path += "/" + HANGAR_TRY(segment(resource.plural, "resource"));
  return path;
}

Result<std::string> object_path(const Resource& resource, const ObjectKey& key,
                                std::string_view subresource) {
  if (resource.namespaced && key.namespace_.empty()) {
    return fail(ErrorKind::InvalidInput,
                fmt::format("{} \"{}\" needs a namespace", resource.plural, key.name));
  }
  std::string path = HANGAR_TRY(collection_path(resource, key.namespace_));
  path += "/" + HANGAR_TRY(segment(key.name, "name"));
  if (!subresource.empty()) path += "/" + HANGAR_TRY(segment(subresource, "subresource"));
  return path;
}

Query& Query::add(std::string_view name, std::string_view value) {
  if (value.empty()) return *this;
  text_ += text_.empty() ? '?' : '&';
  text_ += name;
  text_ += '=';
  text_ += internal::percent_encode(value);
  return *this;
}

}  // namespace hangar::kube
