(module ;; Imports a function that takes a vector.
  (import "env" "simd" (func (param v128)))
  (memory (export "memory") 1)
  (func (export "_start")))
