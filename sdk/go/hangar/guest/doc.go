// Package guest is what a Go program needs to be a guest of hangar: the exports that the host calls, and an
// http.RoundTripper whose requests the host sends, to the API server and to other servers that it allows. It needs the standard library only, so that it can be added
// to a program without changing the program's other dependencies: `hangar build go` does so.
//
// On other platforms than wasip1 it does nothing.
//
// # How it works
//
// The module is a reactor (-buildmode=c-shared). Between two calls of the host it has nothing on the native
// stack: the stacks of all goroutines are in linear memory, which hangar writes to disk. The host passes the
// answers to requests (wakeup) and then calls run_until_idle, which returns when every goroutine waits. Go's
// runtime itself shows when that is: it polls for the idle descriptor and for its next timer.
//
// docs/abi/kube-runtime.md has the contract.
package guest
