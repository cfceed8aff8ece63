// JavaScript in a module of its own, as `javy build` makes one: the engine and the bytecode of one bundle
// in one file. What a bundle exports decides nothing here; how the module is built does:
//
//   (default)         malloc, handle_event(state, bytes, event, bytes) -> NUL-terminated result: calls the
//                     bundle's export of that name
//   -DJAVY_COMMAND    a command: evaluating the bundle is all; it reads and writes through Javy.IO
//   -DJAVY_PLUGIN     the engine alone, for commands that bring nothing but their bytecode (dynamic.py), with
//                     the exports and the section of the plugin of Javy 9
//
// The engine starts with the first call, or in _start: nothing was run before the module is instantiated.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quickjs.h"

#ifndef JAVY_PLUGIN
// Bytecode of the bundle (compile.c).
static const uint8_t bundle[] = {
#embed BUNDLE
};
#endif
#if defined(JAVY_COMMAND) || defined(JAVY_PLUGIN)
#define HAS_JAVY
#endif

enum { kStackBytes = 512 * 1024 };

static JSContext *context;
static JSValue exports;

static void write_all(int fd, const char *bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = write(fd, bytes, count);
    if (written <= 0) return;
    bytes += written;
    count -= (size_t)written;
  }
}

// The pending exception as text; the caller frees it with JS_FreeCString.
static const char *exception_text(void) {
  JSValue error = JS_GetException(context);
  const char *text = JS_ToCString(context, error);
  JS_FreeValue(context, error);
  return text;
}

static JSValue console_print(JSContext *ctx, JSValueConst this_value, int count, JSValueConst *arguments) {
  (void)this_value;
  for (int index = 0; index < count; index++) {
    const char *text = JS_ToCString(ctx, arguments[index]);
    if (!text) return JS_EXCEPTION;
    write_all(2, text, strlen(text));
    write_all(2, index + 1 < count ? " " : "\n", 1);
    JS_FreeCString(ctx, text);
  }
  return JS_UNDEFINED;
}

static void set_function(JSValueConst object, const char *name, JSCFunction *function, int length) {
  JS_SetPropertyStr(context, object, name, JS_NewCFunction(context, function, name, length));
}

#ifdef HAS_JAVY
// Javy.IO.readSync(fd, Uint8Array) and writeSync(fd, Uint8Array): how many bytes.
static JSValue javy_transfer(JSContext *ctx, JSValueConst *arguments, int is_write) {
  int32_t fd;
  size_t size;
  if (JS_ToInt32(ctx, &fd, arguments[0])) return JS_EXCEPTION;
  uint8_t *bytes = JS_GetUint8Array(ctx, &size, arguments[1]);
  if (!bytes) return JS_EXCEPTION;
  const ssize_t moved = is_write ? write(fd, bytes, size) : read(fd, bytes, size);
  return moved < 0 ? JS_ThrowInternalError(ctx, "I/O on descriptor %d", fd) : JS_NewInt64(ctx, moved);
}
static JSValue javy_read(JSContext *ctx, JSValueConst this_value, int count, JSValueConst *arguments) {
  (void)this_value, (void)count;
  return javy_transfer(ctx, arguments, 0);
}
static JSValue javy_write(JSContext *ctx, JSValueConst this_value, int count, JSValueConst *arguments) {
  (void)this_value, (void)count;
  return javy_transfer(ctx, arguments, 1);
}

// new TextEncoder().encode(text), new TextDecoder().decode(bytes): UTF-8 only, as Javy has them.
static JSValue encode(JSContext *ctx, JSValueConst this_value, int count, JSValueConst *arguments) {
  (void)this_value, (void)count;
  size_t size;
  const char *text = JS_ToCStringLen(ctx, &size, arguments[0]);
  if (!text) return JS_EXCEPTION;
  JSValue bytes = JS_NewUint8ArrayCopy(ctx, (const uint8_t *)text, size);
  JS_FreeCString(ctx, text);
  return bytes;
}
static JSValue decode(JSContext *ctx, JSValueConst this_value, int count, JSValueConst *arguments) {
  (void)this_value, (void)count;
  size_t size;
  const uint8_t *bytes = JS_GetUint8Array(ctx, &size, arguments[0]);
  return bytes ? JS_NewStringLen(ctx, (const char *)bytes, size) : JS_EXCEPTION;
}

static void set_javy(JSValueConst global) {
  JSValue io = JS_NewObject(context), javy = JS_NewObject(context);
  set_function(io, "readSync", javy_read, 2);
  set_function(io, "writeSync", javy_write, 2);
  JS_SetPropertyStr(context, javy, "IO", io);
  JS_SetPropertyStr(context, global, "Javy", javy);
  set_function(global, "hostEncode", encode, 1);
  set_function(global, "hostDecode", decode, 1);
  static const char classes[] =
      "globalThis.TextEncoder = class { encode(text) { return hostEncode(String(text)); } };"
      "globalThis.TextDecoder = class { decode(bytes) { return hostDecode(bytes); } };";
  JS_FreeValue(context, JS_Eval(context, classes, sizeof classes - 1, "text.js", JS_EVAL_TYPE_GLOBAL));
}
#endif

static JSRuntime *runtime;

// 0, or -1 with a pending exception.
static int start_engine(const uint8_t *bytecode, size_t size) {
  runtime = JS_NewRuntime();
  JS_SetMaxStackSize(runtime, kStackBytes);
  context = JS_NewContext(runtime);
  JSValue global = JS_GetGlobalObject(context), console = JS_NewObject(context);
  static const char *const names[] = {"log", "info", "warn", "error", "debug"};
  for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
    set_function(console, names[index], console_print, 1);
  }
  JS_SetPropertyStr(context, global, "console", console);
#ifdef HAS_JAVY
  set_javy(global);
#endif
  JS_FreeValue(context, global);

  JSValue module = JS_ReadObject(context, bytecode, size, JS_READ_OBJ_BYTECODE);
  if (JS_IsException(module) || JS_ResolveModule(context, module) < 0) return -1;
  JSModuleDef *definition = JS_VALUE_GET_PTR(module);
  JSValue promise = JS_EvalFunction(context, module);
  for (JSContext *ran; JS_ExecutePendingJob(runtime, &ran) > 0;) {
  }
  if (JS_IsException(promise)) return -1;
  if (JS_PromiseState(context, promise) == JS_PROMISE_REJECTED) {
    JS_Throw(context, JS_PromiseResult(context, promise));
    return -1;
  }
  exports = JS_GetModuleNamespace(context, definition);
  return 0;
}

#ifdef HAS_JAVY
static void print_exception(void) {
  const char *text = exception_text();
  write_all(2, text ? text : "?", text ? strlen(text) : 1);
  write_all(2, "\n", 1);
}
#endif

#if defined(JAVY_COMMAND)
int main(void) {
  if (start_engine(bundle, sizeof bundle) == 0) return 0;
  print_exception();
  return 1;
}
#elif defined(JAVY_PLUGIN)
// The namespace that modules for this plugin import. Their bytecode fits no other engine.
__asm__(".section .custom_section.import_namespace,\"\",@\n.ascii \"hangar-test-plugin-v1\"\n.text\n");

__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, size_t old_size, size_t alignment,
                                                                size_t new_size) {
  (void)old_size, (void)alignment;
  return realloc(old, new_size);
}

// Evaluates a module's bytecode, and calls the function that it exports under that name, if one is given.
__attribute__((export_name("invoke"))) void invoke(const uint8_t *bytecode, size_t size, uint32_t is_named,
                                                   const char *name, size_t name_size) {
  int failed = start_engine(bytecode, size);
  if (!failed && is_named) {
    JSAtom atom = JS_NewAtomLen(context, name, name_size);
    JSValue result = JS_Call(context, JS_GetProperty(context, exports, atom), JS_UNDEFINED, 0, NULL);
    for (JSContext *ran; JS_ExecutePendingJob(runtime, &ran) > 0;) {
    }
    failed = JS_IsException(result);
  }
  if (!failed) return;
  print_exception();
  abort();
}
#else
__attribute__((export_name("handle_event"))) const char *handle_event(const char *state, uint32_t state_bytes,
                                                                      const char *event, uint32_t event_bytes) {
  if (!context && start_engine(bundle, sizeof bundle) != 0) __builtin_trap();
  JSValue function = JS_GetPropertyStr(context, exports, "handle_event");
  JSValue arguments[] = {JS_NewStringLen(context, state, state_bytes), JS_NewStringLen(context, event, event_bytes)};
  JSValue result = JS_Call(context, function, JS_UNDEFINED, 2, (JSValueConst *)arguments);
  // The host reads it after this call and before the next: it is never freed, as in the
  // published module.
  return JS_IsException(result) ? exception_text() : JS_ToCString(context, result);
}
#endif
