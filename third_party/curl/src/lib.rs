// Empty: this crate exists for its Cargo.lock.
