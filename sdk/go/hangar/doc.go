// Package hangar runs ordinary Go controllers, those of controller-runtime among them, as guests of
// hangar: WebAssembly modules that are asleep on disk while they have nothing to do.
//
// A program needs one line: hangar.GetConfigOrDie() where it said ctrl.GetConfigOrDie(). Compiled for any
// other platform than wasip1 it is the same program as before.
//
// # How it works
//
// The module is a reactor (-buildmode=c-shared). Between two calls of the host nothing of it is on the
// native stack: the stacks of all goroutines lie in linear memory, which is what hangar writes to disk. The
// host hands over the answers to requests (wakeup) and then calls run_until_idle, which returns when every
// goroutine waits. Go's runtime says so by itself: it polls for the idle descriptor and for its next timer.
//
// docs/abi/kube-runtime.md has the contract.
package hangar
