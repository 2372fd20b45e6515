//! Which names of a file are used as values, and which are only types.
//!
//! Invariant: a name that may be a value counts as one. Deliberately no scopes: a name that is used anywhere as a value keeps
//! an import of that name, as more than is needed is linked, never less.

use std::collections::BTreeSet;

use oxc_ast::ast::{
    Declaration, ExportNamedDeclaration, IdentifierReference, ImportOrExportKind, Program, Statement, TSClassImplements,
    TSInterfaceDeclaration, TSType, TSTypeAliasDeclaration, TSTypeAnnotation, TSTypeParameterDeclaration,
    TSTypeParameterInstantiation,
};
use oxc_ast_visit::Visit;

use crate::scripts::record::declared_names;
use crate::scripts::signature::type_name;

/// The names of a file.
#[derive(Default)]
pub(super) struct Uses {
    values: BTreeSet<String>,
    types: BTreeSet<String>,
}

impl Uses {
    /// Of a whole program.
    pub(super) fn of(program: &Program<'_>) -> Self {
        let mut uses = Self::default();
        let (mut types, mut declared) = (BTreeSet::new(), BTreeSet::new());
        for statement in &program.body {
            let declaration = match statement {
                Statement::ExportDeclaration(it) => Some(&it.declaration),
                other => other.as_declaration(),
            };
            types.extend(declaration.and_then(type_name).map(str::to_owned));
            if let Some(declaration) = declaration {
                declared_names(declaration, &mut |name| declared.extend([name.to_owned()]));
            }
            match declaration {
                Some(Declaration::TSEnumDeclaration(it)) => drop(declared.insert(it.id.name.to_string())),
                Some(Declaration::TSNamespaceDeclaration(it)) => drop(declared.insert(it.id.name.to_string())),
                _ => {}
            }
            if let Statement::ImportDeclaration(it) = statement {
                declared.extend(it.specifiers.iter().flatten().map(|it| it.local().name.to_string()));
            }
        }
        uses.types = types.into_iter().filter(|name| !declared.contains(name)).collect();
        uses.visit_program(program);
        uses
    }

    /// Whether a name is used as a value anywhere.
    pub(super) fn as_value(&self, name: &str) -> bool {
        self.values.contains(name)
    }

    /// Whether a name of the file is a type and nothing else.
    pub(super) fn is_type(&self, name: &str) -> bool {
        self.types.contains(name)
    }
}

impl<'a> Visit<'a> for Uses {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.values.insert(it.name.to_string());
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        if it.export_kind == ImportOrExportKind::Type {
            return;
        }
        for name in it.specifiers.iter().filter(|name| name.export_kind == ImportOrExportKind::Value) {
            self.values.insert(name.local.name().to_string());
        }
    }

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}

    fn visit_ts_type_annotation(&mut self, _: &TSTypeAnnotation<'a>) {}

    fn visit_ts_type_parameter_declaration(&mut self, _: &TSTypeParameterDeclaration<'a>) {}

    fn visit_ts_type_parameter_instantiation(&mut self, _: &TSTypeParameterInstantiation<'a>) {}

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}

    fn visit_ts_interface_declaration(&mut self, _: &TSInterfaceDeclaration<'a>) {}

    fn visit_ts_type_alias_declaration(&mut self, _: &TSTypeAliasDeclaration<'a>) {}
}
