// Package hangar runs ordinary Go controllers, those of controller-runtime among them, as guests of
// hangar: WebAssembly modules that sleep on disk while they are idle.
//
// A program needs one change: hangar.GetConfigOrDie() instead of ctrl.GetConfigOrDie(). Compiled for any
// other platform than wasip1 it is the same program as before.
//
// Package guest contains the mechanism; docs/abi/kube-runtime.md is the contract.
package hangar
