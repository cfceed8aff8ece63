(module ;; Loops for ever in its start section, before any export is called.
  (memory (export "memory") 1)
  (func $spin (loop (br 0)))
  (start $spin)
  (func (export "_start")))
