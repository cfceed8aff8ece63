// Package hangar runs ordinary Go controllers, those of controller-runtime among them, as guests of
// hangar: WebAssembly modules that are asleep on disk while they have nothing to do.
//
// A program needs one line: hangar.GetConfigOrDie() where it said ctrl.GetConfigOrDie(). Compiled for any
// other platform than wasip1 it is the same program as before.
//
// Package guest has what makes it a guest; docs/abi/kube-runtime.md the contract.
package hangar
