//! What any workspace must do.
//!
//! Invariant: the suite begins in an empty workspace and leaves the world outside alone. Deliberately nothing about
//! permissions: not every file system has them.

use crate::Workspace;
use crate::workspace::{DirEntry, WorkspaceError};

/// Runs the whole suite in an empty workspace.
pub fn all(workspace: &dyn Workspace) {
    files_are_written_and_read(workspace);
    folders_list_by_name(workspace);
    moving_and_copying(workspace);
    removing(workspace);
    nothing_leads_outside(workspace);
    what_is_not_there_is_told(workspace);
}

fn code<T: std::fmt::Debug>(result: Result<T, WorkspaceError>) -> &'static str {
    result.expect_err("an error").code()
}

/// What was written is read, bytes as they are; writing again replaces.
pub fn files_are_written_and_read(workspace: &dyn Workspace) {
    workspace.write("a.txt", b"one").expect("written");
    workspace.write("/a.txt", b"two \xff\x00").expect("written");
    assert_eq!(workspace.read("./a.txt").expect("read"), b"two \xff\x00");
    let stat = workspace.stat("x/../a.txt").expect("known");
    assert_eq!((stat.name.as_str(), stat.size, stat.is_dir), ("a.txt", 6, false));
    assert_ne!(stat.mode, 0);
}

/// A list is in the order of names, one level deep.
pub fn folders_list_by_name(workspace: &dyn Workspace) {
    workspace.make_dirs("deep/er").expect("made");
    workspace.make_dirs("deep/er").expect("again is no error");
    workspace.write("deep/b", b"12").expect("written");
    workspace.write("deep/a", b"").expect("written");
    let entry = |name: &str, is_dir, size| DirEntry { name: name.to_owned(), is_dir, size };
    assert_eq!(workspace.list("deep").expect("a list"), [entry("a", false, 0), entry("b", false, 2), entry("er", true, 0)]);
    let names: Vec<String> = workspace.list(".").expect("the root").into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["a.txt", "deep"]);
    assert!(workspace.stat("").expect("the root").is_dir);
}

/// A move takes everything along; a copy leaves the first.
pub fn moving_and_copying(workspace: &dyn Workspace) {
    workspace.copy("deep/b", "deep/c").expect("copied");
    workspace.rename("deep", "deeper").expect("moved");
    assert_eq!(workspace.read("deeper/c").expect("read"), workspace.read("deeper/b").expect("read"));
    workspace.rename("deeper/c", "deeper/a").expect("replaced");
    assert_eq!(workspace.read("deeper/a").expect("read"), b"12");
    assert_eq!(code(workspace.stat("deep")), "WORKSPACE_NOT_FOUND");
}

/// A full folder goes only with all that is in it.
pub fn removing(workspace: &dyn Workspace) {
    workspace.remove("deeper").expect_err("it is not empty");
    workspace.remove("deeper/er").expect("an empty folder");
    workspace.remove("deeper/a").expect("a file");
    workspace.remove_all("deeper").expect("all of it");
    workspace.remove_all("deeper").expect("nothing there is no error");
    assert_eq!(code(workspace.list("deeper")), "WORKSPACE_NOT_FOUND");
    assert_eq!(code(workspace.remove("deeper")), "WORKSPACE_NOT_FOUND");
    workspace.remove_all(".").expect_err("the workspace itself stays");
}

/// No path leaves the workspace.
pub fn nothing_leads_outside(workspace: &dyn Workspace) {
    for path in ["..", "../x", "deep/../../x", "/../x"] {
        assert_eq!(code(workspace.read(path)), "WORKSPACE_OUTSIDE", "{path}");
        assert_eq!(code(workspace.write(path, b"x")), "WORKSPACE_OUTSIDE", "{path}");
        assert_eq!(code(workspace.rename("a.txt", path)), "WORKSPACE_OUTSIDE", "{path}");
        assert_eq!(code(workspace.remove_all(path)), "WORKSPACE_OUTSIDE", "{path}");
    }
}

/// Errors say what is there instead.
pub fn what_is_not_there_is_told(workspace: &dyn Workspace) {
    assert_eq!(code(workspace.read("none")), "WORKSPACE_NOT_FOUND");
    assert_eq!(code(workspace.write("none/x", b"")), "WORKSPACE_NOT_FOUND");
    assert_eq!(code(workspace.copy("none", "x")), "WORKSPACE_NOT_FOUND");
    workspace.make_dirs("folder").expect("made");
    assert_eq!(code(workspace.read("folder")), "WORKSPACE_WRONG_KIND");
    assert_eq!(code(workspace.write("folder", b"")), "WORKSPACE_WRONG_KIND");
    assert_eq!(code(workspace.list("a.txt")), "WORKSPACE_WRONG_KIND");
    assert_eq!(code(workspace.make_dirs("a.txt/x")), "WORKSPACE_WRONG_KIND");
}
