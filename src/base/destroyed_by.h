// A deleter that lets std::unique_ptr own an object of a C library:
//
//   using Key = std::unique_ptr<EVP_PKEY, DestroyedBy<EVP_PKEY_free>>;
#pragma once

namespace hangar {

template <auto destroy>
struct DestroyedBy {
  template <class T>
  void operator()(T* object) const {
    destroy(object);
  }
};

}  // namespace hangar
