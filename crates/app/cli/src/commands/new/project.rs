//! A project before it lies on the disk, and how it gets there.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::name::ProjectKind;
use crate::commands::{CliError, Result};

/// The files of a project, and what to do with it.
#[derive(Debug, Default)]
pub(super) struct Project {
    files: Vec<(String, Cow<'static, str>)>,
    pub(super) steps: Vec<NextStep>,
}

/// Something to type next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NextStep {
    /// The command.
    pub(super) command: String,
    /// Whether it goes on until it is ended, so that the next one is typed elsewhere.
    pub(super) stays: bool,
}

/// What stands for what in a template.
#[derive(Debug)]
pub(super) struct TemplateWords(pub(super) Vec<(&'static str, String)>);

impl TemplateWords {
    /// A template with each `{{word}}` replaced.
    pub(super) fn fill(&self, template: &str) -> String {
        self.0.iter().fold(template.to_owned(), |text, (word, value)| {
            text.replace(&format!("{{{{{word}}}}}"), value)
        })
    }
}

/// Templates by the path of what is made of them.
type Templates = &'static [(&'static str, &'static str)];

/// What projects in one language are made of.
pub(super) struct Language {
    pub(super) word: &'static str,
    /// What is typed to build and test one.
    pub(super) prepare: &'static [&'static str],
    /// What is typed to start an operative.
    pub(super) start: &'static str,
    pub(super) agent: Templates,
    pub(super) tool: Templates,
    pub(super) operative: Templates,
    /// What every project has.
    pub(super) shared: Templates,
    /// What is brought along as it is.
    pub(super) library: fn() -> Vec<(String, &'static str)>,
}

impl Project {
    /// Adds all files.
    pub(super) fn add(&mut self, language: &Language, kind: ProjectKind, words: &TemplateWords) {
        let own = match kind {
            ProjectKind::Agent => language.agent,
            ProjectKind::Tool => language.tool,
            ProjectKind::Operative => language.operative,
        };
        for (path, template) in own.iter().chain(language.shared) {
            // Under their own names these would count for the folder of templates.
            let path = match *path {
                "gitignore" => ".gitignore",
                path => path.strip_suffix(".txt").unwrap_or(path),
            };
            self.template(path, template, words);
        }
        for (path, text) in (language.library)() {
            self.copy(path, text);
        }
    }

    fn template(&mut self, path: &str, template: &str, words: &TemplateWords) {
        self.files.push((words.fill(path), words.fill(template).into()));
    }

    fn copy(&mut self, path: impl Into<String>, text: &'static str) {
        self.files.push((path.into(), text.into()));
    }

    /// Adds a command to type next.
    pub(super) fn step(&mut self, command: impl Into<String>) {
        self.steps.push(NextStep { command: command.into(), stays: false });
    }

    /// Adds a command that goes on until it is ended.
    pub(super) fn staying_step(&mut self, command: impl Into<String>) {
        self.steps.push(NextStep { command: command.into(), stays: true });
    }

    /// Paths of all files.
    pub(super) fn paths(&self) -> Vec<&str> {
        self.files.iter().map(|(path, _)| path.as_str()).collect()
    }

    /// Writes all files to a folder that is not there yet, or empty: all of them, or none.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        check_free(folder)?;
        let shown = folder.display();
        let unwritable = |error: io::Error| CliError::unwritable(&shown, &error);
        let parent = match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(parent).map_err(unwritable)?;
        let unfinished = UnfinishedProject::beside(parent).map_err(unwritable)?;
        for (path, text) in &self.files {
            let path = unfinished.0.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(unwritable)?;
            }
            std::fs::write(path, text.as_bytes()).map_err(unwritable)?;
        }
        std::fs::rename(&unfinished.0, folder).map_err(unwritable)
    }
}

/// A folder that vanishes unless it is moved to its place.
struct UnfinishedProject(PathBuf);

impl UnfinishedProject {
    fn beside(parent: &Path) -> io::Result<Self> {
        let folder = parent.join(format!(".wharf-new-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for UnfinishedProject {
    fn drop(&mut self) {
        // Once it is in its place there is nothing here any more.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn check_free(folder: &Path) -> Result<()> {
    let shown = folder.display();
    match std::fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(CliError::usage(format!("{shown} is there already and not empty"))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(CliError::usage(format!("{shown} is there already and no folder")))
        }
        Err(error) => Err(CliError::unreadable(shown, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> Project {
        let mut project = Project::default();
        let words = TemplateWords(vec![("name", "desk".to_owned())]);
        project.template("src/{{name}}.py", "I am {{name}}, {{name}}!\n", &words);
        project.copy("README", "{{name}}\n");
        project
    }

    #[test]
    fn k034_templates_are_filled_in_and_all_else_is_copied() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("a/b");
        project().write(&folder).expect("written");
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).expect("there");
        assert_eq!(read("src/desk.py"), "I am desk, desk!\n");
        assert_eq!(read("README"), "{{name}}\n");
        let beside = std::fs::read_dir(folder.parent().expect("a folder")).expect("read").count();
        assert_eq!(beside, 1, "nothing unfinished is left");
    }

    #[test]
    fn k034_what_is_there_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let empty = dir.path().join("empty");
        std::fs::create_dir(&empty).expect("made");
        project().write(&empty).expect("an empty folder may be filled");
        let failure = project().write(&empty).expect_err("refused");
        assert!(failure.message().contains("not empty"), "{}", failure.message());
        let file = dir.path().join("file");
        std::fs::write(&file, "mine").expect("written");
        let failure = project().write(&file).expect_err("refused");
        assert!(failure.message().contains("no folder"), "{}", failure.message());
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "mine");
        assert!(project().write(&file.join("below")).is_err());
    }
}
