// Kubernetes controllers as WebAssembly modules. One header without dependencies, exceptions or
// RTTI; the controller chooses its own JSON library (watcher.hpp beside this one has chosen one).
//
// Such a module has no sockets and no threads: its HTTP requests and its delays are calls of the
// host, and the host answers by waking it. Between two wakes it holds no stack, so the host can
// suspend it to disk without the module noticing. Here those calls are objects to co_await:
//
//   hangar::op::Task<> tick() {
//     for (;;) {
//       const hangar::op::Response answer = co_await hangar::op::send({.path = "/version"});
//       std::printf("%d\n", answer.status);
//       co_await hangar::op::sleep(std::chrono::seconds(10));
//     }
//   }
//   int main() { hangar::op::spawn(tick()); }
//
// When main() returns, the tasks that it spawned go on. Everything belongs to one thread.
// docs/abi/kube-runtime.md describes the contract.
//
// Build it with clang for wasm32-wasi, without exceptions, and link sdk/start.c with -nostartfiles;
// build.sh is an example.

#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifndef __wasm__
#error "an operator is a WebAssembly module: compile with --target=wasm32-wasi"
#endif

namespace hangar::op {

// Bytes of an answer, as the host left them in this module's memory.
class Bytes {
 public:
  Bytes() = default;
  // Takes ownership of memory from allocate().
  Bytes(char* data, std::size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  Bytes(Bytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Bytes& operator=(Bytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~Bytes() { std::free(data_); }

  std::string_view view() const { return {data_, size_bytes_}; }

 private:
  char* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// A coroutine. It runs at once, up to the first wait; co_await returns its result. Destroying it
// ends it where it waits.
template <class T = void>
class [[nodiscard]] Task;

// Lets a task run by itself.
void spawn(Task<> task);

// A request to the API server. The host adds the server's address and the operator's credential.
struct Request {
  std::string method = "GET";
  std::string path;                                            // With the query.
  std::vector<std::pair<std::string, std::string>> headers{};  // Names in lower case, each once.
  std::string body{};
};

// A request with a body. A patch has its own content type, such as "application/merge-patch+json".
inline Request with_body(std::string method, std::string path, std::string body,
                         std::string content_type = "application/json") {
  return {.method = std::move(method),
          .path = std::move(path),
          .headers = {{"content-type", std::move(content_type)}},
          .body = std::move(body)};
}

// An answer. A status that means failure is an answer too; its body is mostly a Status object.
struct Response {
  int status = 0;  // 0: the host's answer is not valid.
  Bytes body{};

  explicit operator bool() const { return status >= 200 && status < 300; }
};

// Sends a request and waits for the whole answer.
Task<Response> send(Request request);

// Waits for at least `duration`. The timer is the host's: meanwhile the module may be suspended.
Task<> sleep(std::chrono::milliseconds duration);

namespace detail {

// A call to the host that is not finished. Destroying it forgets the call; the host cannot cancel
// one, so later answers are dropped.
class Call {
 public:
  explicit Call(std::uint64_t id) : id_(id), next_(std::exchange(first, this)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    Call** link = &first;
    while (*link != this)
      link = &(*link)->next_;
    *link = next_;
  }

  // co_await it for the next answer that has bytes; none when no more come.
  auto next() {
    struct Awaiter {
      Call& call;
      bool await_ready() const { return !call.answers_.empty() || call.is_finished_; }
      void await_suspend(std::coroutine_handle<> waiting) { call.waiting_ = waiting; }
      std::optional<Bytes> await_resume() {
        if (call.answers_.empty()) return std::nullopt;
        std::optional<Bytes> answer(std::move(call.answers_.front()));
        call.answers_.pop_front();
        return answer;
      }
    };
    return Awaiter{*this};
  }

  static void answered(std::uint64_t id, std::optional<Bytes> bytes, bool is_finished) {
    Call* call = first;
    while (call != nullptr && call->id_ != id)
      call = call->next_;
    if (call == nullptr) return;
    if (bytes) call->answers_.push_back(*std::move(bytes));
    call->is_finished_ |= is_finished;
    // The last use of the call: the coroutine that waits for it may destroy it.
    if (auto waiting = std::exchange(call->waiting_, nullptr)) waiting.resume();
  }

 private:
  static inline constinit Call* first = nullptr;

  std::uint64_t id_;
  Call* next_;
  std::deque<Bytes> answers_;
  bool is_finished_ = false;
  std::coroutine_handle<> waiting_ = nullptr;
};

struct PromiseBase {
  std::coroutine_handle<> awaiting = nullptr;
  bool is_spawned = false;

  std::suspend_never initial_suspend() noexcept { return {}; }
  // No code throws.
  [[noreturn]] void unhandled_exception() { std::abort(); }
};

// The end of a task: the coroutine that waits for it is resumed, and may destroy it.
struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
    if (auto awaiting = ended.promise().awaiting) {
      awaiting.resume();
    } else if (ended.promise().is_spawned) {
      ended.destroy();
    }
  }
  void await_resume() const noexcept {}
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;

  Task<T> get_return_object();
  FinalAwaiter final_suspend() noexcept { return {}; }
  void return_value(T result) { value.emplace(std::move(result)); }
  T take() { return *std::move(value); }
};

template <>
struct Promise<void> : PromiseBase {
  inline Task<void> get_return_object();
  FinalAwaiter final_suspend() noexcept { return {}; }
  void return_void() {}
  void take() {}
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;

  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  bool await_ready() const { return coroutine_.done(); }
  void await_suspend(std::coroutine_handle<> awaiting) { coroutine_.promise().awaiting = awaiting; }
  T await_resume() { return coroutine_.promise().take(); }

 private:
  friend void spawn(Task<> task);

  std::coroutine_handle<promise_type> coroutine_;
};

template <class T>
Task<T> detail::Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}

inline Task<void> detail::Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

inline void spawn(Task<> task) {
  if (task.coroutine_.done()) return;
  task.coroutine_.promise().is_spawned = true;
  task.coroutine_ = nullptr;
}

namespace detail {

__attribute__((import_module("http-proxy-abi"), import_name("request"))) std::uint64_t host_request(
    const char* address, std::size_t size_bytes, std::uint32_t is_stream);

__attribute__((import_module("delay-abi"), import_name("delay"))) std::uint64_t host_delay(
    std::uint64_t milliseconds);

// Memory for one answer. The module owns it again once wakeup() returns it.
extern "C" __attribute__((export_name("allocate"), used)) inline void* allocate(
    std::size_t size_bytes) {
  // Never null, which would mean an answer without bytes.
  void* memory = std::malloc(size_bytes == 0 ? 1 : size_bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

extern "C" __attribute__((export_name("wakeup"), used)) inline void wakeup(
    std::uint64_t id, std::uint32_t is_finished, void* address, std::size_t size_bytes) {
  std::optional<Bytes> bytes;
  if (address != nullptr) bytes.emplace(static_cast<char*>(address), size_bytes);
  Call::answered(id, std::move(bytes), is_finished != 0);
}

// bincode 1.3 with its default options: little-endian numbers and 64-bit lengths.
inline std::string encode(const Request& request) {
  std::string message;
  const auto put_length = [&message](std::uint64_t length) {
    message.append(reinterpret_cast<const char*>(&length), sizeof length);
  };
  const auto put = [&](std::string_view bytes) {
    put_length(bytes.size());
    message.append(bytes);
  };
  put(request.method);
  put(request.path);
  put_length(request.headers.size());
  for (const auto& [name, value] : request.headers) {
    put(name);
    put_length(1);  // A list of values.
    put(value);
  }
  put(request.body);
  return message;
}

inline Call request(const Request& request, bool is_stream) {
  const std::string message = encode(request);
  return Call(host_request(message.data(), message.size(), is_stream ? 1 : 0));
}

// The status comes first in an answer's head.
inline int status_of(const std::optional<Bytes>& head) {
  std::uint16_t status = 0;
  if (!head || head->view().size() < sizeof status) return 0;
  std::memcpy(&status, head->view().data(), sizeof status);
  return status;
}

}  // namespace detail

inline Task<Response> send(Request request) {
  detail::Call call = detail::request(request, /*is_stream=*/false);
  Response response{.status = detail::status_of(co_await call.next())};
  if (std::optional<Bytes> body = co_await call.next()) response.body = *std::move(body);
  co_return response;
}

inline Task<> sleep(std::chrono::milliseconds duration) {
  detail::Call call(
      detail::host_delay(duration.count() > 0 ? static_cast<std::uint64_t>(duration.count()) : 0));
  while (co_await call.next()) {
  }
}

// An answer whose body is read line by line, as it arrives.
class Stream {
 public:
  explicit Stream(const Request& request) : call_(detail::request(request, /*is_stream=*/true)) {}

  // The answer's status. Call it once, before the first line.
  Task<int> status() { co_return detail::status_of(co_await call_.next()); }

  // The next line without its end, wherever the host cut the body; none after the last one.
  Task<std::optional<std::string>> line() {
    for (;;) {
      if (const std::size_t end = rest_.find('\n'); end != std::string::npos) {
        std::string line = rest_.substr(0, end);
        rest_.erase(0, end + 1);
        co_return line;
      }
      const std::optional<Bytes> piece = co_await call_.next();
      if (piece) {
        rest_.append(piece->view());
      } else if (rest_.empty()) {
        co_return std::nullopt;
      } else {
        co_return std::exchange(rest_, {});
      }
    }
  }

 private:
  detail::Call call_;
  std::string rest_;
};

}  // namespace hangar::op
