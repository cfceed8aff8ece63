// The state machine runtime: QuickJS, the prelude (machine_prelude.js and its files for the majors of
// XState), and how the host talks to them. One such module serves all JavaScript bundles: the host evaluates the prelude once and each
// bundle once, keeps an image of the memory after each, and starts every step from there.
//
// The host calls, each on an instance of its own image:
//   start_runtime()                      once for all bundles
//   load_bundle(address, size)           once for each bundle
//   run(address, size, request, size of a, size of b)   one step; see requests in the prelude
// A result is address << 32 | size of UTF-8 JSON. Nothing is freed: each call begins at the image.
#include <quickjs.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(#name)))

// QuickJS checks its stack against the linear one; the host's own bound on frames comes later.
enum { kStackBytes = 640 * 1024 };
// Cycles of garbage are collected beyond this. Most steps end before.
enum { kCollectBytes = 32 * 1024 * 1024 };

// Free memory in a bundle's image, not written to: an instance whose memory grows is good for one
// step only.
enum { kRoomBytes = 1024 * 1024 };

static const char kPrelude[] = {
#embed "machine_prelude.js"
    , 0};
static const char kXState4[] = {
#embed "machine_xstate4.js"
    , 0};
static const char kXState5[] = {
#embed "machine_xstate5.js"
    , 0};

static JSContext *context;
static JSValue loaded_function;  // Of the prelude: what it does with a bundle that was evaluated.
static JSValue run_function;     // Of the prelude: one step.
static char *bundle;             // Exports and functions refer to its text.

static uint64_t packed(const char *text, size_t size) {
  return (uint64_t)(uintptr_t)text << 32 | (uint32_t)size;
}

static uint64_t fault(const char *kind, const char *text) {
  // The prelude words all other errors; this is for when nothing can be run any more.
  static char buffer[512];
  int size = snprintf(buffer, sizeof buffer, "{\"fault\":{\"kind\":\"%s\",\"message\":\"%s\"}}", kind, text);
  return packed(buffer, (size_t)size);
}

static int is_out_of_memory(JSValueConst exception) {
  JSValue message = JS_GetPropertyStr(context, exception, "message");
  const char *text = JS_ToCString(context, message);
  return text == NULL || strcmp(text, "out of memory") == 0;
}

// The result of a function of the prelude, which is a string.
static uint64_t text_of(JSValue value) {
  if (JS_IsException(value)) {
    JSValue exception = JS_GetException(context);
    return is_out_of_memory(exception) ? fault("LimitExceeded", "out of memory")
                                       : fault("GuestFault", "the machine runtime failed");
  }
  size_t size = 0;
  const char *text = JS_ToCStringLen(context, &size, value);
  return text == NULL ? fault("LimitExceeded", "out of memory") : packed(text, size);
}

static void print_text(JSValueConst value) {
  size_t size = 0;
  const char *text = JS_ToCStringLen(context, &size, value);
  if (text == NULL) return;
  for (size_t done = 0; done < size;) {
    ssize_t written = write(STDERR_FILENO, text + done, size - done);
    if (written <= 0) break;
    done += (size_t)written;
  }
  JS_FreeCString(context, text);
}

static JSValue print(JSContext *unused, JSValueConst self, int count, JSValueConst *arguments) {
  (void)unused, (void)self;
  if (count > 0) print_text(arguments[0]);
  return JS_UNDEFINED;
}

// A number from the host's randomness. Math.random of QuickJS would begin each step with the same
// number: its seed is in the image.
static JSValue random_number(JSContext *unused, JSValueConst self, int count, JSValueConst *arguments) {
  (void)unused, (void)self, (void)count, (void)arguments;
  uint64_t bits = 0;
  getentropy(&bits, sizeof bits);
  return JS_NewFloat64(context, (double)(bits >> 11) * 0x1p-53);
}

static void run_jobs(void) {
  JSContext *which = NULL;
  while (JS_ExecutePendingJob(JS_GetRuntime(context), &which) > 0) {
  }
}

EXPORT(alloc) void *alloc(uint32_t size) { return malloc(size); }

// Whether it is one that was not thrown. What was thrown is printed.
static int is_fine(JSValueConst value) {
  if (!JS_IsException(value)) return 1;
  print_text(JS_GetException(context));
  return 0;
}

EXPORT(start_runtime) uint32_t start_runtime(void) {
  JSRuntime *runtime = JS_NewRuntime();
  if (runtime == NULL) return 1;
  JS_SetMaxStackSize(runtime, kStackBytes);
  JS_SetGCThreshold(runtime, kCollectBytes);
  context = JS_NewContext(runtime);
  if (context == NULL) return 1;
  JSValue start = JS_Eval(context, kPrelude, sizeof kPrelude - 1, "prelude", JS_EVAL_TYPE_GLOBAL);
  JSValue xstate4 = JS_Eval(context, kXState4, sizeof kXState4 - 1, "xstate4", JS_EVAL_TYPE_GLOBAL);
  JSValue xstate5 = JS_Eval(context, kXState5, sizeof kXState5 - 1, "xstate5", JS_EVAL_TYPE_GLOBAL);
  if (!is_fine(start) || !is_fine(xstate4) || !is_fine(xstate5)) return 1;
  JSValue arguments[] = {JS_NewCFunction(context, print, "print", 1),
                         JS_NewCFunction(context, random_number, "random", 0), xstate4, xstate5};
  JSValue functions = JS_Call(context, start, JS_UNDEFINED, 4, arguments);
  if (!is_fine(functions)) return 1;
  loaded_function = JS_GetPropertyStr(context, functions, "loaded");
  run_function = JS_GetPropertyStr(context, functions, "run");
  JS_RunGC(runtime);
  return 0;
}

// Whether the last "export" of a bundle begins a statement, as bundlers write it: then it need not be
// tried as a script first. `text` ends with a null byte.
static int ends_with_exports(const char *text, size_t size) {
  static const char kExport[] = "export";
  for (const char *at = text + size; at-- > text;) {
    if (*at != 'e' || strncmp(at, kExport, sizeof kExport - 1) != 0) continue;
    return (at == text || strchr("\n;}", at[-1]) != NULL) && strchr(" {*", at[sizeof kExport - 1]) != NULL;
  }
  return 0;
}

// The bundle's exports, as a module or as a script (null then); sets `failed` to what it threw.
static JSValue evaluate(const char *text, size_t size, JSValue *failed) {
  JSValue code = JS_EXCEPTION;
  if (!ends_with_exports(text, size)) {
    code = JS_Eval(context, text, size, "bundle", JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_COMPILE_ONLY);
    if (JS_IsException(code)) JS_FreeValue(context, JS_GetException(context));
  }
  if (!JS_IsException(code)) {
    JSValue result = JS_EvalFunction(context, code);
    if (JS_IsException(result)) *failed = JS_GetException(context);
    run_jobs();
    return JS_NULL;
  }
  code = JS_Eval(context, text, size, "bundle", JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
  if (JS_IsException(code)) {
    *failed = JS_GetException(context);
    return JS_NULL;
  }
  JSModuleDef *module = JS_VALUE_GET_PTR(code);
  JSValue result = JS_EvalFunction(context, code);
  if (JS_IsException(result)) {
    *failed = JS_GetException(context);
    return JS_NULL;
  }
  run_jobs();
  JSPromiseStateEnum state = JS_PromiseState(context, result);
  if (state == JS_PROMISE_REJECTED) *failed = JS_PromiseResult(context, result);
  if (state == JS_PROMISE_PENDING) *failed = JS_NewString(context, "the bundle waits for something that never comes (await)");
  return state == JS_PROMISE_REJECTED || state == JS_PROMISE_PENDING ? JS_NULL
                                                                     : JS_GetModuleNamespace(context, module);
}

EXPORT(load_bundle) uint64_t load_bundle(const char *address, uint32_t size) {
  bundle = malloc((size_t)size + 1);
  if (bundle == NULL) return fault("LimitExceeded", "out of memory");
  memcpy(bundle, address, size);
  bundle[size] = 0;
  JSValue failed = JS_UNDEFINED;
  JSValue exports = evaluate(bundle, size, &failed);
  JSValue arguments[] = {exports, failed};
  uint64_t result = text_of(JS_Call(context, loaded_function, JS_UNDEFINED, 2, arguments));
  run_jobs();
  JS_RunGC(JS_GetRuntime(context));
  void *volatile room = malloc(kRoomBytes);  // Volatile: the compiler would leave both out.
  free(room);
  return result;
}

// `address` has a's bytes, then b's.
EXPORT(run) uint64_t run(const char *address, uint32_t size, uint32_t request, uint32_t size_a, uint32_t size_b) {
  (void)size;
  JSValue arguments[] = {JS_NewInt32(context, (int32_t)request), JS_NewStringLen(context, address, size_a),
                         JS_NewStringLen(context, address + size_a, size_b)};
  return text_of(JS_Call(context, run_function, JS_UNDEFINED, 3, arguments));
}
