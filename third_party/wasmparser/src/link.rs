//! Links a module and its plugin into one module (src/wasm/plugin.h). The plugin's items keep their
//! indices, so that its code is unchanged; the module's items follow them.
#![forbid(unsafe_code)]

use crate::error::{Error, Kind as ErrorKind, Result, invalid};
use crate::header::{self, Bounds, Header, Import, Kind, Section, id, is_plain, sections_of};
use crate::operators::is_known;
use wasm_encoder::reencode::{self, Reencode, RoundtripReencoder};
use wasm_encoder::{
    CodeSection, DataCountSection, DataSection, ExportKind, ExportSection, Function, FunctionSection,
    GlobalSection, Instruction, Module, RawSection, StartSection, TypeSection,
};
use wasmparser::{
    BinaryReader, CodeSectionReader, DataKind, DataSectionReader, FromReader, FunctionSectionReader,
    GlobalSectionReader, OperatorsReader, SectionLimited, TypeSectionReader, ValType,
};

/// The section in which Javy's plugins name the namespace that their modules import from. Older
/// plugins lack it.
const NAMESPACE_SECTION: &str = "import_namespace";
const MEMORY_NAME: &str = "memory";
const NO_VALUES: &str = "() -> ()";
/// Messages quote the namespace.
const NAMESPACE_BYTES_MAX: usize = 200;

/// The module or the plugin.
struct Side<'a> {
    header: Header<'a>,
    sections: [Option<Section<'a>>; id::ORDER.len() + 1],
}

impl<'a> Side<'a> {
    fn read(module: &'a [u8], bounds: &Bounds) -> Result<Side<'a>> {
        let header = header::read(module, bounds)?;
        let mut sections = <[Option<Section>; id::ORDER.len() + 1]>::default();
        for section in sections_of(module) {
            let section = section?;
            if section.id != id::CUSTOM
                && let Some(place) = sections.get_mut(section.id as usize)
            {
                *place = Some(section);
            }
        }
        Ok(Side { header, sections })
    }

    fn section(&self, id: u8) -> Option<&Section<'a>> {
        self.sections.get(id as usize)?.as_ref()
    }

    /// The items of a section that is a list.
    fn items<T: FromReader<'a>>(&self, id: u8) -> Result<SectionLimited<'a, T>> {
        let none = BinaryReader::new(&[0], 0);
        let reader = self.section(id).map_or(none, |section| section.contents.clone());
        Ok(SectionLimited::new(reader)?)
    }

    fn count(&self, id: u8) -> Result<u32> {
        Ok(self.items::<u32>(id)?.count())
    }

    fn start(&self) -> Result<Option<u32>> {
        let start = self.section(id::START).map(|section| section.contents.clone().read_var_u32());
        Ok(start.transpose()?)
    }

    fn function_count(&self) -> u32 {
        self.header.function_imports() as u32 + self.header.function_count
    }
}

pub fn link(module: &[u8], plugin: &[u8], bounds: &Bounds) -> Result<Vec<u8>> {
    let module = Side::read(module, bounds)?;
    let plugin = Side::read(plugin, bounds)
        .map_err(|error| Error { message: format!("its plugin: {}", error.message), ..error })?;
    check_plugin(&plugin)?;
    check_module(&module)?;
    let functions = resolve_imports(&module, &plugin)?;
    let mut linking = Linking {
        functions,
        plugin_functions: plugin.function_count(),
        module_functions: module.header.function_count,
        types: Span::of(&module, &plugin, id::TYPE)?,
        globals: Span::of(&module, &plugin, id::GLOBAL)?,
        data: Span::of(&module, &plugin, id::DATA)?,
    };
    let start = choose_start(&module, &plugin, &linking)?;
    write(&module, &plugin, &mut linking, start)
}

fn check_plugin(plugin: &Side) -> Result<()> {
    match plugin.header.imports.iter().find(|import| import.kind != Kind::Function) {
        None => Ok(()),
        Some(import) => invalid(format!(
            "its plugin imports a {} ({}.{}): a plugin has all but its functions itself",
            import.kind.name(),
            import.module,
            import.name
        )),
    }
}

fn check_module(module: &Side) -> Result<()> {
    for (id, what) in [(id::MEMORY, "memory"), (id::TABLE, "table"), (id::TAG, "tag")] {
        if module.count(id)? > 0 {
            return invalid(format!(
                "has a {what} of its own besides the plugin's: it cannot be linked with one"
            ));
        }
    }
    if module.count(id::ELEMENT)? > 0 {
        return invalid("has elements for a table of the plugin's");
    }
    Ok(())
}

/// For each function that the module imports, the plugin's.
fn resolve_imports(module: &Side, plugin: &Side) -> Result<Vec<u32>> {
    let Some(first) = module.header.imports.first() else { return Ok(Vec::new()) };
    let from = first.module;
    if let Some(named) = plugin.header.custom(NAMESPACE_SECTION)
        && named.contents != from.as_bytes()
    {
        let quoted = named.contents.get(..NAMESPACE_BYTES_MAX).unwrap_or(named.contents);
        return invalid(format!(
            "wants the plugin {from}, and was given {}: use the one it was built with",
            String::from_utf8_lossy(quoted)
        ));
    }
    let mut functions = Vec::new();
    for import in &module.header.imports {
        if import.module != from {
            return invalid(format!(
                "imports from {from} and from {}: it gets all from its plugin",
                import.module
            ));
        }
        functions.extend(resolve(import, module, plugin)?);
    }
    Ok(functions)
}

/// The plugin's function, unless the import is the memory.
fn resolve(import: &Import, module: &Side, plugin: &Side) -> Result<Option<u32>> {
    let kind = import.kind.name();
    let name = format!("{}.{}", import.module, import.name);
    let signature = &import.signature;
    if import.kind != Kind::Function && import.kind != Kind::Memory {
        return invalid(format!(
            "imports the {kind} {name}: only functions and the memory of a plugin are for others"
        ));
    }
    let Some(found) = plugin.header.export(import.name) else {
        return invalid(format!("imports the {kind} {name}{signature}, which its plugin does not export"));
    };
    if found.kind != import.kind || found.signature != import.signature {
        return invalid(format!(
            "imports {name} as a {kind}{signature}, and its plugin exports a {}{}",
            found.kind.name(),
            found.signature
        ));
    }
    if import.kind == Kind::Function {
        return Ok(Some(found.index));
    }
    if module.header.memory_bytes > plugin.header.memory_bytes {
        return invalid(format!(
            "imports a memory of {} bytes, and its plugin's has {}",
            module.header.memory_bytes.unwrap_or(0),
            plugin.header.memory_bytes.unwrap_or(0)
        ));
    }
    Ok(None)
}

enum Start {
    Existing(u32),
    /// A new function calls these.
    Calls(Vec<u32>),
}

fn choose_start(module: &Side, plugin: &Side, linking: &Linking) -> Result<Option<Start>> {
    let mut calls: Vec<u32> = plugin.start()?.into_iter().collect();
    if let Some(initialize) = plugin.header.export("_initialize")
        && &*initialize.signature == NO_VALUES
    {
        calls.push(initialize.index);
    }
    if !calls.is_empty() && has_active_data(module)? {
        return invalid(
            "has data at fixed addresses, and its plugin a start function that could see them too early",
        );
    }
    if let Some(start) = module.start()? {
        calls.push(linking.function(start)?);
    }
    Ok(match calls.as_slice() {
        [] => None,
        [one] => Some(Start::Existing(*one)),
        _ => Some(Start::Calls(calls)),
    })
}

fn has_active_data(module: &Side) -> Result<bool> {
    let segments: DataSectionReader = module.items(id::DATA)?;
    for segment in segments {
        if !matches!(segment?.kind, DataKind::Passive) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The module's items of one kind, of which the plugin has `before`.
struct Span {
    before: u32,
    count: u32,
}

impl Span {
    fn of(module: &Side, plugin: &Side, id: u8) -> Result<Span> {
        Ok(Span { before: plugin.count(id)?, count: module.count(id)? })
    }

    fn at(&self, index: u32, what: &str) -> Result<u32> {
        match self.before.checked_add(index) {
            Some(linked) if index < self.count => Ok(linked),
            _ => invalid(format!("names {what} that it does not have")),
        }
    }
}

/// Maps the module's indices to those in the linked module.
struct Linking {
    functions: Vec<u32>, // For each import of the module, the plugin's function.
    plugin_functions: u32,
    module_functions: u32,
    types: Span,
    globals: Span,
    data: Span,
}

impl Linking {
    fn function(&self, index: u32) -> Result<u32> {
        if let Some(of_plugin) = self.functions.get(index as usize) {
            return Ok(*of_plugin);
        }
        let own = index - self.functions.len() as u32;
        if own < self.module_functions {
            return Ok(self.plugin_functions + own);
        }
        invalid(format!("names a function {index} that it does not have"))
    }
}

type Reencoded<T> = std::result::Result<T, reencode::Error<Error>>;

fn given<T>(result: Result<T>) -> Reencoded<T> {
    result.map_err(reencode::Error::UserError)
}

fn not_understood<T>(what: &str, offset: usize) -> Reencoded<T> {
    given(invalid(format!("has {what} at offset {offset} that is not understood")))
}

impl Reencode for Linking {
    type Error = Error;

    fn function_index(&mut self, index: u32) -> Reencoded<u32> {
        given(self.function(index))
    }
    fn type_index(&mut self, index: u32) -> Reencoded<u32> {
        given(self.types.at(index, "a type"))
    }
    fn global_index(&mut self, index: u32) -> Reencoded<u32> {
        given(self.globals.at(index, "a global"))
    }
    fn data_index(&mut self, index: u32) -> Reencoded<u32> {
        given(self.data.at(index, "data"))
    }
    fn table_index(&mut self, _: u32) -> Reencoded<u32> {
        given(invalid("uses a table that it does not have"))
    }
    fn element_index(&mut self, _: u32) -> Reencoded<u32> {
        given(invalid("uses elements that it does not have"))
    }
    fn tag_index(&mut self, _: u32) -> Reencoded<u32> {
        given(invalid("uses a tag that it does not have"))
    }

    fn val_type(&mut self, of: ValType) -> Reencoded<wasm_encoder::ValType> {
        if !is_plain(of) {
            return given(invalid(format!("has a value of type {of} that is not understood")));
        }
        reencode::utils::val_type(self, of)
    }

    fn parse_instruction<'a>(&mut self, reader: &mut OperatorsReader<'a>) -> Reencoded<Instruction<'a>> {
        let offset = reader.original_position();
        match reader.read() {
            Ok(operator) if is_known(&operator) => self.instruction(operator),
            _ => not_understood("an instruction", offset),
        }
    }
}

impl<E: Into<Error>> From<reencode::Error<E>> for Error {
    fn from(error: reencode::Error<E>) -> Self {
        match error {
            reencode::Error::UserError(error) => error.into(),
            reencode::Error::ParseError(error) => error.into(),
            other => {
                let what = match other {
                    reencode::Error::InvalidConstExpr => "a constant expression",
                    _ => "a type",
                };
                let message = format!("has {what} that is not understood");
                Error { kind: ErrorKind::Invalid, message }
            }
        }
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// A section to which both may add items.
macro_rules! both {
    ($section:ident, $reader:ident, $parse:ident, $id:expr, $module:expr, $plugin:expr, $linking:expr) => {{
        let mut section = $section::new();
        let of_plugin: $reader = $plugin.items($id)?;
        let of_module: $reader = $module.items($id)?;
        RoundtripReencoder.$parse(&mut section, of_plugin)?;
        $linking.$parse(&mut section, of_module)?;
        section
    }};
}

fn write(module: &Side, plugin: &Side, linking: &mut Linking, start: Option<Start>) -> Result<Vec<u8>> {
    let mut types =
        both!(TypeSection, TypeSectionReader, parse_type_section, id::TYPE, module, plugin, linking);
    let mut functions = both!(
        FunctionSection,
        FunctionSectionReader,
        parse_function_section,
        id::FUNCTION,
        module,
        plugin,
        linking
    );
    let globals =
        both!(GlobalSection, GlobalSectionReader, parse_global_section, id::GLOBAL, module, plugin, linking);
    let data = both!(DataSection, DataSectionReader, parse_data_section, id::DATA, module, plugin, linking);
    let mut code = code(module, plugin, linking)?;
    let start = match start {
        None => None,
        Some(Start::Existing(function)) => Some(function),
        Some(Start::Calls(calls)) => {
            functions.function(types.len());
            types.ty().function([], []);
            let mut body = Function::new([]);
            for function in calls {
                body.instruction(&Instruction::Call(function));
            }
            body.instruction(&Instruction::End);
            code.function(&body);
            Some(linking.plugin_functions + linking.module_functions)
        }
    };

    let mut out = Module::new();
    if !types.is_empty() {
        out.section(&types);
    }
    keep(&mut out, plugin, id::IMPORT)?;
    if !functions.is_empty() {
        out.section(&functions);
    }
    for id in [id::TABLE, id::MEMORY, id::TAG] {
        keep(&mut out, plugin, id)?;
    }
    if !globals.is_empty() {
        out.section(&globals);
    }
    out.section(&exports(module, plugin, linking)?);
    if let Some(function_index) = start {
        out.section(&StartSection { function_index });
    }
    keep(&mut out, plugin, id::ELEMENT)?;
    if !data.is_empty() {
        out.section(&DataCountSection { count: data.len() });
    }
    if !code.is_empty() {
        out.section(&code);
    }
    if !data.is_empty() {
        out.section(&data);
    }
    Ok(out.finish())
}

/// Copies a section of the plugin to which the module adds nothing.
fn keep(out: &mut Module, plugin: &Side, id: u8) -> Result<()> {
    if let Some(section) = plugin.section(id) {
        out.section(&RawSection { id, data: section.bytes()? });
    }
    Ok(())
}

fn exports(module: &Side, plugin: &Side, linking: &Linking) -> Result<ExportSection> {
    let mut section = ExportSection::new();
    for export in &module.header.exports {
        match export.kind {
            Kind::Function => section.export(export.name, ExportKind::Func, linking.function(export.index)?),
            Kind::Global => {
                section.export(export.name, ExportKind::Global, linking.globals.at(export.index, "a global")?)
            }
            Kind::Memory => section.export(export.name, ExportKind::Memory, export.index),
            other => return invalid(format!("exports a {} that it does not have", other.name())),
        };
    }
    if let Some(memory) = plugin.header.export(MEMORY_NAME)
        && memory.kind == Kind::Memory
        && module.header.export(MEMORY_NAME).is_none()
    {
        section.export(MEMORY_NAME, ExportKind::Memory, memory.index);
    }
    Ok(section)
}

/// The plugin's functions as they are, then the module's with other indices.
fn code(module: &Side, plugin: &Side, linking: &mut Linking) -> Result<CodeSection> {
    let mut section = CodeSection::new();
    let of_plugin: CodeSectionReader = plugin.items(id::CODE)?;
    for function in of_plugin {
        section.raw(function?.as_bytes());
    }
    let of_module: CodeSectionReader = module.items(id::CODE)?;
    for function in of_module {
        linking.parse_function_body(&mut section, function?)?;
    }
    Ok(section)
}
