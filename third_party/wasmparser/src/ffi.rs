//! The C boundary: include/hangar_wasmparser.h.
#![allow(unsafe_code)]

use crate::error::{Kind, Result};
use crate::header::{self, Bounds, Custom, Header};
use crate::link::link;
use crate::rewrite::{Outcome, Rewritten, rewrite};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::slice;

const DONE: u8 = 0;
const INVALID: u8 = 1;
const LIMIT: u8 = 2;
const OBSTACLE: u8 = 3;

#[repr(C)]
pub struct Text {
    data: *const u8,
    size: usize,
}

impl Text {
    fn of(bytes: &[u8]) -> Text {
        Text { data: bytes.as_ptr(), size: bytes.len() }
    }
}

#[repr(C)]
pub struct ImportOut {
    module: Text,
    name: Text,
    signature: Text,
    kind: u8,
}

#[repr(C)]
pub struct ExportOut {
    name: Text,
    signature: Text,
    index: u32,
    kind: u8,
}

#[repr(C)]
pub struct CustomOut {
    name: Text,
    contents: Text,
    begin: usize,
    end: usize,
}

#[repr(C)]
pub struct PieceOut {
    address: u64,
    bytes: Text,
}

#[repr(C)]
pub struct Answer {
    status: u8,
    has_memory: bool,
    has_start: bool,
    function_count: u32,
    memory_bytes: u64,
    global_count: usize,
    message: Text,
    imports: *const ImportOut,
    import_count: usize,
    exports: *const ExportOut,
    export_count: usize,
    customs: *const CustomOut,
    custom_count: usize,
    pieces: *const PieceOut,
    piece_count: usize,
}

/// An answer with what it refers to. The pointers in `answer` are into the vectors' buffers, which
/// do not move with this.
#[repr(C)]
struct Owned {
    answer: Answer, // First, so that a pointer to it is one to this.
    message: String,
    imports: Vec<ImportOut>,
    exports: Vec<ExportOut>,
    customs: Vec<CustomOut>,
    pieces: Vec<PieceOut>,
    signatures: Vec<Rc<str>>,
}

impl Owned {
    fn new(status: u8, message: String) -> Owned {
        Owned {
            answer: Answer {
                status,
                has_memory: false,
                has_start: false,
                function_count: 0,
                memory_bytes: 0,
                global_count: 0,
                message: Text::of(&[]),
                imports: std::ptr::null(),
                import_count: 0,
                exports: std::ptr::null(),
                export_count: 0,
                customs: std::ptr::null(),
                custom_count: 0,
                pieces: std::ptr::null(),
                piece_count: 0,
            },
            message,
            imports: Vec::new(),
            exports: Vec::new(),
            customs: Vec::new(),
            pieces: Vec::new(),
            signatures: Vec::new(),
        }
    }

    fn done() -> Owned {
        Owned::new(DONE, String::new())
    }

    fn of_header(header: &Header) -> Owned {
        let mut owned = Owned::done();
        owned.answer.has_memory = header.memory_bytes.is_some();
        owned.answer.memory_bytes = header.memory_bytes.unwrap_or(0);
        owned.answer.has_start = header.has_start;
        owned.answer.function_count = header.function_count;
        for import in &header.imports {
            owned.imports.push(ImportOut {
                module: Text::of(import.module.as_bytes()),
                name: Text::of(import.name.as_bytes()),
                signature: Text::of(import.signature.as_bytes()),
                kind: import.kind as u8,
            });
            owned.signatures.push(import.signature.clone());
        }
        for export in &header.exports {
            owned.exports.push(ExportOut {
                name: Text::of(export.name.as_bytes()),
                signature: Text::of(export.signature.as_bytes()),
                index: export.index,
                kind: export.kind as u8,
            });
            owned.signatures.push(export.signature.clone());
        }
        owned.add_customs(&header.customs);
        owned
    }

    fn add_customs(&mut self, customs: &[Custom]) {
        self.customs.extend(customs.iter().map(|custom| CustomOut {
            name: Text::of(custom.name.as_bytes()),
            contents: Text::of(custom.contents),
            begin: custom.begin,
            end: custom.end,
        }));
    }

    fn of_rewritten(rewritten: &Rewritten) -> Owned {
        let mut owned = Owned::done();
        owned.answer.has_memory = rewritten.memory_bytes.is_some();
        owned.answer.memory_bytes = rewritten.memory_bytes.unwrap_or(0);
        owned.answer.has_start = rewritten.has_start;
        owned.answer.global_count = rewritten.global_count;
        owned.pieces.extend(
            rewritten
                .pieces
                .iter()
                .map(|piece| PieceOut { address: piece.address, bytes: Text::of(piece.bytes) }),
        );
        owned
    }

    fn give(mut self) -> *const Answer {
        self.answer.message = Text::of(self.message.as_bytes());
        self.answer.imports = self.imports.as_ptr();
        self.answer.import_count = self.imports.len();
        self.answer.exports = self.exports.as_ptr();
        self.answer.export_count = self.exports.len();
        self.answer.customs = self.customs.as_ptr();
        self.answer.custom_count = self.customs.len();
        self.answer.pieces = self.pieces.as_ptr();
        self.answer.piece_count = self.pieces.len();
        Box::into_raw(Box::new(self)).cast_const().cast()
    }
}

/// Makes an answer of what `work` returns; of a panic as well.
fn answer(work: impl FnOnce() -> Result<Owned>) -> *const Answer {
    let owned = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(owned)) => owned,
        Ok(Err(error)) => {
            let status = if error.kind == Kind::Limit { LIMIT } else { INVALID };
            Owned::new(status, error.message)
        }
        Err(_) => Owned::new(INVALID, "is not understood: its reader stopped at an error of its own".into()),
    };
    owned.give()
}

/// # Safety
/// `data` and `size` describe bytes that outlive the result, or `size` is zero.
unsafe fn view<'a>(data: *const u8, size: usize) -> &'a [u8] {
    if size == 0 {
        return &[];
    }
    unsafe { slice::from_raw_parts(data, size) }
}

type Write = extern "C" fn(*mut c_void, *const u8, usize);

/// # Safety
/// As include/hangar_wasmparser.h says of it; so for the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hangar_wasm_read_header(
    module: *const u8,
    size: usize,
    bounds: &Bounds,
) -> *const Answer {
    let module = unsafe { view(module, size) };
    answer(|| Ok(Owned::of_header(&header::read(module, bounds)?)))
}

/// # Safety
/// See above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hangar_wasm_customs(
    module: *const u8,
    size: usize,
    prefix: *const u8,
    prefix_size: usize,
    bounds: &Bounds,
) -> *const Answer {
    let module = unsafe { view(module, size) };
    let prefix = unsafe { view(prefix, prefix_size) };
    answer(|| {
        let mut owned = Owned::done();
        // A name is UTF-8, so none begins with other bytes.
        if let Ok(prefix) = str::from_utf8(prefix) {
            owned.add_customs(&header::customs_of(module, prefix, bounds)?);
        }
        Ok(owned)
    })
}

/// # Safety
/// See above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hangar_wasm_rewrite(
    module: *const u8,
    size: usize,
    bounds: &Bounds,
    write: Write,
    to: *mut c_void,
) -> *const Answer {
    let module = unsafe { view(module, size) };
    answer(|| {
        let outcome = rewrite(module, bounds, &mut |bytes| write(to, bytes.as_ptr(), bytes.len()))?;
        Ok(match outcome {
            Outcome::Rewritten(rewritten) => Owned::of_rewritten(&rewritten),
            Outcome::Obstacle(text) => Owned::new(OBSTACLE, text),
        })
    })
}

/// # Safety
/// See above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hangar_wasm_link(
    module: *const u8,
    size: usize,
    plugin: *const u8,
    plugin_size: usize,
    bounds: &Bounds,
    write: Write,
    to: *mut c_void,
) -> *const Answer {
    let module = unsafe { view(module, size) };
    let plugin = unsafe { view(plugin, plugin_size) };
    answer(|| {
        let linked = link(module, plugin, bounds)?;
        write(to, linked.as_ptr(), linked.len());
        Ok(Owned::done())
    })
}

/// # Safety
/// `answer` is from one of the functions above, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hangar_wasm_free(answer: *const Answer) {
    drop(unsafe { Box::from_raw(answer.cast_mut().cast::<Owned>()) });
}
