(module ;; Reads past the end of its memory.
  (memory (export "memory") 1)
  (func (export "_start") (drop (i32.load (i32.const 65536)))))
