// The entry point of a module, in place of the C library's crt1-command.o (link with -nostartfiles).
//
// A command runs its constructors when _start is called. Older C libraries leave that to the
// linker, which then wraps *every* export in "constructors, call, destructors". The host calls
// exports later and in between: a flight's malloc in the middle of a lookup, an operator's allocate
// and wakeup for as long as it lives. Each of these calls would construct the globals of the
// running program again. If the constructors are called by name, as newer C libraries do, the
// linker wraps nothing.

extern void __wasm_call_ctors(void);
extern void __wasm_call_dtors(void);
extern int __main_void(void);
extern _Noreturn void __wasi_proc_exit(int code);

// An operator goes on after main has returned, so its destructors do not run. Null in a flight.
extern void wakeup(unsigned long long id, unsigned is_finished, void *address, unsigned size_bytes)
    __attribute__((weak));

__attribute__((export_name("_start"))) void _start(void) {
  __wasm_call_ctors();
  const int code = __main_void();
  if (!wakeup) __wasm_call_dtors();
  if (code != 0) __wasi_proc_exit(code);
}
