//! Finds what exists only for the type checker in classes.
//!
//! Invariant: a blanked member or a field that lost its type never joins the member behind it. Deliberately classes only.

use oxc_ast::ast::{Class, ClassElement, PropertyDefinition, PropertyDefinitionType};
use oxc_ast_visit::walk;
use oxc_span::{GetSpan, Span};

use super::eraser::Eraser;

/// Tokens that would go on with an unfinished field.
const MEMBER_HAZARDS: &[&str] = &["[", "(", "*", "in", "instanceof"];
/// Modifiers that JavaScript does not know.
const MODIFIERS: &[&str] = &["public", "private", "protected", "readonly", "override", "abstract", "declare"];

impl Eraser<'_> {
    /// Blanks `abstract` and `implements …`.
    pub(super) fn erase_class_head(&mut self, it: &Class<'_>) {
        if it.r#abstract {
            let end = it.id.as_ref().map_or(it.body.span.start, |id| id.span.start);
            let tokens = self.canvas.tokens_in(it.span.start, end);
            if let Some(class) = tokens.into_iter().find(|token| self.canvas.text(*token) == "class")
                && let Some(word) = self.canvas.previous_token(class.start).filter(|it| self.canvas.text(*it) == "abstract")
            {
                self.canvas.blank(word);
            }
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last())
            && let Some(keyword) = self.canvas.previous_token(first.span.start)
        {
            self.canvas.blank(Span::new(keyword.start, last.span.end));
        }
    }

    /// Blanks a member, or what of it exists only for the type checker.
    pub(super) fn erase_member(&mut self, it: &ClassElement<'_>) {
        match it {
            ClassElement::TSIndexSignature(signature) => self.blank_member(signature.span),
            ClassElement::MethodDefinition(method) if method.value.body.is_none() => self.blank_member(method.span),
            ClassElement::PropertyDefinition(field)
                if field.declare || field.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition =>
            {
                self.blank_member(field.span);
            }
            ClassElement::MethodDefinition(method) => {
                self.blank_modifiers(method.span.start, method.key.span().start);
                if method.optional {
                    self.blank_tokens(method.key.span().end, method.value.span.start, &["?"]);
                }
                walk::walk_method_definition(self, method);
            }
            ClassElement::PropertyDefinition(field) => {
                self.blank_modifiers(field.span.start, field.key.span().start);
                self.end_field(field);
                walk::walk_property_definition(self, field);
            }
            ClassElement::AccessorProperty(accessor) => {
                self.blank_modifiers(accessor.span.start, accessor.key.span().start);
                walk::walk_accessor_property(self, accessor);
            }
            ClassElement::StaticBlock(_) => walk::walk_class_element(self, it),
        }
    }

    fn blank_member(&mut self, span: Span) {
        self.canvas.blank(span);
        self.gaps.push((span, MEMBER_HAZARDS));
    }

    fn blank_modifiers(&mut self, start: u32, key: u32) {
        if let Some(first) = self.blank_tokens(start, key, MODIFIERS)
            && first.start == start
        {
            self.gaps.push((first, MEMBER_HAZARDS));
        }
    }

    /// Blanks `?` and `!`, and puts `;` where the type of a field without a value was, for else a field named `get` or one
    /// before `[…]` would join the next member.
    fn end_field(&mut self, field: &PropertyDefinition<'_>) {
        let annotation = field.type_annotation.as_ref().map(|annotation| annotation.span);
        let mark = if field.optional || field.definite {
            let end = annotation.map_or(field.span.end + 1, |span| span.start);
            self.blank_tokens(field.key.span().end, end, &["?", "!"])
        } else {
            None
        };
        let end = annotation.or(mark).map_or(field.span.end, |span| span.end);
        let is_ended = self.canvas.next_token(end).is_none_or(|token| matches!(self.canvas.text(token), ";" | "}"));
        if field.value.is_none()
            && !is_ended
            && let Some(blanked) = annotation.or(mark)
        {
            self.canvas.put(blanked.start, ';');
        }
    }
}
