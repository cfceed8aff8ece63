//! What the instructions of a module mean for snapshots and for linking.
#![forbid(unsafe_code)]

use wasmparser::Operator;

// The proposals whose instructions are known: those that src/wasm/code_config.h turns on, and threads.
macro_rules! is_known_proposal {
    (mvp) => {
        true
    };
    (sign_extension) => {
        true
    };
    (saturating_float_to_int) => {
        true
    };
    (bulk_memory) => {
        true
    };
    (reference_types) => {
        true
    };
    (tail_call) => {
        true
    };
    (threads) => {
        true
    };
    (simd) => {
        true
    };
    (relaxed_simd) => {
        true
    };
    ($other:ident) => {
        false
    };
}

/// False for instructions of other proposals, such as garbage collection and exceptions.
pub fn is_known(operator: &Operator) -> bool {
    macro_rules! by_proposal {
        ($(@$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })? => $visit:ident ($($ann:tt)*))*) => {
            match operator {
                $(Operator::$op { .. } => is_known_proposal!($proposal),)*
                _ => false,
            }
        };
    }
    wasmparser::for_each_operator!(by_proposal)
}

/// The name of an instruction that changes a table.
pub fn table_change(operator: &Operator) -> Option<&'static str> {
    match operator {
        Operator::TableSet { .. } => Some("table.set"),
        Operator::TableInit { .. } => Some("table.init"),
        Operator::TableCopy { .. } => Some("table.copy"),
        Operator::TableGrow { .. } => Some("table.grow"),
        Operator::TableFill { .. } => Some("table.fill"),
        _ => None,
    }
}
