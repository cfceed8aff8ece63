// Names of functions in a module, as the guest's author knows them.
#pragma once

#include <string>
#include <string_view>

namespace hangar::wasm::internal {

// The name that a compiler has written into a module, in the form of its language:
//
//   Go    main.__Cache_go.shape.int__.Get     main.(*Cache[...]).Get
//   Rust  _ZN4main3run17h0123456789abcdefE    main::run
//   Rust  _RNvNtCs1234_4main5inner3run        main::inner::run
//   C++   _ZN6flight3runEv                    flight::run
//
// Hashes, arguments and the content of type arguments are left out; "/" and "-" in the path of a Go
// package stay "_", because Go's linker writes all of them as "_". Names of other forms are
// returned as they are. Takes linear time: full demanglers take exponential time on hostile names.
// The result may contain any bytes.
[[nodiscard]] std::string readable_name(std::string_view name);

}  // namespace hangar::wasm::internal
