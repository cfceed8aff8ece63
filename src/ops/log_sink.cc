#include "ops/log_sink.h"

#include "base/log.h"
#include "base/time.h"

#include <fmt/format.h>
#include <spdlog/common.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace hangar::ops {

namespace {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return "debug";
    case LogLevel::Info:
      return "info";
    case LogLevel::Warning:
      return "warn";
    case LogLevel::Error:
      return "error";
  }
  return "info";
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warning:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Text of guests and servers ends up here: no byte of it may end the line or drive a terminal.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char one : text) {
    const auto byte = static_cast<unsigned char>(one);
    if (one == '"' || one == '\\') {
      out += '\\';
      out += one;
    } else if (one == '\n') {
      out += "\\n";
    } else if (one == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out += one;
    }
  }
  out += '"';
}

void append_value(std::string& out, const LogField::Value& value) {
  std::visit(
      [&out](const auto& one) {
        using Type = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<Type, std::string>) {
          append_quoted(out, one);
        } else if constexpr (std::is_same_v<Type, double>) {
          if (std::isfinite(one)) {
            fmt::format_to(std::back_inserter(out), "{}", one);
          } else {
            append_quoted(out, fmt::format("{}", one));
          }
        } else {
          fmt::format_to(std::back_inserter(out), "{}", one);
        }
      },
      value);
}

std::string to_millisecond_text(WallTime time) {
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  std::string text = to_rfc3339(time);
  text.pop_back();  // The Z, behind the fraction.
  return fmt::format("{}.{:03}Z", text, milliseconds);
}

class StandardError final : public LogSink {
 public:
  explicit StandardError(LogOptions options)
      : options_(options), logger_("hangar", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%v");
    logger_.set_level(spdlog_level(options.level));
    logger_.flush_on(spdlog::level::trace);
    // The default handler prints to standard error, which is what just failed.
    logger_.set_error_handler([](const std::string&) {});
  }

  void write(LogLevel level, std::string_view component, std::string_view message,
             std::span<const LogField> fields) override {
    if (level < options_.level) return;
    const WallTime now = std::chrono::system_clock::now();
    const std::string line = options_.format == LogFormat::Json
                                 ? json_line(now, level, component, message, fields)
                                 : console_line(now, level, component, message, fields);
    logger_.log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
  }

 private:
  static std::string json_line(WallTime now, LogLevel level, std::string_view component,
                               std::string_view message, std::span<const LogField> fields) {
    std::string line = fmt::format(R"({{"ts":"{}","level":"{}","logger":)",
                                   to_millisecond_text(now), name_of(level));
    append_quoted(line, component);
    line += R"(,"msg":)";
    append_quoted(line, message);
    for (const LogField& field : fields) {
      line += ',';
      append_quoted(line, field.key);
      line += ':';
      append_value(line, field.value);
    }
    line += '}';
    return line;
  }

  static std::string console_line(WallTime now, LogLevel level, std::string_view component,
                                  std::string_view message, std::span<const LogField> fields) {
    const std::string time = to_millisecond_text(now);
    std::string line = fmt::format("{} {:<5} {:<10} {}", std::string_view(time).substr(11, 12),
                                   name_of(level), component, message);
    for (const LogField& field : fields) {
      line += fmt::format("  {}=", field.key);
      append_value(line, field.value);
    }
    return line;
  }

  const LogOptions options_;
  spdlog::logger logger_;
};

}  // namespace

std::unique_ptr<LogSink> make_log_sink(LogOptions options) {
  return std::make_unique<StandardError>(options);
}

}  // namespace hangar::ops
