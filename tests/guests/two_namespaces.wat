;; Imports from two other modules, which no module with a plugin does.
(module (import "a" "memory" (memory 1)) (import "b" "invoke" (func (param i32 i32 i32 i32 i32))) (func (export "_start")))
