//! Types of TypeScript as JSON Schema.
//!
//! Invariant: a schema accepts whatever the type accepts; a type that has no plain schema has none. Types are looked up in
//! the same file, a few levels deep. Deliberately no generics but arrays and records.

use std::cell::Cell;
use std::collections::BTreeMap;

use oxc_ast::ast::{
    Declaration, Expression, Program, Statement, TSInterfaceDeclaration, TSLiteral, TSSignature, TSTupleElement, TSType,
    TSTypeName, TSTypeOperatorOperator, TSTypeReference,
};
use serde_json::{Map, Value, json};

use super::jsdoc::Doc;

/// Deepest nesting that is followed; below it everything is accepted.
const DEEPEST: usize = 8;
/// Most types of a file that are looked at.
const MOST_TYPES: usize = 20_000;

/// A type, understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) schema: Value,
    /// It may be left out: `undefined` is among its values.
    pub(super) is_optional: bool,
}

impl Shape {
    fn of(schema: Value) -> Self {
        Self { schema, is_optional: false }
    }
}

/// The named types of a file.
pub(super) struct Types<'p, 'a> {
    /// JSDoc comments by the place of what they stand before.
    docs: BTreeMap<u32, &'a str>,
    /// How many more types are looked at: types that name each other could else grow without end.
    budget: Cell<usize>,
    aliases: BTreeMap<&'p str, &'p TSType<'a>>,
    interfaces: BTreeMap<&'p str, &'p TSInterfaceDeclaration<'a>>,
}

impl<'p, 'a> Types<'p, 'a> {
    pub(super) fn of(program: &'p Program<'a>) -> Self {
        let (mut aliases, mut interfaces) = (BTreeMap::new(), BTreeMap::new());
        for statement in &program.body {
            let declaration = match statement {
                Statement::ExportDeclaration(it) => Some(&it.declaration),
                other => other.as_declaration(),
            };
            match declaration {
                Some(Declaration::TSTypeAliasDeclaration(it)) if it.type_parameters.is_none() => {
                    aliases.insert(it.id.name.as_str(), &it.type_annotation);
                }
                Some(Declaration::TSInterfaceDeclaration(it)) if it.type_parameters.is_none() => {
                    interfaces.insert(it.id.name.as_str(), &**it);
                }
                _ => {}
            }
        }
        let docs = program.comments.iter().filter(|comment| comment.is_jsdoc()).filter_map(|comment| {
            let text = program.source_text.get(comment.span.start as usize..comment.span.end as usize)?;
            Some((comment.attached_to, text))
        });
        Self { docs: docs.collect(), budget: Cell::new(MOST_TYPES), aliases, interfaces }
    }

    /// The JSDoc comment before what starts here.
    pub(super) fn doc(&self, start: u32) -> Option<&'a str> {
        self.docs.get(&start).copied()
    }

    /// The schema of a type; `None` if it has no plain one.
    pub(super) fn shape(&self, of: &TSType<'a>) -> Option<Shape> {
        self.at_depth(of, DEEPEST)
    }

    fn at_depth(&self, of: &TSType<'a>, depth: usize) -> Option<Shape> {
        let depth = depth.checked_sub(1)?;
        self.budget.set(self.budget.get().checked_sub(1)?);
        let plain = |name: &str| Some(Shape::of(json!({"type": name})));
        match of {
            TSType::TSStringKeyword(_) | TSType::TSTemplateLiteralType(_) => plain("string"),
            TSType::TSNumberKeyword(_) => plain("number"),
            TSType::TSBooleanKeyword(_) => plain("boolean"),
            TSType::TSNullKeyword(_) => plain("null"),
            TSType::TSObjectKeyword(_) => plain("object"),
            TSType::TSUndefinedKeyword(_) | TSType::TSVoidKeyword(_) => {
                Some(Shape { schema: json!({"not": {}}), is_optional: true })
            }
            TSType::TSLiteralType(it) => literal(&it.literal).map(|value| Shape::of(json!({"const": value}))),
            TSType::TSParenthesizedType(it) => self.at_depth(&it.type_annotation, depth),
            TSType::TSArrayType(it) => Some(self.array(Some(&it.element_type), depth)),
            TSType::TSTupleType(it) => Some(self.tuple(&it.element_types, depth)),
            TSType::TSTypeOperatorType(it) if it.operator == TSTypeOperatorOperator::Readonly => {
                self.at_depth(&it.type_annotation, depth)
            }
            TSType::TSUnionType(it) => self.union(&it.types, depth),
            TSType::TSTypeLiteral(it) => Some(Shape::of(self.object(&it.members, depth))),
            TSType::TSTypeReference(it) => self.named(it, depth),
            TSType::TSIntersectionType(it) => self.intersection(&it.types, depth),
            _ => None,
        }
    }

    fn array(&self, items: Option<&TSType<'a>>, depth: usize) -> Shape {
        let mut schema = json!({"type": "array"});
        if let Some(items) = items.and_then(|items| self.at_depth(items, depth)) {
            schema["items"] = items.schema;
        }
        Shape::of(schema)
    }

    fn tuple(&self, elements: &[TSTupleElement<'a>], depth: usize) -> Shape {
        let plain: Option<Vec<&TSType<'a>>> = elements.iter().map(TSTupleElement::as_ts_type).collect();
        let Some(plain) = plain.filter(|all| !all.iter().any(|it| matches!(it, TSType::TSNamedTupleMember(_)))) else {
            return self.array(None, depth);
        };
        let items: Vec<Value> = plain.iter().map(|it| self.at_depth(it, depth).map_or(json!({}), |it| it.schema)).collect();
        Shape::of(json!({"type": "array", "prefixItems": items, "minItems": items.len(), "maxItems": items.len()}))
    }

    fn union(&self, types: &[TSType<'a>], depth: usize) -> Option<Shape> {
        let members: Vec<Shape> = types.iter().map(|it| self.at_depth(it, depth)).collect::<Option<_>>()?;
        let is_optional = members.iter().any(|it| it.is_optional);
        let schemas: Vec<Value> = members.into_iter().filter(|it| !it.is_optional).map(|it| it.schema).collect();
        let schema = match schemas.as_slice() {
            [] => json!({"not": {}}),
            [only] => only.clone(),
            all if all.iter().all(|it| it.get("const").is_some()) => {
                let values: Vec<&Value> = all.iter().map(|it| &it["const"]).collect();
                let mut schema = json!({"enum": values});
                if values.iter().all(|it| it.is_string()) {
                    schema = json!({"type": "string", "enum": values});
                }
                schema
            }
            all if all.iter().all(|it| it.as_object().is_some_and(|it| it.len() == 1 && it.contains_key("type"))) => {
                json!({"type": all.iter().map(|it| it["type"].clone()).collect::<Vec<_>>()})
            }
            all => json!({"anyOf": all}),
        };
        Some(Shape { schema, is_optional })
    }

    fn object(&self, members: &[TSSignature<'a>], depth: usize) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut others = None;
        for member in members {
            match member {
                TSSignature::TSPropertySignature(it) => {
                    let Some(name) = it.key.static_name().filter(|_| !it.computed) else { continue };
                    let shape = it.type_annotation.as_ref().and_then(|it| self.at_depth(&it.type_annotation, depth));
                    let is_optional = it.optional || shape.as_ref().is_some_and(|it| it.is_optional);
                    let mut schema = shape.map_or_else(|| json!({}), |it| it.schema);
                    let said = self.doc(it.span.start).map(Doc::parse).and_then(|doc| doc.text);
                    describe(&mut schema, said.as_deref());
                    if !is_optional {
                        required.push(Value::from(name.as_ref()));
                    }
                    properties.insert(name.into_owned(), schema);
                }
                TSSignature::TSIndexSignature(it) => {
                    others = self.at_depth(&it.type_annotation.type_annotation, depth).map(|it| it.schema);
                }
                _ => {}
            }
        }
        let mut schema = json!({"type": "object"});
        if !properties.is_empty() {
            schema["properties"] = properties.into();
        }
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        if let Some(others) = others {
            schema["additionalProperties"] = others;
        }
        schema
    }

    fn named(&self, it: &TSTypeReference<'a>, depth: usize) -> Option<Shape> {
        let TSTypeName::IdentifierReference(name) = &it.type_name else { return None };
        let arguments: &[TSType<'a>] = it.type_arguments.as_ref().map_or(&[], |it| &it.params);
        match (name.name.as_str(), arguments) {
            ("Array" | "ReadonlyArray", [items]) => Some(self.array(Some(items), depth)),
            ("Readonly" | "Required", [inner]) => self.at_depth(inner, depth),
            ("Partial", [inner]) => self.at_depth(inner, depth).map(|mut shape| {
                shape.schema.as_object_mut().map(|schema| schema.remove("required"));
                shape
            }),
            ("Record", [TSType::TSStringKeyword(_), values]) => {
                let mut schema = json!({"type": "object"});
                if let Some(values) = self.at_depth(values, depth) {
                    schema["additionalProperties"] = values.schema;
                }
                Some(Shape::of(schema))
            }
            ("Record", [_, _]) => Some(Shape::of(json!({"type": "object"}))),
            (name, []) => match (self.aliases.get(name), self.interfaces.get(name)) {
                (Some(alias), _) => self.at_depth(alias, depth),
                (None, Some(interface)) => self.interface(interface, depth).map(Shape::of),
                (None, None) => None,
            },
            _ => None,
        }
    }

    fn interface(&self, it: &TSInterfaceDeclaration<'a>, depth: usize) -> Option<Value> {
        let own = self.object(&it.body.body, depth);
        it.extends.iter().try_fold(own, |sum, parent| {
            let TSTypeName::IdentifierReference(name) = &parent.type_name else { return Some(sum) };
            // Of a parent that is not in this file nothing is known; what is known here holds all the same.
            let Some(parent) = self.interfaces.get(name.name.as_str()) else { return Some(sum) };
            merged(self.interface(parent, depth.checked_sub(1)?)?, sum)
        })
    }

    fn intersection(&self, types: &[TSType<'a>], depth: usize) -> Option<Shape> {
        let mut sum = json!({"type": "object"});
        for part in types {
            sum = merged(sum, self.at_depth(part, depth)?.schema)?;
        }
        Some(Shape::of(sum))
    }
}

/// Both objects in one; `None` if one is no object.
fn merged(mut sum: Value, part: Value) -> Option<Value> {
    if sum["type"] != "object" || part["type"] != "object" {
        return None;
    }
    for key in ["properties", "additionalProperties"] {
        match (sum.get_mut(key), part.get(key)) {
            (Some(Value::Object(sum)), Some(Value::Object(part))) if key == "properties" => sum.extend(part.clone()),
            (_, Some(part)) => sum[key] = part.clone(),
            _ => {}
        }
    }
    let mut required = sum["required"].as_array().cloned().unwrap_or_default();
    let further = part["required"].as_array().cloned().unwrap_or_default();
    required.extend(further.into_iter().filter(|name| !sum["required"].as_array().is_some_and(|known| known.contains(name))));
    if !required.is_empty() {
        sum["required"] = required.into();
    }
    Some(sum)
}

fn literal(literal: &TSLiteral<'_>) -> Option<Value> {
    match literal {
        TSLiteral::StringLiteral(it) => Some(it.value.as_str().into()),
        TSLiteral::NumericLiteral(it) => number(it.value),
        TSLiteral::BooleanLiteral(it) => Some(it.value.into()),
        TSLiteral::UnaryExpression(it) => match &it.argument {
            Expression::NumericLiteral(number_) if it.operator.as_str() == "-" => number(-number_.value),
            _ => None,
        },
        _ => None,
    }
}

/// A number as it is written: whole ones without a fraction.
fn number(value: f64) -> Option<Value> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        Some((value as i64).into())
    } else {
        serde_json::Number::from_f64(value).map(Value::Number)
    }
}

/// Adds a description where there is none.
pub(super) fn describe(schema: &mut Value, text: Option<&str>) {
    if let (Some(text), Some(schema)) = (text.filter(|text| !text.is_empty()), schema.as_object_mut()) {
        schema.entry("description").or_insert_with(|| text.into());
    }
}

/// Whether a type is called as the generated declarations call the host's `ctx`.
pub(super) fn names_ctx(of: &TSType<'_>) -> bool {
    let TSType::TSTypeReference(it) = of else { return false };
    matches!(&it.type_name, TSTypeName::IdentifierReference(name) if ["Context", "Ctx"].contains(&name.name.as_str()))
}
