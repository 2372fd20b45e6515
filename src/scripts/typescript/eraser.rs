//! Finds what exists only for the type checker, statement by statement and expression by expression.
//!
//! Invariant: where a blanked part had ended a statement, a `;` stands in its place if the next token could go on with
//! the statement before. Class members are in `members`. Deliberately no generated code.

use oxc_ast::ast::{
    ArrowFunctionExpression, Class, ClassElement, Declaration, Decorator, ExportDefaultDeclarationKind, ExportFromDeclaration,
    ExportNamedDeclaration, FormalParameter, ImportDeclaration, ImportDeclarationSpecifier, ImportOrExportKind, Statement,
    TSAsExpression, TSClassImplements, TSNamespaceDeclarationBody, TSNonNullExpression, TSSatisfiesExpression, TSThisParameter,
    TSTypeAnnotation, TSTypeAssertion, TSTypeParameterDeclaration, TSTypeParameterInstantiation, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

use super::canvas::Canvas;
use super::uses::Uses;

/// A construct that cannot be blanked.
pub(super) struct Refusal {
    /// Where it starts.
    pub(super) offset: u32,
    /// What it is and what to write instead.
    pub(super) message: String,
}

/// Blanks types on a canvas.
pub(super) struct Eraser<'s> {
    pub(super) canvas: Canvas<'s>,
    /// Blanked statements and members: where they were, and which next tokens are a hazard there.
    pub(super) gaps: Vec<(Span, &'static [&'static str])>,
    refusals: Vec<Refusal>,
    uses: Uses,
}

/// Tokens that would go on with an unfinished statement.
const STATEMENT_HAZARDS: &[&str] = &["(", "[", "`", "+", "-", "/", "<", "*", "."];

impl<'s> Eraser<'s> {
    /// An eraser over an untouched canvas.
    pub(super) fn new(canvas: Canvas<'s>, uses: Uses) -> Self {
        Self { canvas, gaps: Vec::new(), refusals: Vec::new(), uses }
    }

    /// The blanked text, or the first construct that could not be blanked.
    pub(super) fn finish(mut self) -> Result<String, Refusal> {
        if let Some(first) = self.refusals.into_iter().min_by_key(|refusal| refusal.offset) {
            return Err(first);
        }
        for (span, hazards) in std::mem::take(&mut self.gaps) {
            let next = self.canvas.next_shown(span.end).unwrap_or_default();
            if hazards.iter().any(|hazard| next == *hazard || (hazard.len() == 1 && next.starts_with(hazard))) {
                self.canvas.put(span.start, ';');
            }
        }
        Ok(self.canvas.render())
    }

    pub(super) fn refuse(&mut self, span: Span, message: impl Into<String>) {
        self.refusals.push(Refusal { offset: span.start, message: message.into() });
    }

    /// Refuses what a transformer could make code for.
    fn refuse_erasing(&mut self, span: Span, message: impl Into<String>) {
        self.refuse(span, format!("{}, or set `policy.typescript: full`", message.into()));
    }

    fn blank_statement(&mut self, span: Span) {
        self.canvas.blank(span);
        self.gaps.push((span, STATEMENT_HAZARDS));
    }

    /// Blanks the tokens of a range whose text is one of these.
    pub(super) fn blank_tokens(&mut self, start: u32, end: u32, texts: &[&str]) -> Option<Span> {
        let mut first = None;
        for token in self.canvas.tokens_in(start, end) {
            if texts.contains(&self.canvas.text(token)) {
                self.canvas.blank(token);
                first = first.or(Some(token));
            }
        }
        first
    }

    /// Blanks the type behind an expression: ` as T`, ` satisfies T`.
    fn blank_tail(&mut self, expression: Span, whole: Span) {
        let tail = Span::new(expression.end, whole.end);
        let Some(keyword) = self.canvas.next_token(tail.start) else { return };
        self.canvas.blank(tail);
        let Some(next) = self.canvas.next_token(tail.end) else { return };
        let hazard = self.canvas.text(next).starts_with(['(', '[', '`']);
        if hazard && self.canvas.breaks_line(tail.end, next.start) {
            self.canvas.put(keyword.start, ';');
        }
    }

    /// Blanks one name of an import or export list with its comma.
    fn blank_list_item(&mut self, span: Span) {
        self.canvas.blank(span);
        if let Some(comma) = self.canvas.next_token(span.end).filter(|token| self.canvas.text(*token) == ",") {
            self.canvas.blank(comma);
        }
    }

    /// Blanks a name behind another one, with the comma between them.
    fn blank_last_item(&mut self, span: Span) {
        self.canvas.blank(span);
        if let Some(comma) = self.canvas.previous_token(span.start).filter(|token| self.canvas.text(*token) == ",") {
            self.canvas.blank(comma);
        }
    }

    /// Whether an import brings nothing but types.
    fn is_erased_import(&self, it: &ImportDeclaration<'_>) -> bool {
        let names = it.specifiers.iter().flatten();
        it.import_kind == ImportOrExportKind::Type
            || it.specifiers.as_ref().is_some_and(|names| !names.is_empty()) && names.into_iter().all(|name| self.is_type(name))
    }

    fn is_type(&self, name: &ImportDeclarationSpecifier<'_>) -> bool {
        let says_so = match name {
            ImportDeclarationSpecifier::ImportSpecifier(it) => it.import_kind == ImportOrExportKind::Type,
            _ => false,
        };
        says_so || !self.uses.as_value(&name.local().name)
    }

    /// Whether a declaration exists only for the type checker; refuses the ones that half exist.
    fn is_erased(&mut self, declaration: &Declaration<'_>) -> bool {
        match declaration {
            Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_)
            | Declaration::TSExternalModuleDeclaration(_)
            | Declaration::TSGlobalDeclaration(_) => true,
            Declaration::VariableDeclaration(it) => it.declare,
            Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
            Declaration::ClassDeclaration(it) => it.declare,
            Declaration::TSEnumDeclaration(it) => {
                if !it.declare {
                    let name = it.id.name;
                    self.refuse_erasing(
                        it.span,
                        format!(
                            "`enum {name}` needs generated code and cannot be erased. Write \
                             `const {name} = {{ … }} as const` and `type {name} = (typeof {name})[keyof typeof {name}]`"
                        ),
                    );
                }
                true
            }
            Declaration::TSNamespaceDeclaration(it) => {
                if !it.declare && !namespace_is_types(&it.body) {
                    let name = it.id.name;
                    self.refuse_erasing(
                        it.span,
                        format!(
                            "`namespace {name}` contains values and cannot be erased. Keep only types in it, or write \
                             `const {name} = {{ … }}`"
                        ),
                    );
                }
                true
            }
            Declaration::TSImportEqualsDeclaration(it) => {
                if it.import_kind == ImportOrExportKind::Value {
                    self.refuse(it.span, "`import … = …` needs generated code and cannot be erased. Write `const … = …`");
                }
                true
            }
        }
    }

    /// Whether a statement exists only for the type checker.
    fn is_erased_statement(&mut self, it: &Statement<'_>) -> bool {
        if let Some(declaration) = it.as_declaration() {
            return self.is_erased(declaration);
        }
        match it {
            Statement::ImportDeclaration(it) => self.is_erased_import(it),
            Statement::ExportAllDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
            Statement::ExportFromDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
            Statement::ExportNamedDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
            Statement::ExportDeclaration(it) => self.is_erased(&it.declaration),
            Statement::ExportDefaultDeclaration(it) => match &it.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
                ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.body.is_none(),
                _ => false,
            },
            Statement::TSExportAssignment(it) => {
                self.refuse(it.span, "`export = …` needs generated code and cannot be erased. Write `export default …`");
                true
            }
            Statement::TSNamespaceExportDeclaration(_) => true,
            _ => false,
        }
    }
}

/// Whether a namespace holds nothing but types.
fn namespace_is_types(body: &TSNamespaceDeclarationBody<'_>) -> bool {
    let declares_type = |declaration: &Declaration<'_>| match declaration {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        Declaration::TSNamespaceDeclaration(inner) => inner.declare || namespace_is_types(&inner.body),
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.declare,
        Declaration::TSEnumDeclaration(it) => it.declare,
        _ => false,
    };
    match body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => namespace_is_types(&inner.body),
        TSNamespaceDeclarationBody::TSModuleBlock(block) => block.body.iter().all(|statement| match statement {
            Statement::ExportDeclaration(it) => declares_type(&it.declaration),
            Statement::EmptyStatement(_) => true,
            other => other.as_declaration().is_some_and(declares_type),
        }),
    }
}

impl<'a> Visit<'a> for Eraser<'_> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        if self.is_erased_statement(it) {
            self.blank_statement(it.span());
        } else {
            walk::walk_statement(self, it);
        }
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        for name in it.specifiers.iter().flatten() {
            match name {
                name if !self.is_type(name) => {}
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(it) => self.blank_last_item(it.span),
                other => self.blank_list_item(other.span()),
            }
        }
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        for name in &it.specifiers {
            if name.export_kind == ImportOrExportKind::Type || self.uses.is_type(&name.local.name()) {
                self.blank_list_item(name.span);
            }
        }
    }

    fn visit_export_from_declaration(&mut self, it: &ExportFromDeclaration<'a>) {
        for name in it.specifiers.iter().filter(|name| name.export_kind == ImportOrExportKind::Type) {
            self.blank_list_item(name.span);
        }
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse_erasing(
            it.span,
            "decorators cannot be erased and script engines do not run them. Call the function yourself",
        );
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.canvas.blank(it.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.canvas.blank(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.canvas.blank(it.span);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.blank_list_item(it.span);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_tail(it.expression.span(), it.span);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_tail(it.expression.span(), it.span);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.canvas.blank(Span::new(it.expression.span().end, it.span.end));
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.refuse_erasing(it.span, "`<T>value` cannot be erased safely. Write `value as T`");
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            let end = it.type_annotation.as_ref().map_or(it.span.end, |annotation| annotation.span.start);
            self.blank_tokens(it.id.span().end, end, &["!"]);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse_erasing(
                it.span,
                "a parameter property needs generated code and cannot be erased. Declare the field in the class and assign \
                 it in the constructor",
            );
        }
        if it.optional {
            let end = it.type_annotation.as_ref().map_or(it.span.end + 1, |annotation| annotation.span.start);
            self.blank_tokens(it.pattern.span().end, end, &["?"]);
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        walk::walk_arrow_function_expression(self, it);
        // No line break may come between the parameters and `=>`: move `)` to the end of the return type.
        if let Some(returns) = it.return_type.as_ref().filter(|it| self.canvas.breaks_line(it.span.start, it.span.end))
            && let Some(close) = self.canvas.previous_token(returns.span.start)
        {
            self.canvas.blank(close);
            self.canvas.put(returns.span.end - 1, ')');
        }
        // Nor one between `async` or `return` and the parameters: move `(` to the start of the type parameters.
        if let Some(generics) = it.type_parameters.as_ref().filter(|it| self.canvas.breaks_line(it.span.start, it.span.end))
            && let Some(open) = self.canvas.next_token(generics.span.end)
        {
            self.canvas.blank(open);
            self.canvas.put(generics.span.start, '(');
        }
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        self.erase_class_head(it);
        walk::walk_class(self, it);
    }

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        self.erase_member(it);
    }
}
