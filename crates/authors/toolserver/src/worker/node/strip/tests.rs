//! What is left of each form of syntax.

use super::*;

fn text(source: &str) -> String {
    let stripped = strip(Path::new("handler.ts"), source).expect(source);
    let lines = |text: &str| text.matches('\n').count();
    assert_eq!(lines(&stripped.text), lines(source), "{source}");
    check(&stripped.text);
    stripped.text
}

/// What is left is JavaScript.
#[track_caller]
fn check(text: &str) {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::mjs()).parse();
    let wrong: Vec<_> = parsed.diagnostics.errors().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{wrong:?} in\n{text}");
}

/// The same without spaces.
fn squeezed(source: &str) -> String {
    text(source).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn types_become_spaces_and_all_else_stays_where_it_is() {
    for (source, expected) in [
        ("const a: number = 1;", "const a = 1;"),
        ("let x!: string;", "let x ;"),
        (
            "function f<T>(a: T, b?: number): T { return a as T; }",
            "function f (a , b ) { return a ; }",
        ),
        ("function f(this: Window, a = 1) {}", "function f( a = 1) {}"),
        ("function f(this: Window) {}", "function f( ) {}"),
        ("const f = async <T,>(x: T): Promise<T> => x!;", "const f = async (x ) => x ;"),
        ("import { type A, b, type C } from './x.ts';", "import { b, } from './x.ts';"),
        ("import a, { type B } from './x.ts';", "import a, { } from './x.ts';"),
        ("export { type A, b };\nconst b = 1;", "export { b }; const b = 1;"),
        ("try {} catch (e: unknown) {}", "try {} catch (e ) {}"),
        ("f<string>(x satisfies Y, new Map<string, number>());", "f (x , new Map ());"),
        ("const x = <any>y;", "const x = y;"),
        ("const g = f<string>;", "const g = f ;"),
        ("a?.b<T>(b);", "a?.b (b);"),
    ] {
        assert_eq!(squeezed(source), expected);
    }
    let source = "type A = { é: '🦀' }; const b: A = c, d = 1;";
    let stripped = text(source);
    let units = |text: &str| text.encode_utf16().count();
    assert_eq!(units(&stripped), units(source));
    let column = |text: &str| text.find("d = 1").map(|at| units(&text[..at]));
    assert_eq!(column(&stripped), column(source));
}

#[test]
fn what_is_for_the_compiler_only_is_gone() {
    for source in [
        "interface A { b: string }",
        "type A<T> = T extends string ? 1 : 2;",
        "declare const x: number;",
        "declare function f(): void;",
        "declare module 'x' { export const y: number }",
        "declare global { interface Window { a: 1 } }",
        "declare enum E { A }",
        "declare class C { a: string }",
        "import type { A } from './a.ts';",
        "import type A from './a.ts';",
        "export type { A } from './a.ts';",
        "export type B = 1;",
        "export interface C {}",
        "export declare const x: number;",
        "function f(a: string): void;",
        "export function f(a: string): void;",
        "namespace N { export type A = 1; interface B {} }",
    ] {
        assert_eq!(squeezed(source), ";", "{source}");
    }
}

#[test]
fn classes_keep_what_they_do() {
    let source = "abstract class A<T> extends B<T> implements C, D {\n\
        private static readonly x: number = 1\n  public y?: string\n  protected ['z']!: T\n\
        declare w: string;\n  abstract v(): void;\n  [key: string]: unknown;\n\
        constructor(a: string);\n  constructor(a: unknown) { super(); }\n\
        override async *m?<U>(this: A<T>, u: U): AsyncGenerator<U> { yield u; }\n\
        get g(): number { return 1 as number }\n}";
    let left = squeezed(source);
    for part in ["class A extends B {", "static x = 1", "; y ;", "; ['z'] ;", "constructor(a ) {"] {
        assert!(left.contains(part), "{part} is missing in {left}");
    }
    assert!(left.contains("async *m ( u ) { yield u; }"), "{left}");
    assert!(left.contains("get g() { return 1 ; }"), "{left}");
    assert_eq!(squeezed("export default class implements A {}"), "export default class {}");
    assert_eq!(squeezed("const k = class<T> implements A {}"), "const k = class {}");
}

#[test]
fn nothing_runs_into_what_comes_after_it() {
    let ends = text("let a = b as any\n(c)");
    assert!(ends.contains(';'), "{ends}");
    let ends = text("let a = 1\ntype X = string\n(c)");
    assert_eq!(squeezed("let a = 1\ntype X = string\n(c)"), "let a = 1 ; (c)", "{ends}");
    let ends = text("class A { x = y as T\n['z'] = 1 }");
    assert!(ends.contains(';'), "{ends}");
    text("const f = (a: number): {\n  b: number\n} => ({ b: a });");
    text("const f = async <\n  T\n>(a: T) => a;");
    text("for (let i: number = 0, n: number; i < 3; i++) {}");
    text("if (a) b as any\nelse c as any");
}

#[test]
fn what_makes_code_is_an_error_with_its_line() {
    for (source, word) in [
        ("\nenum E { A }", "an enum"),
        ("\nexport const enum E { A }", "an enum"),
        ("\nnamespace N { export const a = 1 }", "a namespace"),
        ("class A {\n constructor(private a: string) {} }", "a parameter"),
        ("\nimport a = require('a');", "import x ="),
        ("\nexport = 1;", "export ="),
        ("\n@dec class A {}", "a decorator"),
        ("const f = () =>\n <any>{};", "brackets"),
        ("const a = 1;\nconst b: = 2;", "SyntaxError"),
    ] {
        let error = strip(Path::new("handler.ts"), source).expect_err(source);
        assert!(error.why.contains(word), "{source}: {error:?}");
        assert_eq!(error.line, 2, "{source}: {error:?}");
    }
}

#[test]
fn a_file_says_whether_it_is_a_module() {
    let is_module = |source| strip(Path::new("a.ts"), source).expect(source).is_module;
    assert!(is_module("export const a = 1"));
    assert!(is_module("import 'a'"));
    assert!(!is_module("const a = require('a')"));
}
