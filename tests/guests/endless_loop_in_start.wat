(module ;; Spins before anybody calls it: in the start section.
  (memory (export "memory") 1)
  (func $spin (loop (br 0)))
  (start $spin)
  (func (export "_start")))
