//! What the functions of a file take, as far as its types and comments say it plainly.
//!
//! Invariant: what is not understood is open, never guessed; TypeScript's types win over JSDoc's. Deliberately no types of
//! other files.

mod jsdoc;
mod types;

use std::collections::BTreeMap;

use oxc_ast::ast::{
    BindingPattern, Declaration, ExportDefaultDeclarationKind, Expression, FormalParameter, FormalParameters, Program,
    Statement,
};
use serde_json::{Map, Value, json};

use jsdoc::{Doc, DocParam};
use types::{Shape, Types};

/// A function of a script, as a tool shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signature {
    /// What its comment says.
    pub description: Option<String>,
    /// JSON Schema of the tool's arguments; none is open.
    pub schema: Option<Value>,
    /// Names of arguments that are handed over one by one, in order; none: the function takes all of them as one object.
    pub by_name: Option<Vec<String>>,
}

/// The name of a type that a declaration declares.
pub(super) fn type_name<'p>(declaration: &'p Declaration<'_>) -> Option<&'p str> {
    match declaration {
        Declaration::TSTypeAliasDeclaration(it) => Some(it.id.name.as_str()),
        Declaration::TSInterfaceDeclaration(it) => Some(it.id.name.as_str()),
        _ => None,
    }
}

/// The functions at the top level of a file, by their names in it; a default export without a name is `default`.
pub(super) fn functions(program: &Program<'_>) -> BTreeMap<String, Signature> {
    let types = Types::of(program);
    let mut found = BTreeMap::new();
    for statement in &program.body {
        let mut add = |name: &str, parameters: &FormalParameters<'_>, start: u32| {
            let doc = types.doc(start).map(Doc::parse).unwrap_or_default();
            found.insert(name.to_owned(), signature(parameters, &doc, &types));
        };
        match statement {
            Statement::ExportDefaultDeclaration(it) => match &it.declaration {
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                    add(function.id.as_ref().map_or("default", |id| id.name.as_str()), &function.params, it.span.start);
                }
                other => {
                    if let Some(parameters) = other.as_expression().and_then(parameters) {
                        add("default", parameters, it.span.start);
                    }
                }
            },
            Statement::ExportDeclaration(it) => declared(&it.declaration, it.span.start, &mut add),
            other => {
                if let Some(declaration) = other.as_declaration() {
                    declared(declaration, oxc_span::GetSpan::span(other).start, &mut add);
                }
            }
        }
    }
    found
}

fn declared(declaration: &Declaration<'_>, start: u32, add: &mut dyn FnMut(&str, &FormalParameters<'_>, u32)) {
    match declaration {
        // Overloads have no body; the last one that has tells what is really taken.
        Declaration::FunctionDeclaration(function) if function.body.is_some() => {
            if let Some(id) = &function.id {
                add(&id.name, &function.params, start);
            }
        }
        Declaration::VariableDeclaration(variables) => {
            for variable in &variables.declarations {
                let name = variable.id.get_identifier_name();
                if let (Some(name), Some(parameters)) = (name, variable.init.as_ref().and_then(parameters)) {
                    add(&name, parameters, start);
                }
            }
        }
        _ => {}
    }
}

fn parameters<'p, 'a>(expression: &'p Expression<'a>) -> Option<&'p FormalParameters<'a>> {
    match expression.get_inner_expression() {
        Expression::ArrowFunctionExpression(it) => Some(&it.params),
        Expression::FunctionExpression(it) => Some(&it.params),
        _ => None,
    }
}

/// A parameter, as far as it is understood.
struct Parameter {
    name: Option<String>,
    shape: Option<Shape>,
    is_optional: bool,
}

impl Parameter {
    fn of(it: &FormalParameter<'_>, doc: &Doc, index: usize, types: &Types<'_, '_>) -> Self {
        let name = it.pattern.get_identifier_name().map(|name| name.to_string());
        let documented = doc.param(name.as_deref(), index);
        let written = it.type_annotation.as_ref().map(|annotation| types.shape(&annotation.type_annotation));
        let shape = written.unwrap_or_else(|| documented.and_then(DocParam::shape));
        let is_optional = it.optional
            || it.initializer.is_some()
            || documented.is_some_and(|it| it.is_optional)
            || shape.as_ref().is_some_and(|shape| shape.is_optional);
        Self { name, shape, is_optional }
    }

    fn is_object(&self) -> bool {
        self.shape.as_ref().is_some_and(|shape| shape.schema["type"] == "object")
    }
}

fn signature(parameters: &FormalParameters<'_>, doc: &Doc, types: &Types<'_, '_>) -> Signature {
    let items: &[FormalParameter<'_>] = &parameters.items;
    let has_ctx = items.last().is_some_and(|last| is_ctx(last, items.len()));
    let own = &items[..items.len() - usize::from(has_ctx)];
    let all: Vec<Parameter> = own.iter().enumerate().map(|(index, it)| Parameter::of(it, doc, index, types)).collect();
    let description = doc.text.clone();
    let is_plain = parameters.rest.is_none() && all.iter().all(|it| it.name.is_some() && it.shape.is_some());
    let open = Signature { description: description.clone(), schema: None, by_name: None };
    let object = |first: &Parameter| {
        let told = || doc.params.first().and_then(|it| it.path.split('.').next());
        let name = first.name.as_deref().or_else(told);
        let schema = match &first.shape {
            Some(shape) => Some(doc.describe_members(name, shape.schema.clone())),
            None => doc.object(name),
        };
        Signature { schema, ..open.clone() }
    };
    match all.as_slice() {
        [only] if only.is_object() => object(only),
        [_, ..] if is_plain => by_name(&all, doc, description),
        [first, ..] if first.is_object() || first.shape.is_none() && own[0].type_annotation.is_none() => object(first),
        _ => open,
    }
}

fn by_name(all: &[Parameter], doc: &Doc, description: Option<String>) -> Signature {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut names = Vec::new();
    for (index, parameter) in all.iter().enumerate() {
        let (Some(name), Some(shape)) = (&parameter.name, &parameter.shape) else { continue };
        let mut schema = doc.describe_members(Some(name), shape.schema.clone());
        let said = doc.param(Some(name), index).and_then(|it| it.text.clone());
        types::describe(&mut schema, said.as_deref());
        properties.insert(name.clone(), schema);
        names.push(name.clone());
        if !parameter.is_optional {
            required.push(Value::from(name.as_str()));
        }
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema["additionalProperties"] = false.into();
    Signature { description, schema: Some(schema), by_name: Some(names) }
}

/// Whether the last of several parameters, or the second, is the host's.
fn is_ctx(parameter: &FormalParameter<'_>, count: usize) -> bool {
    let name = match &parameter.pattern {
        BindingPattern::BindingIdentifier(id) => id.name.trim_start_matches('_').to_owned(),
        _ => String::new(),
    };
    let is_typed = parameter.type_annotation.as_ref().is_some_and(|it| types::names_ctx(&it.type_annotation));
    name == "ctx" || is_typed || count > 1 && name == "context" && parameter.type_annotation.is_none()
}
