(module ;; Traps in its start section.
  (memory (export "memory") 1)
  (func $boom unreachable)
  (start $boom)
  (func (export "_start")))
