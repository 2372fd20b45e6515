//! What a file imports and exports.
//!
//! Invariant: only what is left when types are gone is in a record, so that it says what an engine will link. Deliberately one
//! file at a time: what the names mean in other files is `graph`'s.

use std::collections::BTreeMap;

use oxc_ast::ast::{
    BindingPattern, Declaration, ExportDefaultDeclarationKind, ExportSpecifier, IdentifierReference, ImportAttributeKey,
    ImportDeclarationSpecifier, ImportExpression, ModuleExportName, Program, Statement, StringLiteral, WithClause,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan;

/// A place, in bytes from the start of the text that the record was made from.
pub(super) type Offset = u32;

/// A module that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// As it is written.
    pub(super) specifier: String,
    /// Where it is written first.
    pub(super) at: Offset,
    /// An import attribute that is not `type: "json"`.
    pub(super) attribute: Option<(String, Offset)>,
}

/// A name that an import asks a module for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Index of the request.
    pub(super) request: usize,
    /// The name there; none is the whole module.
    pub(super) name: Option<String>,
    /// Where it is written.
    pub(super) at: Offset,
}

/// What an exported name is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Export {
    /// Something of this file, by its name here; `default` for what has none.
    Own(String),
    /// Something of another file.
    Other(Wanted),
}

/// What a file imports and exports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// It has an `import` or an `export`.
    pub(super) is_module: bool,
    pub(super) requests: Vec<Request>,
    pub(super) wanted: Vec<Wanted>,
    pub(super) exports: BTreeMap<String, Export>,
    /// Requests all of whose names are exported.
    pub(super) stars: Vec<usize>,
    /// The first `import()`.
    pub(super) dynamic: Option<Offset>,
    /// The first `require`, `module` or `exports`, if it is no module.
    pub(super) commonjs: Option<Offset>,
}

/// Reads a program without types.
pub(super) fn record(program: &Program<'_>) -> Record {
    let mut reader = Reader::default();
    for statement in &program.body {
        reader.statement(statement);
    }
    let mut dynamic = Dynamic { imports: None, commonjs: None };
    dynamic.visit_program(program);
    let mut record = reader.record;
    record.dynamic = dynamic.imports;
    record.commonjs = dynamic.commonjs.filter(|_| !record.is_module);
    for export in record.exports.values_mut() {
        if let Export::Own(local) = export
            && let Some(wanted) = reader.imported.get(local)
        {
            *export = Export::Other(wanted.clone());
        }
    }
    record
}

#[derive(Default)]
struct Reader {
    record: Record,
    /// Imported names, as they are called here.
    imported: BTreeMap<String, Wanted>,
}

impl Reader {
    fn statement(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ImportDeclaration(it) => {
                let request = self.request(&it.source, it.with_clause.as_deref());
                for specifier in it.specifiers.iter().flatten() {
                    let (name, local) = match specifier {
                        ImportDeclarationSpecifier::ImportSpecifier(it) => (Some(text(&it.imported)), &it.local),
                        ImportDeclarationSpecifier::ImportDefaultSpecifier(it) => (Some("default".to_owned()), &it.local),
                        ImportDeclarationSpecifier::ImportNamespaceSpecifier(it) => (None, &it.local),
                    };
                    let wanted = Wanted { request, name, at: specifier.span().start };
                    self.imported.insert(local.name.to_string(), wanted.clone());
                    self.record.wanted.push(wanted);
                }
            }
            Statement::ExportAllDeclaration(it) => {
                let request = self.request(&it.source, it.with_clause.as_deref());
                match &it.exported {
                    Some(name) => {
                        let wanted = Wanted { request, name: None, at: it.span.start };
                        self.record.exports.insert(text(name), Export::Other(wanted));
                    }
                    None => self.record.stars.push(request),
                }
            }
            Statement::ExportFromDeclaration(it) => {
                let request = self.request(&it.source, it.with_clause.as_deref());
                for specifier in &it.specifiers {
                    let wanted = Wanted { request, name: Some(text(&specifier.local)), at: specifier.span.start };
                    self.record.exports.insert(text(&specifier.exported), Export::Other(wanted.clone()));
                    self.record.wanted.push(wanted);
                }
            }
            Statement::ExportNamedDeclaration(it) => it.specifiers.iter().for_each(|specifier| self.export_list(specifier)),
            Statement::ExportDeclaration(it) => {
                self.record.is_module = true;
                declared_names(&it.declaration, &mut |name| self.export(name, name));
            }
            Statement::ExportDefaultDeclaration(it) => {
                let named = match &it.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.id.as_ref(),
                    ExportDefaultDeclarationKind::ClassDeclaration(class) => class.id.as_ref(),
                    _ => None,
                };
                self.export("default", named.map_or("default", |id| id.name.as_str()));
            }
            _ => {}
        }
    }

    fn export(&mut self, name: &str, local: &str) {
        self.record.is_module = true;
        self.record.exports.insert(name.to_owned(), Export::Own(local.to_owned()));
    }

    fn export_list(&mut self, specifier: &ExportSpecifier<'_>) {
        self.export(&text(&specifier.exported), &text(&specifier.local));
    }

    fn request(&mut self, source: &StringLiteral<'_>, with: Option<&WithClause<'_>>) -> usize {
        self.record.is_module = true;
        let attribute = with.into_iter().flat_map(|with| &with.with_entries).find_map(|entry| {
            let key = match &entry.key {
                ImportAttributeKey::Identifier(name) => name.name.as_str(),
                ImportAttributeKey::StringLiteral(name) => name.value.as_str(),
            };
            let is_json = key == "type" && entry.value.value == "json";
            (!is_json).then(|| (format!("{key}: {:?}", entry.value.value.as_str()), entry.span.start))
        });
        let known = self.record.requests.iter_mut().position(|request| request.specifier == source.value.as_str());
        let index = known.unwrap_or_else(|| {
            let (specifier, at) = (source.value.to_string(), source.span.start);
            self.record.requests.push(Request { specifier, at, attribute: None });
            self.record.requests.len() - 1
        });
        if attribute.is_some() {
            self.record.requests[index].attribute = attribute;
        }
        index
    }
}

fn text(name: &ModuleExportName<'_>) -> String {
    name.name().to_string()
}

/// The names of the variables, functions and classes that a declaration declares.
pub(super) fn declared_names(declaration: &Declaration<'_>, each: &mut dyn FnMut(&str)) {
    match declaration {
        Declaration::VariableDeclaration(it) => it.declarations.iter().for_each(|it| bound_names(&it.id, each)),
        Declaration::FunctionDeclaration(it) => it.id.iter().for_each(|id| each(&id.name)),
        Declaration::ClassDeclaration(it) => it.id.iter().for_each(|id| each(&id.name)),
        _ => {}
    }
}

fn bound_names(pattern: &BindingPattern<'_>, each: &mut dyn FnMut(&str)) {
    for id in pattern.get_binding_identifiers() {
        each(&id.name);
    }
}

/// Finds what a module graph cannot have.
struct Dynamic {
    imports: Option<Offset>,
    commonjs: Option<Offset>,
}

impl<'a> Visit<'a> for Dynamic {
    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        self.imports = self.imports.or(Some(it.span.start));
        walk::walk_import_expression(self, it);
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if matches!(it.name.as_str(), "require" | "module" | "exports") {
            self.commonjs = self.commonjs.or(Some(it.span.start));
        }
    }
}
