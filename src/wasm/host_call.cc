#include "wasm/host_call.h"

#include "base/assert.h"
#include "base/result.h"
#include "io/loop.h"
#include "io/task.h"
#include "wasm/engine.h"
#include "wasm/guest_memory.h"
#include "wasm/host_task.h"
#include "wasm/internal/engine_native.h"
#include "wasm/internal/execution.h"
#include "wasm/internal/fault.h"
#include "wasm/internal/handles.h"
#include "wasm/internal/host_functions_native.h"
#include "wasm/internal/thread_sanitizer.h"
#include "wasm/module.h"
#include "wasm/module_header.h"

#include <fmt/format.h>
#include <wasm.h>
#include <wasmtime/async.h>
#include <wasmtime/error.h>
#include <wasmtime/extern.h>
#include <wasmtime/func.h>
#include <wasmtime/linker.h>
#include <wasmtime/store.h>
#include <wasmtime/val.h>

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hangar::wasm {

namespace {

Execution& run_of(wasmtime_caller_t* caller) {
  return *static_cast<Execution*>(wasmtime_context_get_data(wasmtime_caller_context(caller)));
}

// "host.k8s_lookup", for messages.
std::string full_name(const HostFunctions::Entry& entry) {
  return fmt::format("{}.{}", entry.module, entry.name);
}

std::string text_of(const Signature& signature) {
  const auto name = [](ValueType type) { return type == ValueType::I32 ? "i32" : "i64"; };
  std::string text = "(";
  for (std::size_t index = 0; index < signature.parameters.size(); ++index) {
    if (index > 0) text += ", ";
    text += name(signature.parameters[index]);
  }
  text += ") -> (";
  if (signature.result) text += name(*signature.result);
  return text + ")";
}

internal::FunctionTypeHandle function_type_of(const Signature& signature) {
  const auto make = [](ValueType type) {
    return wasm_valtype_new(type == ValueType::I32 ? WASM_I32 : WASM_I64);
  };
  std::vector<wasm_valtype_t*> types;
  types.reserve(signature.parameters.size());
  for (const ValueType type : signature.parameters)
    types.push_back(make(type));
  wasm_valtype_vec_t parameters;
  wasm_valtype_vec_new(&parameters, types.size(), types.data());
  wasm_valtype_vec_t results;
  if (signature.result) {
    std::array<wasm_valtype_t*, 1> result = {make(*signature.result)};
    wasm_valtype_vec_new(&results, result.size(), result.data());
  } else {
    wasm_valtype_vec_new_empty(&results);
  }
  return internal::FunctionTypeHandle(wasm_functype_new(&parameters, &results));
}

// Calls a function of a guest; the host function that the guest called awaits it.
class GuestCallWait final : public internal::Wait {
 public:
  GuestCallWait(HostCall call, const wasmtime_func_t& function, std::uint32_t argument)
      : call_(call), function_(function) {
    arguments_[0].kind = WASMTIME_I32;
    arguments_[0].of.i32 = static_cast<std::int32_t>(argument);
    future_.reset(wasmtime_func_call_async(wasmtime_caller_context(call.caller()), &function_,
                                           arguments_.data(), arguments_.size(), results_.data(),
                                           results_.size(), &trap_, &error_));
  }

  [[nodiscard]] bool await_ready() { return is_over(); }
  void await_suspend(std::coroutine_handle<> awaiting) { call_.suspend(*this, awaiting); }
  [[nodiscard]] Result<std::uint64_t> await_resume() {
    future_.reset();
    const internal::TrapHandle trap(std::exchange(trap_, nullptr));
    const internal::ErrorHandle error(std::exchange(error_, nullptr));
    // The error of a nested host function says more than the failed call does.
    if (const std::optional<Error>& fault = call_.run().fault();
        fault && (trap != nullptr || error != nullptr)) {
      return std::unexpected(*fault);
    }
    if (trap != nullptr) return fail(ErrorKind::GuestFault, internal::describe(*trap));
    if (error != nullptr) return fail(ErrorKind::GuestFault, internal::describe(*error));
    return static_cast<std::uint64_t>(results_[0].of.i64);
  }
  [[nodiscard]] bool is_over() override {
    if (!is_over_) is_over_ = wasmtime_call_future_poll(future_.get());
    return is_over_;
  }

 private:
  HostCall call_;
  wasmtime_func_t function_;
  std::array<wasmtime_val_t, 1> arguments_{};
  std::array<wasmtime_val_t, 1> results_{};
  wasm_trap_t* trap_ = nullptr;
  wasmtime_error_t* error_ = nullptr;
  internal::FutureHandle future_;  // Refers to all of the above, so it is destroyed first.
  bool is_over_ = false;
};

template <class F>
Result<std::uint64_t> guarded(F call) {
  // The guest's frames are further down this stack: no exception may pass through them.
  try {
    return call();
  } catch (const std::exception& error) {
    return fail(ErrorKind::Unavailable, std::string("host function: ") + error.what());
  } catch (...) {
    return fail(ErrorKind::Unavailable, "host function: unknown exception");
  }
}

wasm_trap_t* call_plain(void* env, wasmtime_caller_t* caller, wasmtime_val_raw_t* values,
                        std::size_t /*count*/) noexcept {
  const internal::OnGuestStack on_guest_stack;
  const auto& entry = *static_cast<const HostFunctions::Entry*>(env);
  Execution& run = run_of(caller);
  HostFunctions::Arguments arguments{};
  for (std::size_t index = 0; index < entry.signature.parameters.size(); ++index) {
    arguments[index] = entry.signature.parameters[index] == ValueType::I32
                           ? static_cast<std::uint32_t>(values[index].i32)
                           : static_cast<std::uint64_t>(values[index].i64);
  }
  Result<std::uint64_t> result = guarded([&]() -> Result<std::uint64_t> {
    HANGAR_TRY(run.readable());
    return entry.function(HostCall(run, caller, nullptr), arguments);
  });
  if (Result<> readable = run.readable(); !readable) result = std::unexpected(readable.error());
  if (!result) return run.trap(full_name(entry), std::move(result).error());
  // For both types: wasmtime expects an i32 extended with zeros.
  if (entry.signature.result) values[0].i64 = static_cast<std::int64_t>(*result);
  return nullptr;
}

}  // namespace

namespace internal {

Result<InstancePreHandle> prepare(const HostFunctions& functions, const Module& module) {
  const wasmtime_linker_t& linker = functions.native().linker(module.allocation());
  wasmtime_instance_pre_t* prepared = nullptr;
  if (const ErrorHandle error(wasmtime_linker_instantiate_pre(&linker, module.native(), &prepared));
      error != nullptr) {
    return fail(ErrorKind::InvalidInput, describe(*error));
  }
  return InstancePreHandle(prepared);
}

// A call of a host function that may wait, owned by the guest's fiber.
//
// `caller`, `results` and `trap` belong to a frame of wasmtime, which waits until poll() returns
// true. The coroutine of the host function has its frames on the heap, so that no C++ frame is on
// the fiber while it is suspended. poll() therefore never blocks: it resumes the coroutine as long
// as its waits are over, and otherwise returns false, whereupon wasmtime leaves the fiber and the
// worker is free (Execution::advance).
class WaitingCall {
 public:
  WaitingCall(const HostFunctions::Entry& entry, wasmtime_caller_t* caller,
              const wasmtime_val_t* arguments, wasmtime_val_t* results, wasm_trap_t** trap)
      : entry_(entry),
        run_(run_of(caller)),
        results_(results),
        trap_(trap),
        task_(entry.waiting(HostCall(run_, caller, this), values_of(entry, arguments))) {}
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;
  ~WaitingCall() = default;

  void suspend(Wait& wait, std::coroutine_handle<> awaiting) {
    wait_ = &wait;
    awaiting_ = awaiting;
  }

  // Called on the guest's fiber each time it is resumed. True when the host function has returned.
  bool poll() {
    if (Result<> readable = run_.readable(); !readable) {
      *trap_ = run_.trap(full_name(entry_), std::move(readable).error());
      return true;
    }
    if (!has_begun_) {
      has_begun_ = true;
      task_.begin();
    }
    while (!task_.is_done()) {
      HANGAR_ASSERT(wait_ != nullptr, "host functions wait for what HostCall offers");
      if (!wait_->is_over()) return false;
      wait_ = nullptr;
      std::exchange(awaiting_, nullptr).resume();
    }
    Result<std::uint64_t> result = task_.take();
    if (!result) {
      *trap_ = run_.trap(full_name(entry_), std::move(result).error());
    } else if (entry_.signature.result == ValueType::I32) {
      results_[0].kind = WASMTIME_I32;
      results_[0].of.i32 = static_cast<std::int32_t>(*result);
    } else if (entry_.signature.result == ValueType::I64) {
      results_[0].kind = WASMTIME_I64;
      results_[0].of.i64 = static_cast<std::int64_t>(*result);
    }
    return true;
  }

 private:
  static HostFunctions::Arguments values_of(const HostFunctions::Entry& entry,
                                            const wasmtime_val_t* arguments) {
    HostFunctions::Arguments values{};
    for (std::size_t index = 0; index < entry.signature.parameters.size(); ++index) {
      values[index] = entry.signature.parameters[index] == ValueType::I32
                          ? static_cast<std::uint32_t>(arguments[index].of.i32)
                          : static_cast<std::uint64_t>(arguments[index].of.i64);
    }
    return values;
  }

  const HostFunctions::Entry& entry_;
  Execution& run_;
  wasmtime_val_t* results_;
  wasm_trap_t** trap_;
  Wait* wait_ = nullptr;
  std::coroutine_handle<> awaiting_;
  bool has_begun_ = false;
  HostTask<std::uint64_t> task_;  // Refers to this object.
};

}  // namespace internal

namespace {

// wasmtime's entry to a host function that may wait. It returns at once. wasmtime then calls
// `callback` each time the fiber is resumed until that returns true, and calls `finalizer` after
// that, or when the fiber is destroyed first.
void call_waiting(void* env, wasmtime_caller_t* caller, const wasmtime_val_t* arguments,
                  std::size_t /*argument_count*/, wasmtime_val_t* results,
                  std::size_t /*result_count*/, wasm_trap_t** trap,
                  wasmtime_async_continuation_t* continuation) noexcept {
  const internal::OnGuestStack on_guest_stack;
  const auto& entry = *static_cast<const HostFunctions::Entry*>(env);
  using internal::WaitingCall;
  auto call = std::make_unique<WaitingCall>(entry, caller, arguments, results, trap);
  continuation->callback = [](void* self) {
    const internal::OnGuestStack still_on_guest_stack;
    return static_cast<WaitingCall*>(self)->poll();
  };
  continuation->finalizer = [](void* self) {
    const internal::OnGuestStack still_on_guest_stack;
    const std::unique_ptr<WaitingCall> owned(static_cast<WaitingCall*>(self));
  };
  continuation->env = call.release();
}

}  // namespace

Result<GuestMemory> HostCall::memory() const {
  return run_->memory(caller_);
}

std::unexpected<Error> HostCall::leave() const {
  run_->leave();
  return fail(ErrorKind::Cancelled, "the guest has left");
}

HostTask<std::uint64_t> HostCall::call_guest(std::string name, std::uint32_t argument) const {
  const HostCall call = *this;
  constexpr std::string_view kSignature = "(i32) -> (i64)";
  const Export* const exported = call.run().module().find_export(name);
  wasmtime_extern_t item;
  if (exported == nullptr || exported->signature != kSignature ||
      !wasmtime_caller_export_get(call.caller(), name.data(), name.size(), &item)) {
    co_return fail(ErrorKind::GuestFault,
                   fmt::format("the module exports no function {} of type {}", name, kSignature));
  }
  if (!call.run().enter_guest_call()) {
    co_return fail(ErrorKind::GuestFault,
                   fmt::format("{} calls a host function that needs {}", name, name));
  }
  Result<std::uint64_t> result = co_await GuestCallWait(call, item.of.func, argument);
  call.run().exit_guest_call();
  if (!result) co_return std::unexpected(std::move(result).error().in(name));
  co_return result;
}

void HostCall::suspend(internal::Wait& wait, std::coroutine_handle<> awaiting) const {
  waiting_->suspend(wait, awaiting);
}

HostState& HostCall::host_state() const {
  return run_->state();
}

io::Loop& HostCall::loop() const {
  return run_->engine().loop();
}

void HostCall::begin_wait() const {
  run_->begin_wait();
}

void HostCall::end_wait() const {
  run_->end_wait();
}

bool HostCall::is_stopped() const {
  return run_->is_stopped();
}

void HostCall::spawn_ask(std::move_only_function<io::Task<void>(std::stop_token)> task) const {
  run_->spawn_ask(std::move(task));
}

namespace {

void link(wasmtime_linker_t& linker, const HostFunctions::Entry& entry) {
  // One type for each linker: a type belongs to the first engine that sees it.
  const internal::FunctionTypeHandle type = function_type_of(entry.signature);
  // wasmtime passes the entry on, and does not change it.
  void* const environment = const_cast<HostFunctions::Entry*>(&entry);
  const internal::ErrorHandle error(
      entry.waiting != nullptr
          ? wasmtime_linker_define_async_func(&linker, entry.module.data(), entry.module.size(),
                                              entry.name.data(), entry.name.size(), type.get(),
                                              &call_waiting, environment, nullptr)
          : wasmtime_linker_define_func_unchecked(&linker, entry.module.data(), entry.module.size(),
                                                  entry.name.data(), entry.name.size(), type.get(),
                                                  &call_plain, environment, nullptr));
  HANGAR_ASSERT(error == nullptr, "names are ours and unique");
}

}  // namespace

const wasmtime_linker_t& HostFunctions::Native::linker(Module::Allocation allocation) const {
  switch (allocation) {
    case Module::Allocation::Pooled:
      return filled(pooled_, *engines.pooled);
    case Module::Allocation::OnDemand:
      return filled(on_demand_, *engines.on_demand);
    case Module::Allocation::Sleepable:
      break;
  }
  return filled(sleepable_, *engines.sleepable);
}

const wasmtime_linker_t& HostFunctions::Native::filled(Linker& linker,
                                                       wasm_engine_t& engine) const {
  std::call_once(linker.filled, [&] {
    linker.handle.reset(wasmtime_linker_new(&engine));
    for (const Entry& entry : entries)
      link(*linker.handle, entry);
  });
  return *linker.handle;
}

HostFunctions::HostFunctions(const Engine& engine) : HostFunctions(engine.parts()) {}

HostFunctions::HostFunctions(const EngineParts& parts) : native_(std::make_unique<Native>(parts)) {}

HostFunctions::~HostFunctions() = default;

void HostFunctions::link_now() const {
  for (const auto allocation : {Module::Allocation::Pooled, Module::Allocation::Sleepable}) {
    if (native_->engines.engine(allocation) != nullptr) std::ignore = native_->linker(allocation);
  }
}

std::vector<Import> HostFunctions::missing(const Module& module) const {
  std::vector<Import> missing;
  for (const Import& import : module.imports()) {
    const auto found = native_->by_name.find({import.module, import.name});
    const bool is_here = found != native_->by_name.end() && import.kind == ExternKind::Function &&
                         found->second->signature_text == import.signature;
    if (!is_here) missing.push_back(import);
  }
  return missing;
}

void HostFunctions::add_function(std::string_view module, std::string_view name,
                                 Signature signature, Function function) {
  define(module, name, {.signature = std::move(signature), .function = function});
}

void HostFunctions::add_waiting(std::string_view module, std::string_view name, Signature signature,
                                WaitingFunction function) {
  define(module, name, {.signature = std::move(signature), .waiting = function});
}

void HostFunctions::define(std::string_view module, std::string_view name, Entry entry) {
  entry.module = module;
  entry.name = name;
  entry.signature_text = text_of(entry.signature);
  const Entry& kept = native_->entries.emplace_back(std::move(entry));
  const bool is_new = native_->by_name.emplace(std::pair(kept.module, kept.name), &kept).second;
  HANGAR_ASSERT(is_new, "a host function is registered once");
}

}  // namespace hangar::wasm
