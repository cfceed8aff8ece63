//! What a module declares: its sections, imports and exports.
#![forbid(unsafe_code)]

use crate::error::{Result, invalid, limit};
use std::fmt::Write;
use std::rc::Rc;
use wasmparser::{BinaryReader, FuncType, GlobalType, MemoryType, TableType, TagType, ValType};

/// The bounds of `src/wasm/limits.h` and `src/base/limits.h`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Bounds {
    pub items: u32,
    pub functions: u32,
    pub name_bytes: u32,
    pub data_segments: u32,
    pub image_bytes: u64,
}

pub mod id {
    pub const CUSTOM: u8 = 0;
    pub const TYPE: u8 = 1;
    pub const IMPORT: u8 = 2;
    pub const FUNCTION: u8 = 3;
    pub const TABLE: u8 = 4;
    pub const MEMORY: u8 = 5;
    pub const GLOBAL: u8 = 6;
    pub const EXPORT: u8 = 7;
    pub const START: u8 = 8;
    pub const ELEMENT: u8 = 9;
    pub const CODE: u8 = 10;
    pub const DATA: u8 = 11;
    pub const DATA_COUNT: u8 = 12;
    pub const TAG: u8 = 13;

    /// The order in which sections must come; it differs from that of their ids.
    pub const ORDER: [u8; 13] =
        [TYPE, IMPORT, FUNCTION, TABLE, MEMORY, TAG, GLOBAL, EXPORT, START, ELEMENT, DATA_COUNT, CODE, DATA];

    /// The position among the others.
    pub fn rank(section: u8) -> Option<usize> {
        ORDER.iter().position(|each| *each == section)
    }
}

pub const PREAMBLE_BYTES: usize = 8;

/// The kinds of the core specification, by their codes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Function,
    Table,
    Memory,
    Global,
    Tag,
}

impl Kind {
    fn from_code(code: u8) -> Option<Kind> {
        [Kind::Function, Kind::Table, Kind::Memory, Kind::Global, Kind::Tag]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Function => "function",
            Kind::Table => "table",
            Kind::Memory => "memory",
            Kind::Global => "global",
            Kind::Tag => "tag",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Import<'a> {
    pub module: &'a str,
    pub name: &'a str,
    pub kind: Kind,
    /// Empty unless it is a function.
    pub signature: Rc<str>,
}

#[derive(Clone, Debug)]
pub struct Export<'a> {
    pub name: &'a str,
    pub kind: Kind,
    pub signature: Rc<str>,
    pub index: u32,
}

/// A custom section; the whole of it is `module[begin..end]`.
#[derive(Clone, Debug)]
pub struct Custom<'a> {
    pub name: &'a str,
    pub contents: &'a [u8],
    pub begin: usize,
    pub end: usize,
}

#[derive(Clone)]
pub struct Section<'a> {
    pub id: u8,
    /// Where the section begins, with its id and size.
    pub begin: usize,
    pub contents: BinaryReader<'a>,
}

impl<'a> Section<'a> {
    pub fn bytes(&self) -> Result<&'a [u8]> {
        rest_of(self.contents.clone())
    }
}

#[derive(Default)]
pub struct Header<'a> {
    pub imports: Vec<Import<'a>>,
    pub exports: Vec<Export<'a>>,
    pub customs: Vec<Custom<'a>>,
    pub memory_bytes: Option<u64>,
    pub function_count: u32,
    pub has_start: bool,
}

impl<'a> Header<'a> {
    pub fn export(&self, name: &str) -> Option<&Export<'a>> {
        self.exports.iter().find(|each| each.name == name)
    }
    pub fn custom(&self, name: &str) -> Option<&Custom<'a>> {
        self.customs.iter().find(|each| each.name == name)
    }
    pub fn function_imports(&self) -> usize {
        self.imports.iter().filter(|each| each.kind == Kind::Function).count()
    }
}

fn rest_of<'a>(mut reader: BinaryReader<'a>) -> Result<&'a [u8]> {
    Ok(reader.read_bytes(reader.bytes_remaining())?)
}

/// The sections of a module whose preamble was checked, in its order. Any ids.
pub fn sections_of<'a>(module: &'a [u8]) -> impl Iterator<Item = Result<Section<'a>>> {
    let after = module.get(PREAMBLE_BYTES..).unwrap_or_default();
    let mut reader = BinaryReader::new(after, PREAMBLE_BYTES);
    let mut failed = false;
    std::iter::from_fn(move || {
        if failed || reader.eof() {
            return None;
        }
        let begin = reader.original_position();
        let mut next = || Ok(Section { begin, id: reader.read_u8()?, contents: reader.read_reader()? });
        let section = next();
        failed = section.is_err();
        Some(section)
    })
}

fn custom<'a>(section: &Section<'a>) -> Result<Custom<'a>> {
    let mut reader = section.contents.clone();
    Ok(Custom {
        name: reader.read_unlimited_string()?,
        contents: rest_of(reader)?,
        begin: section.begin,
        end: section.contents.range().end,
    })
}

/// The custom sections whose names begin with `prefix`.
pub fn customs_of<'a>(module: &'a [u8], prefix: &str, bounds: &Bounds) -> Result<Vec<Custom<'a>>> {
    let mut found = Vec::new();
    for section in sections_of(module) {
        let section = section?;
        if section.id != id::CUSTOM {
            continue;
        }
        let custom = custom(&section)?;
        if custom.name.starts_with(prefix) {
            add(&mut found, custom, bounds)?;
        }
    }
    Ok(found)
}

fn add<'a>(to: &mut Vec<Custom<'a>>, custom: Custom<'a>, bounds: &Bounds) -> Result<()> {
    if to.len() >= bounds.items as usize {
        return limit("too many custom sections");
    }
    to.push(custom);
    Ok(())
}

pub fn read<'a>(module: &'a [u8], bounds: &Bounds) -> Result<Header<'a>> {
    let mut walk = Walk { bounds, signatures: Vec::new(), types: Vec::new(), header: Header::default() };
    let mut expected = 0;
    for section in sections_of(module) {
        let section = section?;
        if section.id == id::CUSTOM {
            name(&mut section.contents.clone(), bounds)?;
            add(&mut walk.header.customs, custom(&section)?, bounds)?;
            continue;
        }
        let offset = section.contents.range().start;
        let Some(rank) = id::rank(section.id) else {
            return invalid(format!("has a section of unknown kind {} at offset {offset}", section.id));
        };
        if rank < expected {
            return invalid(format!("has section {} twice or out of order at offset {offset}", section.id));
        }
        expected = rank + 1;
        walk.section(section.id, section.contents)?;
    }
    Ok(walk.header)
}

/// Collects a header, section by section.
struct Walk<'a, 'b> {
    bounds: &'b Bounds,
    signatures: Vec<Rc<str>>, // By type.
    types: Vec<u32>,          // By function, imported ones first.
    header: Header<'a>,
}

impl<'a> Walk<'a, '_> {
    fn section(&mut self, section: u8, mut reader: BinaryReader<'a>) -> Result<()> {
        // wasmtime keeps some hundred bytes for each, and sixteen in each instance.
        const GLOBALS_MAX: u32 = 100_000;
        match section {
            id::TYPE => self.types(reader),
            id::IMPORT => self.imports(reader),
            id::FUNCTION => self.functions(reader),
            id::MEMORY => self.memories(reader),
            id::GLOBAL => count(&mut reader, "globals", GLOBALS_MAX).map(|_| ()),
            id::EXPORT => self.exports(reader),
            id::START => {
                self.header.has_start = true;
                Ok(())
            }
            _ => Ok(()), // Left to the compiler.
        }
    }

    fn types(&mut self, mut reader: BinaryReader<'a>) -> Result<()> {
        // Each takes a byte of the module, and sixteen of the memory of every process that has it
        // loaded, in which nobody counts them. Large programs have some thousand.
        const VALUES_MAX: usize = 200_000;
        let mut all_values = 0;
        for index in 0..count(&mut reader, "types", self.bounds.items)? {
            const FUNCTION_FORM: u8 = 0x60;
            if reader.read_u8()? != FUNCTION_FORM {
                return invalid(format!(
                    "type {index} is not a function: garbage collected types are not supported"
                ));
            }
            let offset = reader.original_position();
            let function: FuncType = reader.read()?;
            all_values += function.params().len() + function.results().len();
            if all_values > VALUES_MAX {
                return limit(format!("has types of more than {VALUES_MAX} parameters and results together"));
            }
            let mut text = values(function.params(), offset)?;
            text += " -> ";
            text += &values(function.results(), offset)?;
            self.signatures.push(text.into());
        }
        Ok(())
    }

    fn imports(&mut self, mut reader: BinaryReader<'a>) -> Result<()> {
        for index in 0..count(&mut reader, "imports", self.bounds.items)? {
            let module = name(&mut reader, self.bounds)?;
            let name = name(&mut reader, self.bounds)?;
            let code = reader.read_u8()?;
            let Some(kind) = Kind::from_code(code) else {
                return invalid(format!("import {index} is of unknown kind {code}"));
            };
            let mut signature = Rc::default();
            match kind {
                Kind::Function => {
                    let function = self.function_type(&mut reader)?;
                    signature = self.signature(function);
                    self.types.push(function);
                }
                Kind::Table => {
                    let offset = reader.original_position();
                    let table: TableType = reader.read()?;
                    value(ValType::Ref(table.element_type), offset)?;
                }
                Kind::Memory => self.memory(&mut reader)?,
                Kind::Global => {
                    let offset = reader.original_position();
                    let global: GlobalType = reader.read()?;
                    value(global.content_type, offset)?;
                }
                Kind::Tag => {
                    let tag: TagType = reader.read()?;
                    self.check_type(tag.func_type_idx, reader.original_position())?;
                }
            }
            self.header.imports.push(Import { module, name, kind, signature });
        }
        Ok(())
    }

    fn functions(&mut self, mut reader: BinaryReader<'a>) -> Result<()> {
        let count = count(&mut reader, "functions", self.bounds.functions)?;
        for _ in 0..count {
            let function = self.function_type(&mut reader)?;
            self.types.push(function);
        }
        self.header.function_count = count;
        Ok(())
    }

    fn memories(&mut self, mut reader: BinaryReader<'a>) -> Result<()> {
        for _ in 0..count(&mut reader, "memories", self.bounds.items)? {
            self.memory(&mut reader)?;
        }
        Ok(())
    }

    fn memory(&mut self, reader: &mut BinaryReader<'a>) -> Result<()> {
        const PAGE_BYTES: u64 = 65536;
        const PAGES_MAX: u64 = 65536;
        let memory: MemoryType = reader.read()?;
        if self.header.memory_bytes.is_some() {
            return invalid("has more than one memory");
        }
        if memory.memory64 {
            return invalid("has a 64-bit memory: build it for wasm32");
        }
        if memory.page_size_log2.is_some() {
            return invalid("has a memory with pages of another size than 64 KiB");
        }
        if memory.initial > PAGES_MAX {
            return invalid("has a memory of more than 4 GiB");
        }
        self.header.memory_bytes = Some(memory.initial * PAGE_BYTES);
        Ok(())
    }

    fn exports(&mut self, mut reader: BinaryReader<'a>) -> Result<()> {
        for position in 0..count(&mut reader, "exports", self.bounds.items)? {
            let name = name(&mut reader, self.bounds)?;
            let code = reader.read_u8()?;
            let Some(kind) = Kind::from_code(code) else {
                return invalid(format!("export {position} is of unknown kind {code}"));
            };
            let index = reader.read_var_u32()?;
            let mut signature = Rc::default();
            if kind == Kind::Function {
                let Some(function) = self.types.get(index as usize) else {
                    return invalid(format!(
                        "export {position} is function {index}, but there are {}",
                        self.types.len()
                    ));
                };
                signature = self.signature(*function);
            }
            self.header.exports.push(Export { name, kind, signature, index });
        }
        Ok(())
    }

    fn function_type(&self, reader: &mut BinaryReader<'a>) -> Result<u32> {
        let index = reader.read_var_u32()?;
        self.check_type(index, reader.original_position())?;
        Ok(index)
    }

    fn check_type(&self, index: u32, offset: usize) -> Result<()> {
        let count = self.signatures.len();
        if (index as usize) < count {
            return Ok(());
        }
        invalid(format!("function of type {index} at offset {offset}, but there are {count} types"))
    }

    fn signature(&self, index: u32) -> Rc<str> {
        self.signatures.get(index as usize).cloned().unwrap_or_default()
    }
}

/// The length of a list whose items take at least one byte each, so that a false length is found
/// before memory is allocated for it.
fn count(reader: &mut BinaryReader, what: &str, most: u32) -> Result<u32> {
    let value = reader.read_var_u32()?;
    if value > most {
        return limit(format!("{value} {what}, the most is {most}"));
    }
    if value as usize > reader.bytes_remaining() {
        return invalid(format!("ends early at offset {}", reader.original_position()));
    }
    Ok(value)
}

fn name<'a>(reader: &mut BinaryReader<'a>, bounds: &Bounds) -> Result<&'a str> {
    let mut ahead = reader.clone();
    let length = ahead.read_var_u32()?;
    if length > bounds.name_bytes {
        return limit(format!(
            "the name at offset {} has {length} bytes, the most is {}",
            ahead.original_position(),
            bounds.name_bytes
        ));
    }
    Ok(reader.read_unlimited_string()?)
}

fn value(of: ValType, offset: usize) -> Result<&'static str> {
    match of {
        ValType::I32 => Ok("i32"),
        ValType::I64 => Ok("i64"),
        ValType::F32 => Ok("f32"),
        ValType::F64 => Ok("f64"),
        ValType::V128 => Ok("v128"),
        ValType::FUNCREF => Ok("funcref"),
        ValType::EXTERNREF => Ok("externref"),
        ValType::Ref(_) => invalid(format!(
            "a value type at offset {offset} is {of}: garbage collected types are not supported"
        )),
    }
}

/// As wat writes it: "(i32, i64)".
fn values(types: &[ValType], offset: usize) -> Result<String> {
    // Longer lists are only compared with ours, which are short, so they are not written out: ten
    // thousand imports may share one type of a thousand values.
    const WRITTEN_OUT: usize = 16;
    let mut text = String::from("(");
    for (index, each) in types.iter().enumerate() {
        let name = value(*each, offset)?;
        if index < WRITTEN_OUT {
            let _ = write!(text, "{}{name}", if index > 0 { ", " } else { "" });
        }
    }
    text += if types.len() > WRITTEN_OUT { ", ...)" } else { ")" };
    Ok(text)
}

/// True for numbers, vectors, and references without a type of their own.
pub fn is_plain(of: ValType) -> bool {
    value(of, 0).is_ok()
}
