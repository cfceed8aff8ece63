;; Javy's output for a bundle when the engine is linked dynamically.
(module (import "javy-default-plugin-v4" "invoke" (func (param i32 i32 i32 i32 i32))) (func (export "_start")))
