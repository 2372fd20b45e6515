//! TypeScript to JavaScript by a transformer, for what cannot be blanked: enums, namespaces, parameter properties, decorators.
//!
//! Invariant: each place of the code leads back to the place in the source that it was made from. Decorators are those of
//! TypeScript's `experimentalDecorators`; JavaScript's own are not known to the transformer. Deliberately no type checking.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use greenroom_boundary::isolate::Places;
use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_semantic::SemanticBuilder;
use oxc_transformer::{DecoratorOptions, TransformOptions, Transformer};

use super::record::{Record, record};
use super::typescript::ScriptSyntaxError;

/// What transformed code imports its few helpers from.
pub(super) const HELPERS: &str = "@oxc-project/runtime/helpers/";

/// The helpers of decorators, as TypeScript defines them.
const HELPER_CODE: [(&str, &str); 3] = [
    (
        "decorate",
        "export default function decorate(decorators, target, key, desc) {\n  const count = arguments.length;\n  \
         let result = count < 3 ? target : desc === null ? Object.getOwnPropertyDescriptor(target, key) : desc;\n  \
         for (let at = decorators.length - 1; at >= 0; at--) {\n    const decorator = decorators[at];\n    \
         if (decorator) result = (count < 3 ? decorator(result) : count > 3 ? decorator(target, key, result) : decorator(target, key)) || result;\n  }\n  \
         if (count > 3 && result) Object.defineProperty(target, key, result);\n  return result;\n}\n",
    ),
    (
        "decorateParam",
        "export default function decorateParam(index, decorator) {\n  return (target, key) => decorator(target, key, index);\n}\n",
    ),
    ("decorateMetadata", "export default function decorateMetadata() {}\n"),
];

/// The code of a helper.
pub(super) fn helper(specifier: &str) -> Option<(String, &'static str)> {
    let name = specifier.strip_prefix(HELPERS)?;
    let (_, code) = HELPER_CODE.iter().find(|(known, _)| *known == name)?;
    Some((format!("greenroom:helpers/{name}"), code))
}

/// Code made from a program.
pub(super) struct Full {
    pub(super) code: Arc<str>,
    pub(super) places: Places,
    /// With places in the source.
    pub(super) record: Record,
}

/// Transforms a program that has been parsed without errors.
pub(super) fn transform<'a>(
    allocator: &'a Allocator,
    file: &str,
    source: &str,
    program: &mut Program<'a>,
) -> Result<Full, ScriptSyntaxError> {
    let refuse = |offset: Option<u32>, message: String| {
        ScriptSyntaxError::at(file, source, offset.map_or(0, |offset| offset as usize), message)
    };
    let semantic = SemanticBuilder::new().with_check_syntax_error(true).with_enum_eval(true).build(program);
    if let Some(error) = semantic.diagnostics.errors().next() {
        return Err(refuse(error.labels.first().map(|label| label.offset()), error.message.to_string()));
    }
    let scoping = semantic.semantic.into_scoping();
    let options = TransformOptions {
        decorator: DecoratorOptions { legacy: true, ..DecoratorOptions::default() },
        ..TransformOptions::default()
    };
    let transformed = Transformer::new(allocator, Path::new(file), &options).build_with_scoping(scoping, program);
    if let Some(error) = transformed.diagnostics.errors().next() {
        return Err(refuse(error.labels.first().map(|label| label.offset()), error.message.to_string()));
    }
    let options = CodegenOptions { source_map_path: Some(PathBuf::from(file)), ..CodegenOptions::default() };
    let printed = Codegen::new().with_options(options).with_source_text(source).build(program);
    let tokens = printed.map.iter().flat_map(|map| map.get_tokens().collect::<Vec<_>>());
    let pairs = tokens.map(|token| {
        let (code, from) = ((token.get_dst_line(), token.get_dst_col()), (token.get_src_line(), token.get_src_col()));
        ((code.0 + 1, code.1 + 1), (from.0 + 1, from.1 + 1))
    });
    Ok(Full { code: Arc::from(printed.code), places: Places::new(pairs.collect()), record: record(program) })
}
