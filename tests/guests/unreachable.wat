(module ;; Traps two calls deep: the backtrace names all three functions, demangled.
  (memory (export "memory") 1)
  (func $_ZN6flight5inner17h0123456789abcdefE unreachable)
  (func $outer (call $_ZN6flight5inner17h0123456789abcdefE))
  (func (export "_start") (call $outer)))
