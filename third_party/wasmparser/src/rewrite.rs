//! Rewrites a module so that the host can read and restore the state of its instances
//! (src/wasm/snapshot/rewrite.h).
#![forbid(unsafe_code)]

use crate::error::{Error, Result, ends_early};
use crate::header::{self, Bounds, Header, Kind, Section, id, is_plain, sections_of};
use crate::operators::{is_known, table_change};
use wasm_encoder::{DataSection, Encode, ExportKind, ExportSection};
use wasmparser::{
    CodeSectionReader, Data, DataKind, DataSectionReader, ExportSectionReader, FunctionBody,
    GlobalSectionReader, MemorySectionReader, Operator, OperatorsReader, OperatorsReaderAllocations,
    SectionLimited, ValType,
};

pub const RESERVED_PREFIX: &str = "hangar:";
const MEMORY_EXPORT: &str = "hangar:memory";
const START_EXPORT: &str = "hangar:start";

/// Bytes that are in memory before any code has run.
#[derive(Clone)]
pub struct Piece<'a> {
    pub address: u64,
    pub bytes: &'a [u8],
}

/// Everything about the rewritten module but its bytes.
pub struct Rewritten<'a> {
    pub pieces: Vec<Piece<'a>>, // Ascending, not overlapping, inside the memory.
    pub global_count: usize,    // Only mutable ones.
    pub has_start: bool,
    pub memory_bytes: Option<u64>,
}

pub enum Outcome<'a> {
    Rewritten(Rewritten<'a>),
    /// Why instances cannot have snapshots. Nothing was written.
    Obstacle(String),
}

/// `write` gets the rewritten module in pieces.
pub fn rewrite<'a>(module: &'a [u8], bounds: &Bounds, write: &mut dyn FnMut(&[u8])) -> Result<Outcome<'a>> {
    let header = header::read(module, bounds)?;
    let sections = sections_of(module).collect::<Result<Vec<_>>>()?;
    let survey = match Survey::of(&header, &sections, bounds) {
        Ok(survey) => survey,
        Err(obstacle) => return Ok(Outcome::Obstacle(obstacle.0)),
    };

    let mut exports = ExportSection::new();
    for each in &header.exports {
        exports.export(each.name, export_kind(each.kind), each.index);
    }
    for (position, index) in survey.mutable_globals.iter().enumerate() {
        exports.export(&format!("{RESERVED_PREFIX}global:{position}"), ExportKind::Global, *index);
    }
    if header.memory_bytes.is_some() {
        exports.export(MEMORY_EXPORT, ExportKind::Memory, 0);
    }
    if let Some(start) = survey.start {
        exports.export(START_EXPORT, ExportKind::Func, start);
    }
    if exports.len() > bounds.items {
        return Ok(Outcome::Obstacle("has too many mutable globals".into()));
    }
    assemble(module, &sections, &survey, &exports, write)?;
    Ok(Outcome::Rewritten(Rewritten {
        global_count: survey.mutable_globals.len(),
        has_start: survey.start.is_some(),
        memory_bytes: header.memory_bytes,
        pieces: survey.pieces,
    }))
}

fn export_kind(kind: Kind) -> ExportKind {
    match kind {
        Kind::Function => ExportKind::Func,
        Kind::Table => ExportKind::Table,
        Kind::Memory => ExportKind::Memory,
        Kind::Global => ExportKind::Global,
        Kind::Tag => ExportKind::Tag,
    }
}

struct Obstacle(String);
type Surveyed<T = ()> = std::result::Result<T, Obstacle>;

fn obstacle<T>(text: impl Into<String>) -> Surveyed<T> {
    Err(Obstacle(text.into()))
}

/// What has to be changed.
#[derive(Default)]
struct Survey<'a> {
    mutable_globals: Vec<u32>,
    start: Option<u32>,
    segments: Vec<Data<'a>>,
    pieces: Vec<Piece<'a>>,
    has_data_count: bool,
    drops_data: bool,
    keeps_data_section: bool,
}

impl<'a> Survey<'a> {
    fn of(header: &Header<'a>, sections: &[Section<'a>], bounds: &Bounds) -> Surveyed<Survey<'a>> {
        if let Some(import) = header.imports.iter().find(|each| each.kind != Kind::Function) {
            let name: String = import.name.chars().take(100).collect();
            return obstacle(format!("imports a {} ({}.{name})", import.kind.name(), import.module));
        }
        if header.exports.iter().any(|each| each.name.starts_with(RESERVED_PREFIX)) {
            return obstacle(format!("exports a name that begins with {RESERVED_PREFIX}"));
        }
        let mut survey = Survey::default();
        for section in sections {
            survey.section(header, section, bounds)?;
        }
        let has_passive = survey.segments.iter().any(|each| matches!(each.kind, DataKind::Passive));
        if survey.drops_data && has_passive {
            return obstacle("drops a segment of data (data.drop)");
        }
        survey.keeps_data_section = has_passive || survey.has_data_count;
        survey.place_data(header.memory_bytes.unwrap_or(0), bounds)?;
        Ok(survey)
    }

    fn section(&mut self, header: &Header<'a>, section: &Section<'a>, bounds: &Bounds) -> Surveyed {
        // A section that wasmparser does not read.
        let unknown =
            |_: wasmparser::Error| Obstacle(format!("has a section {} that is not understood", section.id));
        let mut reader = section.contents.clone();
        match section.id {
            id::MEMORY => {
                for memory in MemorySectionReader::new(reader).map_err(unknown)? {
                    if memory.map_err(unknown)?.shared {
                        return obstacle("has a shared memory");
                    }
                }
            }
            id::GLOBAL => self.globals(GlobalSectionReader::new(reader).map_err(unknown)?)?,
            id::EXPORT => {
                // The list is known to be well formed; the bytes after its last item are not.
                for export in ExportSectionReader::new(reader).map_err(unknown)? {
                    export.map_err(unknown)?;
                }
            }
            id::START => {
                let start = reader.read_var_u32().map_err(unknown)?;
                // All imports are functions.
                if start as usize >= header.imports.len() + header.function_count as usize {
                    return obstacle("has a start function that does not exist");
                }
                if !reader.eof() {
                    return obstacle("has a section 8 that is not understood");
                }
                self.start = Some(start);
            }
            id::DATA_COUNT => self.has_data_count = true,
            id::CODE => self.code(CodeSectionReader::new(reader).map_err(unknown)?)?,
            id::DATA => {
                let segments = DataSectionReader::new(reader).map_err(unknown)?;
                if segments.count() > bounds.data_segments {
                    return obstacle("has too many segments of data");
                }
                self.segments = collect(segments).map_err(unknown)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn globals(&mut self, globals: GlobalSectionReader<'a>) -> Surveyed {
        for (index, global) in (0..).zip(globals) {
            let Ok(global) = global else {
                return obstacle("has a global that is not understood");
            };
            if !is_plain(global.ty.content_type) || global.ty.shared {
                return obstacle("has a global of a type not known here");
            }
            let mut value = global.init_expr.get_operators_reader();
            while !value.eof() {
                if !value.read().is_ok_and(|operator| is_known(&operator)) {
                    return obstacle("has a global with an initial value that is not understood");
                }
            }
            if !global.ty.mutable {
                continue;
            }
            if matches!(global.ty.content_type, ValType::Ref(_)) {
                return obstacle("has a reference in a mutable global");
            }
            // No global is imported, so this is the global's index.
            self.mutable_globals.push(index);
        }
        Ok(())
    }

    fn code(&mut self, functions: CodeSectionReader<'a>) -> Surveyed {
        let mut allocations = OperatorsReaderAllocations::default();
        for function in functions {
            let Ok(function) = function else { return obstacle("has code that ends early") };
            allocations = self.function(&function, allocations)?;
        }
        Ok(())
    }

    fn function(
        &mut self,
        function: &FunctionBody<'a>,
        allocations: OperatorsReaderAllocations,
    ) -> Surveyed<OperatorsReaderAllocations> {
        const OTHER_LOCAL: &str = "has a local variable of another type";
        let mut locals = match function.get_locals_reader() {
            Ok(locals) => locals,
            Err(error) => return Err(not_read(&error)),
        };
        for _ in 0..locals.get_count() {
            match locals.read() {
                Ok((_, of)) if is_plain(of) => {}
                Err(error) if ends_early(&error) => return Err(not_read(&error)),
                _ => return obstacle(OTHER_LOCAL),
            }
        }
        let mut reader = OperatorsReader::new_with_allocs(locals.get_binary_reader(), allocations);
        while !reader.eof() {
            let offset = reader.original_position();
            let operator = reader.read().map_err(|error| not_read_at(&error, offset))?;
            if let Some(name) = table_change(&operator) {
                return obstacle(format!("writes to a table ({name})"));
            }
            match operator {
                Operator::ElemDrop { .. } => {
                    return obstacle("drops a segment of elements (elem.drop)");
                }
                Operator::DataDrop { .. } => self.drops_data = true,
                other if is_known(&other) => {}
                _ => return Err(not_known(offset)),
            }
        }
        Ok(reader.into_allocations())
    }

    fn place_data(&mut self, memory_bytes: u64, bounds: &Bounds) -> Surveyed {
        const PAGE_BYTES: u64 = 4096;
        for segment in &self.segments {
            let DataKind::Active { memory_index, offset_expr } = &segment.kind else { continue };
            if *memory_index != 0 {
                return obstacle("has data for another memory");
            }
            let mut reader = offset_expr.get_operators_reader();
            let address = match reader.read() {
                Ok(Operator::I32Const { value }) if reader.is_end_then_eof() => {
                    u64::from(value.cast_unsigned())
                }
                _ => return obstacle("has data at a computed address"),
            };
            // Also for an empty segment: such a module cannot be instantiated, and its compiled form
            // must say so.
            if address + segment.data.len() as u64 > memory_bytes {
                return obstacle("has data that does not lie in its memory");
            }
            if !segment.data.is_empty() {
                self.pieces.push(Piece { address, bytes: segment.data });
            }
        }
        self.pieces.sort_by_key(|piece| piece.address);
        let mut end = 0_u64;
        let mut pages = 0_u64; // Each piece may extend a byte to one or two pages.
        for piece in &self.pieces {
            if piece.address < end {
                return obstacle("has segments of data that overlap");
            }
            let begun = end.div_ceil(PAGE_BYTES);
            end = piece.address + piece.bytes.len() as u64;
            pages += end.div_ceil(PAGE_BYTES) - begun.max(piece.address / PAGE_BYTES);
        }
        if pages * PAGE_BYTES > bounds.image_bytes {
            return obstacle("has data that is scattered too widely");
        }
        Ok(())
    }
}

fn collect<'a, T: wasmparser::FromReader<'a>>(items: SectionLimited<'a, T>) -> wasmparser::Result<Vec<T>> {
    items.into_iter().collect()
}

fn not_known(offset: usize) -> Obstacle {
    Obstacle(format!("has an instruction at offset {offset} that is not known here"))
}

fn not_read(error: &wasmparser::Error) -> Obstacle {
    not_read_at(error, error.offset())
}

fn not_read_at(error: &wasmparser::Error, offset: usize) -> Obstacle {
    if ends_early(error) {
        return Obstacle("has a function that ends early".into());
    }
    not_known(offset)
}

/// All segments keep their indices, which instructions use. Formerly active ones become empty, which
/// is what they are after instantiation anyway.
fn without_active_data(segments: &[Data]) -> DataSection {
    let mut section = DataSection::new();
    for segment in segments {
        let kept: &[u8] = if matches!(segment.kind, DataKind::Passive) { segment.data } else { &[] };
        section.passive(kept.iter().copied());
    }
    section
}

fn assemble(
    module: &[u8],
    sections: &[Section],
    survey: &Survey,
    exports: &ExportSection,
    write: &mut dyn FnMut(&[u8]),
) -> Result<(), Error> {
    // A section with its id and size; `encoded` begins with the size.
    let mut encoded = Vec::new();
    let mut section = |id: u8, item: &dyn Encode, write: &mut dyn FnMut(&[u8])| {
        encoded.clear();
        item.encode(&mut encoded);
        write(&[id]);
        write(&encoded);
    };
    write(module.get(..header::PREAMBLE_BYTES).unwrap_or_default());
    let mut has_exports = exports.is_empty();
    for each in sections {
        if !has_exports && each.id != id::CUSTOM && id::rank(each.id) >= id::rank(id::EXPORT) {
            section(id::EXPORT, exports, write);
            has_exports = true;
        }
        match each.id {
            id::EXPORT if !exports.is_empty() => {}
            id::START => {}
            id::DATA => {
                if survey.keeps_data_section {
                    section(id::DATA, &without_active_data(&survey.segments), write);
                }
            }
            _ => {
                let bytes = each.bytes()?;
                let mut head = vec![each.id];
                bytes.len().encode(&mut head);
                write(&head);
                write(bytes);
            }
        }
    }
    if !has_exports {
        section(id::EXPORT, exports, write);
    }
    Ok(())
}
