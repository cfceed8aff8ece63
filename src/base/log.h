// Structured logs: a constant message, variables as keys, the same key for the same thing
// everywhere ("airway", "namespace", "name", "took_ms", "error"). This header only records lines;
// ops/ formats and writes them.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hangar {

enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error };

struct LogField {
  using Value = std::variant<std::string, std::int64_t, double, bool>;

  LogField(std::string_view key_in, std::string_view text)
      : key(key_in), value(std::string(text)) {}
  LogField(std::string_view key_in, const std::string& text) : key(key_in), value(text) {}
  LogField(std::string_view key_in, const char* text) : key(key_in), value(std::string(text)) {}
  LogField(std::string_view key_in, bool flag) : key(key_in), value(flag) {}
  LogField(std::string_view key_in, double number) : key(key_in), value(number) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  LogField(std::string_view key_in, T number)
      : key(key_in), value(static_cast<std::int64_t>(number)) {}

  std::string_view key;  // A literal.
  Value value;
};

// Receives every line. Any thread; does not block on the reader of the log.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(LogLevel level, std::string_view component, std::string_view message,
                     std::span<const LogField> fields) = 0;
};

// A cheap value: a sink and the name of the component that logs ("kube", "airways"). Any thread.
class Log {
 public:
  // Drops everything: for tests and tools that need no log.
  Log() = default;
  Log(LogSink& sink, std::string component) : sink_(&sink), component_(std::move(component)) {}

  // The same sink for another component.
  [[nodiscard]] Log named(std::string component) const {
    Log copy = *this;
    copy.component_ = std::move(component);
    return copy;
  }

  using Fields = std::initializer_list<LogField>;
  void debug(std::string_view message, Fields fields = {}) const {
    write(LogLevel::Debug, message, fields);
  }
  void info(std::string_view message, Fields fields = {}) const {
    write(LogLevel::Info, message, fields);
  }
  void warning(std::string_view message, Fields fields = {}) const {
    write(LogLevel::Warning, message, fields);
  }
  void error(std::string_view message, Fields fields = {}) const {
    write(LogLevel::Error, message, fields);
  }

 private:
  void write(LogLevel level, std::string_view message, Fields fields) const {
    if (sink_ != nullptr) {
      sink_->write(level, component_, message, std::span(fields.begin(), fields.size()));
    }
  }

  LogSink* sink_ = nullptr;  // Outlives every Log made from it.
  std::string component_;
};

}  // namespace hangar
