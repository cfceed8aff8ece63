// mainMain has no body in Go, which the compiler allows only beside a file of assembly.
