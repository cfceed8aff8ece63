#include "tracing/otlp.h"

#include "base/time.h"
#include "recorder/trace_ids.h"
#include "tracing/span.h"

#include <protozero/pbf_builder.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace hangar::tracing {

namespace {

// Numbers of fields: opentelemetry/proto/{collector/trace,trace,common,resource}/v1. The protocol
// is stable, so they do not change.
enum class Export : protozero::pbf_tag_type { ResourceSpans = 1 };
enum class ResourceSpans : protozero::pbf_tag_type { Resource = 1, ScopeSpans = 2 };
enum class Resource : protozero::pbf_tag_type { Attributes = 1 };
enum class ScopeSpans : protozero::pbf_tag_type { Scope = 1, Spans = 2 };
enum class Scope : protozero::pbf_tag_type { Name = 1, Version = 2 };
enum class SpanField : protozero::pbf_tag_type {
  TraceId = 1,
  SpanId = 2,
  ParentSpanId = 4,
  Name = 5,
  Kind = 6,
  StartTimeUnixNano = 7,
  EndTimeUnixNano = 8,
  Attributes = 9,
  Links = 13,
  Status = 15,
  Flags = 16,
};
enum class Link : protozero::pbf_tag_type { TraceId = 1, SpanId = 2 };
enum class Status : protozero::pbf_tag_type { Message = 2, Code = 3 };
constexpr std::int32_t kStatusError = 2;
enum class KeyValue : protozero::pbf_tag_type { Key = 1, Value = 2 };
enum class AnyValue : protozero::pbf_tag_type { String = 1, Bool = 2, Int = 3 };

template <class Field>
void add_attribute(protozero::pbf_builder<Field>& owner, Field field, std::string_view key,
                   const Span::Value& value) {
  protozero::pbf_builder<KeyValue> pair(owner, field);
  pair.add_string(KeyValue::Key, key.data(), key.size());
  protozero::pbf_builder<AnyValue> any(pair, KeyValue::Value);
  if (const auto* const text = std::get_if<std::string>(&value)) {
    any.add_string(AnyValue::String, *text);
  } else if (const auto* const number = std::get_if<std::int64_t>(&value)) {
    any.add_int64(AnyValue::Int, *number);
  } else {
    any.add_bool(AnyValue::Bool, std::get<bool>(value));
  }
}

template <class Field, class Id>
void add_id(protozero::pbf_builder<Field>& span, Field field, const Id& id) {
  span.add_bytes(field, reinterpret_cast<const char*>(id.data()), id.size());
}

std::uint64_t unix_nano(WallTime time) {
  const auto since =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  return since > 0 ? static_cast<std::uint64_t>(since) : 0;
}

void add_span(protozero::pbf_builder<ScopeSpans>& spans, const Span& one) {
  protozero::pbf_builder<SpanField> span(spans, ScopeSpans::Spans);
  add_id(span, SpanField::TraceId, one.trace);
  add_id(span, SpanField::SpanId, one.id);
  if (one.parent) add_id(span, SpanField::ParentSpanId, *one.parent);
  span.add_string(SpanField::Name, one.name);
  span.add_enum(SpanField::Kind, static_cast<std::int32_t>(one.kind));
  span.add_fixed64(SpanField::StartTimeUnixNano, unix_nano(one.start));
  span.add_fixed64(SpanField::EndTimeUnixNano, unix_nano(one.end));
  for (const auto& [key, value] : one.attributes)
    add_attribute(span, SpanField::Attributes, key, value);
  for (const recorder::TraceContext& linked : one.links) {
    protozero::pbf_builder<Link> link(span, SpanField::Links);
    add_id(link, Link::TraceId, linked.trace);
    add_id(link, Link::SpanId, linked.span);
  }
  if (one.is_error) {
    protozero::pbf_builder<Status> status(span, SpanField::Status);
    if (!one.error.empty()) status.add_string(Status::Message, one.error);
    status.add_enum(Status::Code, kStatusError);
  }
  span.add_fixed32(SpanField::Flags, one.is_sampled ? 1 : 0);
}

void add_all(std::string& bytes, std::span<const Span> spans, const Origin& origin) {
  protozero::pbf_builder<Export> request(bytes);
  protozero::pbf_builder<ResourceSpans> all(request, Export::ResourceSpans);
  {
    protozero::pbf_builder<Resource> resource(all, ResourceSpans::Resource);
    add_attribute(resource, Resource::Attributes, "service.name", std::string("hangar"));
    add_attribute(resource, Resource::Attributes, "service.version", origin.version);
    if (!origin.instance.empty()) {
      add_attribute(resource, Resource::Attributes, "service.instance.id", origin.instance);
    }
  }
  protozero::pbf_builder<ScopeSpans> scoped(all, ResourceSpans::ScopeSpans);
  {
    protozero::pbf_builder<Scope> scope(scoped, ScopeSpans::Scope);
    scope.add_string(Scope::Name, "hangar");
    scope.add_string(Scope::Version, origin.version);
  }
  for (const Span& span : spans)
    add_span(scoped, span);
}

}  // namespace

std::string otlp_of(std::span<const Span> spans, const Origin& origin) {
  std::string bytes;
  add_all(bytes, spans, origin);
  return bytes;
}

}  // namespace hangar::tracing
