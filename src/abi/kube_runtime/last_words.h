// What a guest printed about the panic that ended it.
//
// A panic prints its reason and its place in the source, and then traps. The trap itself only has
// the names of functions, if the module has any.
#pragma once

#include "abi/kube_runtime/output_lines.h"

#include <span>
#include <string>

namespace hangar::abi::kube_runtime {

// "panic: on purpose (main.run at main.go:94)" of Go, "panicked at src/main.rs:5:9: on purpose" of
// Rust; empty if the turn's output has neither. Printable ASCII, each part bounded by limits.h.
// Guests choose their output: this is a claim of the guest.
[[nodiscard]] std::string last_words(std::span<const OutputLine> output);

}  // namespace hangar::abi::kube_runtime
