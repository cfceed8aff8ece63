(module ;; Loops for ever without a host call.
  (memory (export "memory") 1)
  (func $spin (loop (br 0)))
  (func (export "_start") (call $spin)))
