//! Types taken out of TypeScript: what is only for the compiler becomes spaces, so that lines and
//! columns stay what they are and no map of them is needed.
//!
//! What makes code (enums, parameter properties, namespaces with values, decorators) is an error
//! with its line, as it is for a Node that strips types by itself. A semicolon is put where a
//! statement would otherwise run into the next one.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::{GetSpan as _, SourceType};
use oxc_syntax::scope::ScopeFlags;

/// Words that stand before a member of a class, for the compiler only.
const MODIFIERS: [&str; 7] =
    ["public", "private", "protected", "override", "readonly", "abstract", "declare"];

/// A file without its types.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stripped {
    pub(super) text: String,
    /// Whether it imports or exports.
    pub(super) is_module: bool,
}

/// Why the types of a file cannot be taken out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StripError {
    /// The end of a sentence, without a full stop.
    pub(super) why: String,
    /// Counted from 1.
    pub(super) line: usize,
}

/// Takes the types out of a file; its name says what kind of module it is.
pub(super) fn strip(name: &Path, source: &str) -> Result<Stripped, StripError> {
    let kind = SourceType::from_path(name).unwrap_or_else(|_| SourceType::ts());
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, kind).parse();
    let line_at = |at: u32| {
        let before = source.get(..at as usize).unwrap_or_default();
        before.matches('\n').count() + 1
    };
    if let Some(error) = parsed.diagnostics.errors().next() {
        let at = error.labels.iter().next().map_or(0, |label| label.offset());
        let line = line_at(at);
        let why = error.message.trim_end_matches('.').to_owned();
        return Err(StripError { why: format!("SyntaxError: {why}"), line });
    }
    let mut eraser = Eraser { source, blanks: Vec::new(), marks: Vec::new(), code: None };
    eraser.visit_program(&parsed.program);
    if let Some((at, why)) = eraser.code {
        return Err(StripError { why: why.to_owned(), line: line_at(at) });
    }
    Ok(Stripped { text: eraser.text(), is_module: parsed.module_record.has_module_syntax })
}

struct Eraser<'s> {
    source: &'s str,
    /// What becomes spaces.
    blanks: Vec<Span>,
    /// What stands in the place of one byte.
    marks: Vec<(u32, char)>,
    /// The first thing that makes code.
    code: Option<(u32, &'static str)>,
}

impl Eraser<'_> {
    fn blank(&mut self, start: u32, end: u32) {
        if start < end {
            self.blanks.push(Span::new(start, end));
        }
    }

    /// Leaves nothing of a statement but its end.
    fn remove(&mut self, span: Span) {
        self.blank(span.start, span.end);
        self.marks.push((span.start, ';'));
    }

    fn makes_code(&mut self, at: Span, why: &'static str) {
        self.code.get_or_insert((at.start, why));
    }

    /// Whether the last character before a place has become a space, among what did since.
    fn is_open(&self, end: u32, since: usize) -> bool {
        self.blanks[since..].iter().any(|blank| blank.start < end && blank.end >= end)
    }

    /// The bytes of a stretch that are no comments, with their places.
    fn plain(&self, start: u32, end: u32) -> Vec<(u32, u8)> {
        let bytes = self.source.as_bytes();
        let (mut at, end) = (start as usize, (end as usize).min(bytes.len()));
        let mut found = Vec::new();
        while at < end {
            let ends = match &bytes[at..end] {
                [b'/', b'/', ..] => Some("\n"),
                [b'/', b'*', ..] => Some("*/"),
                _ => None,
            };
            match ends {
                Some(ends) => {
                    let rest = self.source.get(at + 2..end).unwrap_or_default();
                    at = rest.find(ends).map_or(end, |found| at + 2 + found + ends.len());
                }
                None => {
                    found.push((at as u32, bytes[at]));
                    at += 1;
                }
            }
        }
        found
    }

    /// Takes out the first of these characters in a stretch.
    fn blank_first(&mut self, wanted: u8, start: u32, end: u32) {
        let found = self.plain(start, end).into_iter().find(|(_, byte)| *byte == wanted);
        if let Some((at, _)) = found {
            self.blank(at, at + 1);
        }
    }

    /// Takes out something in a list, with the comma after it.
    fn blank_item(&mut self, span: Span) {
        let rest = self.plain(span.end, self.source.len() as u32);
        let next = rest.into_iter().find(|(_, byte)| !byte.is_ascii_whitespace());
        let end = next.filter(|(_, byte)| *byte == b',').map_or(span.end, |(at, _)| at + 1);
        self.blank(span.start, end);
    }

    /// Takes out modifiers. One at the very beginning leaves a semicolon, since the member could
    /// otherwise belong to the one before it.
    fn modifiers(&mut self, start: u32, end: u32) {
        let plain = self.plain(start, end);
        let words = plain.split(|(_, byte)| !byte.is_ascii_alphanumeric());
        for word in words.filter(|word| !word.is_empty()) {
            let (from, to) = (word[0].0, word[word.len() - 1].0 + 1);
            let text = &self.source[from as usize..to as usize];
            if MODIFIERS.contains(&text) {
                self.blank(from, to);
                if from == start {
                    self.marks.push((start, ';'));
                }
            }
        }
    }

    fn has_line_break(&self, start: u32, end: u32) -> bool {
        self.source.get(start as usize..end as usize).is_some_and(|text| text.contains('\n'))
    }

    fn text(mut self) -> String {
        self.blanks.sort_unstable_by_key(|blank| blank.start);
        self.marks.sort_unstable();
        let mut blanks = self.blanks.iter().peekable();
        let mut marks = self.marks.iter().peekable();
        let (mut text, mut blank_to) = (String::with_capacity(self.source.len()), 0);
        for (at, letter) in self.source.char_indices() {
            let at = at as u32;
            while let Some(blank) = blanks.next_if(|blank| blank.start <= at) {
                blank_to = blank_to.max(blank.end);
            }
            let mut mark = None;
            while let Some((_, given)) = marks.next_if(|(place, _)| *place <= at) {
                mark = Some(*given);
            }
            let is_line_end = matches!(letter, '\n' | '\r' | '\u{2028}' | '\u{2029}');
            match mark {
                Some(mark) => text.push(mark),
                None if at < blank_to && !is_line_end => {
                    (0..letter.len_utf16()).for_each(|_| text.push(' '));
                }
                None => text.push(letter),
            }
        }
        text
    }
}

/// Whether a declaration is for the compiler only.
fn is_type(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSGlobalDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_) => true,
        Declaration::TSNamespaceDeclaration(it) => it.declare || is_type_namespace(&it.body),
        Declaration::TSEnumDeclaration(it) => it.declare,
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::TSImportEqualsDeclaration(it) => it.import_kind.is_type(),
    }
}

fn is_type_namespace(body: &TSNamespaceDeclarationBody<'_>) -> bool {
    match body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(it) => is_type_namespace(&it.body),
        TSNamespaceDeclarationBody::TSModuleBlock(block) => {
            block.body.iter().all(is_type_statement)
        }
    }
}

/// Whether a statement is for the compiler only.
fn is_type_statement(statement: &Statement<'_>) -> bool {
    if let Some(declaration) = statement.as_declaration() {
        return is_type(declaration);
    }
    match statement.as_module_declaration() {
        Some(ModuleDeclaration::ImportDeclaration(it)) => it.import_kind.is_type(),
        Some(ModuleDeclaration::ExportAllDeclaration(it)) => it.export_kind.is_type(),
        Some(ModuleDeclaration::ExportDeclaration(it)) => is_type(&it.declaration),
        Some(ModuleDeclaration::ExportNamedDeclaration(it)) => it.export_kind.is_type(),
        Some(ModuleDeclaration::ExportFromDeclaration(it)) => it.export_kind.is_type(),
        Some(ModuleDeclaration::ExportDefaultDeclaration(it)) => match &it.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
            ExportDefaultDeclarationKind::FunctionDeclaration(it) => it.body.is_none(),
            _ => false,
        },
        Some(ModuleDeclaration::TSNamespaceExportDeclaration(_)) => true,
        Some(ModuleDeclaration::TSExportAssignment(_)) | None => false,
    }
}

impl<'a> Visit<'a> for Eraser<'_> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        let span = it.span();
        if is_type_statement(it) {
            return self.remove(span);
        }
        let since = self.blanks.len();
        walk::walk_statement(self, it);
        if self.is_open(span.end, since) {
            self.marks.push((span.end - 1, ';'));
        }
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank(it.expression.span().end, it.span.end);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank(it.expression.span().end, it.span.end);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank(it.expression.span().end, it.span.end);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        let inside = it.expression.span();
        // Without the brackets it could be a block, or end a `return`.
        let is_block = self.source.as_bytes().get(inside.start as usize) == Some(&b'{');
        if is_block || self.has_line_break(it.span.start, inside.start) {
            self.makes_code(it.span, "a type in brackets before a value; write `value as Type`");
        }
        self.blank(it.span.start, inside.start);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        self.makes_code(it.span, "an enum; use an object with `as const`");
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        self.makes_code(it.span, "a namespace with values; use a module");
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        self.makes_code(it.span, "`import x =`; write `import x from`");
    }

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.makes_code(it.span, "`export =`; write `export default`");
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.makes_code(it.span, "a decorator; call the function instead");
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        for specifier in it.specifiers.iter().flatten() {
            if let ImportDeclarationSpecifier::ImportSpecifier(one) = specifier
                && one.import_kind.is_type()
            {
                self.blank_item(one.span);
            }
        }
    }

    fn visit_export_specifier(&mut self, it: &ExportSpecifier<'a>) {
        if it.export_kind.is_type() {
            self.blank_item(it.span);
        }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.blank_first(b'!', it.id.span().end, it.span.end);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            let why = "a parameter that is a property; assign it in the constructor";
            self.makes_code(it.span, why);
        }
        if it.optional {
            let end = it.type_annotation.as_ref().map_or(it.span.end, |one| one.span.start);
            self.blank(it.pattern.span().end, end);
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if let Some(this) = &it.this_param {
            self.blank_item(this.span);
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_ts_this_parameter(&mut self, _: &TSThisParameter<'a>) {}

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        // No line may end between the parameters and the arrow, nor after `async`.
        let params = it.params.span;
        if let Some(returns) = &it.return_type
            && self.has_line_break(params.end, returns.span.end)
        {
            self.blank(params.end - 1, params.end);
            self.marks.push((returns.span.end - 1, ')'));
        }
        if let Some(types) = &it.type_parameters
            && self.has_line_break(types.span.start, params.start)
        {
            self.blank(params.start, params.start + 1);
            self.marks.push((types.span.start, '('));
        }
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        let name = it.id.as_ref().map_or(it.body.span.start, |id| id.span.start);
        if it.r#abstract {
            self.modifiers(it.span.start, name);
            // A declaration cannot run into what stands before it.
            self.marks.retain(|(at, _)| *at != it.span.start);
        }
        if !it.implements.is_empty() {
            let before = [
                it.id.as_ref().map(|id| id.span.end),
                it.type_parameters.as_ref().map(|types| types.span.end),
                it.heritage.as_ref().map(|from| from.expression.span().end),
                it.heritage.as_ref().and_then(|from| Some(from.type_arguments.as_ref()?.span.end)),
            ];
            let implements = it.implements.first().map_or(it.body.span.start, |one| one.span.start);
            let before = before.into_iter().flatten().max();
            // Without a name it begins behind the word itself.
            let before = before.unwrap_or_else(|| {
                let text = self.source.get(..implements as usize).unwrap_or_default();
                text.rfind("implements").map_or(implements, |at| at as u32)
            });
            self.blank(before, it.body.span.start);
        }
        self.visit_decorators(&it.decorators);
        if let Some(types) = &it.type_parameters {
            self.visit_ts_type_parameter_declaration(types);
        }
        if let Some(from) = &it.heritage {
            self.visit_class_heritage(from);
        }
        self.visit_class_body(&it.body);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        let span = it.span();
        let is_type = match it {
            ClassElement::StaticBlock(_) => false,
            ClassElement::MethodDefinition(it) => it.value.body.is_none(),
            ClassElement::PropertyDefinition(it) => {
                it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
            }
            ClassElement::AccessorProperty(it) => {
                it.r#type == AccessorPropertyType::TSAbstractAccessorProperty
            }
            ClassElement::TSIndexSignature(_) => true,
        };
        if is_type {
            return self.remove(span);
        }
        let since = self.blanks.len();
        match it {
            ClassElement::MethodDefinition(it) => {
                self.modifiers(span.start, it.key.span().start);
                if it.optional {
                    self.blank_first(b'?', it.key.span().end, it.value.span.start);
                }
            }
            ClassElement::PropertyDefinition(it) => {
                self.modifiers(span.start, it.key.span().start);
                let types = it.type_annotation.as_ref().map(|types| types.span.start);
                let end = types.or(it.value.as_ref().map(|value| value.span().start));
                let end = end.unwrap_or(span.end);
                if it.optional {
                    self.blank_first(b'?', it.key.span().end, end);
                }
                if it.definite {
                    self.blank_first(b'!', it.key.span().end, end);
                }
            }
            ClassElement::AccessorProperty(it) => {
                self.modifiers(span.start, it.key.span().start);
            }
            ClassElement::StaticBlock(_) | ClassElement::TSIndexSignature(_) => {}
        }
        walk::walk_class_element(self, it);
        if self.is_open(span.end, since) {
            self.marks.push((span.end - 1, ';'));
        }
    }
}

#[cfg(test)]
mod tests;
