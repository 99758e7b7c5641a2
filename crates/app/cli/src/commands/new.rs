//! `wharf new`: a project to begin with, which runs and has tests.

/// The files of a folder of templates, each with its path below the folder.
macro_rules! templates {
    ($folder:literal: $($path:literal),+) => {
        &[$(($path, include_str!(concat!("../../../templates/", $folder, "/", $path)))),+]
    };
}

mod name;
mod project;
mod rust;
mod scripts;

use std::path::{Path, PathBuf};

use serde::Serialize;

use self::name::{Name, ProjectKind};
use self::project::{Language, NextStep, Project, TemplateWords};
use crate::commands::{CliError, Context, Exit, Output, Result};
use crate::plain;

/// What `wharf new` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf new agent greeter
  wharf new tool acme/shout --lang typescript
  wharf new operative desk --lang rust --dir ~/projects/desk
  wharf new agent dev.acme.greeter --lang rust --sdk ~/src/wharf

No core and no network are needed. The project has a program, its manifest, tests that run offline
and a README; the next commands are printed.")]
pub(crate) struct NewArgs {
    /// What to create
    #[arg(value_enum, value_name = "agent|tool|operative", hide_possible_values = true)]
    kind: ProjectKind,
    /// Its name: greeter, or with a namespace dev.acme.greeter (agents), acme/shout (tools)
    name: String,
    /// The language it is written in
    #[arg(long, value_enum, value_name = "LANG", default_value = "python")]
    lang: Lang,
    /// Where to write it [default: a folder of that name, here]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The clone of Wharf whose SDK a Rust project uses [default: the one this program is in]
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
}

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Lang {
    Rust,
    Python,
    Typescript,
}

impl Lang {
    fn language(self) -> &'static Language {
        match self {
            Self::Rust => &rust::RUST,
            Self::Python => &scripts::PYTHON,
            Self::Typescript => &scripts::TYPESCRIPT,
        }
    }
}

/// What was made, for programs.
#[derive(Debug, Serialize)]
struct ProjectSummary<'a> {
    kind: &'a str,
    lang: &'a str,
    id: &'a str,
    folder: &'a str,
    files: Vec<&'a str>,
    next: &'a [NextStep],
}

/// Writes the project, and says what to type next.
pub(crate) fn run(args: &NewArgs, context: &Context) -> Result<Exit> {
    let name = Name::read(args.kind, &args.name)?;
    let folder = args.dir.clone().unwrap_or_else(|| PathBuf::from(&name.short));
    let project = project(args, &name, &folder)?;
    project.write(&folder)?;
    let folder = folder.display().to_string();
    let made = ProjectSummary {
        kind: args.kind.as_str(),
        lang: args.lang.language().word,
        id: &name.id,
        folder: &folder,
        files: project.paths(),
        next: &project.steps,
    };
    if context.output.is_json() {
        context.output.json(&made)?;
    } else {
        context.output.text(&text_of(&made, context.output))?;
    }
    Ok(Exit::Done)
}

/// All files and steps of a project.
fn project(args: &NewArgs, name: &Name, folder: &Path) -> Result<Project> {
    let language = args.lang.language();
    let mut project = Project::default();
    language.prepare.iter().for_each(|command| project.step(*command));
    use_it(&mut project, args.kind, language, name);
    let commands: Vec<&str> = project.steps.iter().map(|step| step.command.as_str()).collect();
    let sdk = match (args.lang, &args.sdk) {
        (Lang::Rust, given) => rust::dependency(given.as_deref())?,
        (_, None) => String::new(),
        (_, Some(_)) => {
            let why = "only projects in Rust take --sdk; others bring the library along";
            return Err(CliError::usage(why));
        }
    };
    let words = TemplateWords(vec![
        ("id", name.id.clone()),
        ("name", name.short.clone()),
        ("title", name.title()),
        ("code", name.code()),
        ("crate", name.code()),
        ("sdk", sdk),
        ("workspace", rust::workspace(folder).to_owned()),
        ("commands", commands.join("\n")),
    ]);
    project.add(language, args.kind, &words);
    Ok(project)
}

/// What is typed to use it with a core.
fn use_it(project: &mut Project, kind: ProjectKind, language: &Language, name: &Name) {
    let id = &name.id;
    match kind {
        ProjectKind::Agent => {
            project.step("wharf agents add .");
            project.step(format!("wharf agents approve {id} --all"));
            project.step(format!("wharf agents start {id}"));
            project.step(format!("wharf run {id}/greet name=Ada"));
        }
        ProjectKind::Tool => {
            project.step("wharf tools add . --approve");
            project.step(format!("wharf run {id} text='to be or not to be'"));
        }
        ProjectKind::Operative => {
            project.staying_step(language.start);
            project.step(format!("wharf run {id}/say text=hello"));
        }
    }
}

fn text_of(made: &ProjectSummary<'_>, output: Output) -> String {
    let paint = output.out_paint();
    let id = paint.strong(&plain::line(made.id));
    let folder = plain::line(made.folder);
    let count = made.files.len();
    let mut text = format!("{} {} {id} in {folder}, ", paint.good("made"), made.kind);
    text.push_str(&format!("{count} files in {}\n\nnext:\n  cd {folder}\n", made.lang));
    let mut elsewhere = false;
    for step in made.next {
        text.push_str(&format!("  {}", step.command));
        if step.stays {
            text.push_str(&paint.faint("    # it stays; type the rest in another terminal"));
        }
        elsewhere |= step.stays;
        text.push('\n');
    }
    if !elsewhere {
        text.push_str(&paint.faint("  # a core must run for the last ones: wharf up"));
        text.push('\n');
    }
    text
}
