#include "host/tracing.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/result.h"
#include "host/config.h"
#include "host/version.h"
#include "http/client.h"
#include "io/loop.h"
#include "recorder/recorder.h"
#include "tracing/span.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hangar::host {

namespace {

// Guests must not be able to compute ids of their traces.
std::string new_key() {
  const RandomKey key = random_key();
  return {key.begin(), key.end()};
}

Result<double> parse_ratio(std::string_view text) {
  double ratio = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ratio);
  const bool is_ratio =
      error == std::errc() && end == text.data() + text.size() && ratio >= 0 && ratio <= 1;
  if (!is_ratio) {
    return fail(ErrorKind::InvalidInput, fmt::format("\"{}\" is not a number from 0 to 1", text));
  }
  return ratio;
}

}  // namespace

std::vector<Setting> tracing_settings() {
  return {
      {.name = "traces-url",
       .help = "URL of an OpenTelemetry collector that takes OTLP over HTTP, such as "
               "http://collector.monitoring:4318 (default: no traces)",
       .type = "URL",
       .part = Part::Traces,
       .set = [](Config& config, std::string_view text) -> Result<> {
         std::string_view url = text;
         while (url.ends_with('/'))
           url.remove_suffix(1);
         const bool is_url = url.starts_with("http://") || url.starts_with("https://");
         if (!url.empty() && (!is_url || url.find_first_of("?#@ ") != std::string_view::npos)) {
           return fail(
               ErrorKind::InvalidInput,
               fmt::format("\"{}\" is not an http or https URL without user and query", text));
         }
         config.traces.url = std::string(url);
         return {};
       }},
      {.name = "traces-ratio",
       .help = "share of turns whose trace is sent, from 0 to 1; those with errors are always sent "
               "(default 0.05)",
       .type = "RATIO",
       .part = Part::Traces,
       .set = [](Config& config, std::string_view text) -> Result<> {
         config.traces.ratio = HANGAR_TRY(parse_ratio(text));
         return {};
       }},
  };
}

Result<> check_tracing(const Config& config) {
  if (config.traces.url.empty() || config.recorder_bytes > 0) return {};
  return fail(ErrorKind::InvalidInput, "traces-url needs recorder-bytes above 0");
}

std::unique_ptr<Tracing> Tracing::make(const Config& config, recorder::Recorder* recorder,
                                       io::Loop& loop, http::Client& http, Metrics& metrics,
                                       Log log) {
  if (config.traces.url.empty() || recorder == nullptr) return nullptr;
  return std::make_unique<Tracing>(config, *recorder, loop, http, metrics, std::move(log));
}

Tracing::Tracing(const Config& config, recorder::Recorder& recorder, io::Loop& loop,
                 http::Client& http, Metrics& metrics, Log log)
    : recorder_(recorder),
      ids_(new_key(), config.traces.ratio),
      exporter_(loop, http,
                {.url = config.traces.url,
                 .origin = {.version = std::string(kVersion), .instance = config.pod}},
                metrics, std::move(log)),
      spans_(ids_, [this](tracing::Span span) { exporter_.add(std::move(span)); }) {
  recorder_.observe(spans_);
  recorder_.trace_with(&ids_);
}

Tracing::~Tracing() {
  recorder_.trace_with(nullptr);
  recorder_.forget(spans_);
}

}  // namespace hangar::host
