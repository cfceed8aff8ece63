// Owners for the objects that wasmtime's C API returns.
#pragma once

#include "base/destroyed_by.h"

#include <wasm.h>
#include <wasmtime/async.h>
#include <wasmtime/conf.h>
#include <wasmtime/error.h>
#include <wasmtime/linker.h>
#include <wasmtime/module.h>
#include <wasmtime/store.h>
#include <wasmtime/trap.h>

#include <memory>

#ifdef WASMTIME_FEATURE_GC
#error "wasmtime_val_t has another size with garbage collection: these headers fit another library"
#endif

namespace hangar::wasm::internal {

using EngineHandle = std::unique_ptr<wasm_engine_t, DestroyedBy<wasm_engine_delete>>;
using ModuleHandle = std::unique_ptr<wasmtime_module_t, DestroyedBy<wasmtime_module_delete>>;
using StoreHandle = std::unique_ptr<wasmtime_store_t, DestroyedBy<wasmtime_store_delete>>;
using LinkerHandle = std::unique_ptr<wasmtime_linker_t, DestroyedBy<wasmtime_linker_delete>>;
using InstancePreHandle =
    std::unique_ptr<wasmtime_instance_pre_t, DestroyedBy<wasmtime_instance_pre_delete>>;
using FutureHandle =
    std::unique_ptr<wasmtime_call_future_t, DestroyedBy<wasmtime_call_future_delete>>;
using ErrorHandle = std::unique_ptr<wasmtime_error_t, DestroyedBy<wasmtime_error_delete>>;
using TrapHandle = std::unique_ptr<wasm_trap_t, DestroyedBy<wasm_trap_delete>>;
using FunctionTypeHandle = std::unique_ptr<wasm_functype_t, DestroyedBy<wasm_functype_delete>>;

}  // namespace hangar::wasm::internal
