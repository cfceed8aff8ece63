// The entry point of a flight, in place of the C library's crt1-command.o (link with
// -nostartfiles).
//
// A command runs its constructors when _start is called. Older C libraries leave that to the
// linker, which then wraps *every* export in "constructors, call, destructors". The host calls the
// export malloc in the middle of a lookup, and the globals of the running flight would be made anew
// by it. Calling the constructors by name, as newer C libraries do, tells the linker to wrap
// nothing.

extern void __wasm_call_ctors(void);
extern void __wasm_call_dtors(void);
extern int __main_void(void);
extern _Noreturn void __wasi_proc_exit(int code);

__attribute__((export_name("_start"))) void _start(void) {
  __wasm_call_ctors();
  const int code = __main_void();
  __wasm_call_dtors();
  if (code != 0) __wasi_proc_exit(code);
}
