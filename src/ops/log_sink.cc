#include "ops/log_sink.h"

#include "base/log.h"
#include "base/time.h"
#include "base/utf8.h"
#include "io/loop.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/common.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <memory>
#include <mutex>
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

// The text may come from guests and servers: no byte of it may end the line, control a terminal (C1
// controls do, too) or make the line unreadable for a JSON parser.
void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kReplacement = "\ufffd";
  while (!text.empty()) {
    const std::string_view valid = text.substr(0, valid_utf8_prefix(text));
    for (std::size_t at = 0; at < valid.size(); ++at) {
      const char one = valid[at];
      const auto byte = static_cast<unsigned char>(one);
      const auto next = static_cast<unsigned char>(at + 1 < valid.size() ? valid[at + 1] : 0);
      if (one == '"' || one == '\\') {
        out += '\\';
        out += one;
      } else if (one == '\n') {
        out += "\\n";
      } else if (one == '\t') {
        out += "\\t";
      } else if (byte < 0x20 || byte == 0x7f) {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
      } else if (byte == 0xc2 && next < 0xa0) {
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", next);
        ++at;
      } else {
        out += one;
      }
    }
    text.remove_prefix(valid.size());
    if (text.empty()) return;
    out += kReplacement;
    text.remove_prefix(1);
  }
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text);
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
  text.pop_back();  // The Z, after the fraction.
  return fmt::format("{}.{:03}Z", text, milliseconds);
}

// Writes whole lines to a descriptor without waiting for it. Waits briefly for a reader that is
// behind; a reader that has stopped loses lines, and reads how many when it continues.
class DescriptorSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit DescriptorSink(int descriptor) : descriptor_(descriptor) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (lost_lines_ > 0) {
      const std::string note = fmt::format("({} log lines lost: nobody read them)\n", lost_lines_);
      if (!write(note)) {
        ++lost_lines_;
        return;
      }
      lost_lines_ = 0;
    }
    std::string line(message.payload.data(), message.payload.size());
    line += '\n';
    if (!write(line)) ++lost_lines_;
  }
  void flush_() override {}

 private:
  // A pipe that is ready accepts this much at once without blocking.
  static constexpr std::size_t kStepBytes = PIPE_BUF;
  static constexpr int kPatienceMs = 50;

  bool write(std::string_view line) {
    // Starts a new line after one that was cut.
    std::string whole;
    if (cut_) {
      whole = "\n" + std::string(line);
      line = whole;
    }
    const std::size_t size = line.size();
    while (!line.empty()) {
      const std::string_view step = line.substr(0, kStepBytes);
      const ssize_t count = is_ready() ? ::write(descriptor_, step.data(), step.size()) : -1;
      if (count < 0) {
        if (line.size() < size) cut_ = true;
        return false;
      }
      line.remove_prefix(static_cast<std::size_t>(count));
    }
    cut_ = false;
    return true;
  }

  bool is_ready() {
    pollfd polled{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    // Only the first line waits; otherwise a stopped reader would slow this process for ever.
    const bool ready =
        ::poll(&polled, 1, was_ready_ ? kPatienceMs : 0) == 1 && (polled.revents & POLLOUT) != 0;
    was_ready_ = ready;
    return ready;
  }

  const int descriptor_;
  bool was_ready_ = true;
  bool cut_ = false;  // The last line has no line end.
  std::size_t lost_lines_ = 0;
};

class StandardError final : public LogSink {
 public:
  explicit StandardError(LogOptions options)
      : options_(options), logger_("hangar", std::make_shared<DescriptorSink>(STDERR_FILENO)) {
    logger_.set_level(spdlog_level(options.level));
    // The default handler prints to standard error, which is what just failed.
    logger_.set_error_handler([](const std::string&) {});
  }

  void write(LogLevel level, std::string_view component, std::string_view message,
             std::span<const LogField> fields) override {
    if (level < options_.level) return;
    const WallTime now = io::Loop::wall_now();
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
    std::string line = fmt::format("{} {:<5} {:<10} ", std::string_view(time).substr(11, 12),
                                   name_of(level), component);
    append_escaped(line, message);
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
  // Otherwise writing to a pipe without a reader would kill the process.
  (void)std::signal(SIGPIPE, SIG_IGN);
  return std::make_unique<StandardError>(options);
}

}  // namespace hangar::ops
