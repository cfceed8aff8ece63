(module ;; Never gives the processor back.
  (memory (export "memory") 1)
  (func $spin (loop (br 0)))
  (func (export "_start") (call $spin)))
