//! Workspaces that are folders: the conformance suite's real arm, and what only a real folder has.

use greenroom::drivers::FolderWorkspaces;
use greenroom_boundary::workspace::{WorkspaceError, WorkspaceSpec, Workspaces as _};
use greenroom_boundary::{AgentId, conformance};

fn open(folder: &std::path::Path) -> std::sync::Arc<dyn greenroom_boundary::Workspace> {
    FolderWorkspaces.open(&AgentId::new("desk"), &WorkspaceSpec::Folder(folder.to_owned())).unwrap()
}

#[test]
fn a_folder_conforms() {
    let folder = tempfile::tempdir().unwrap();
    conformance::workspace::all(&*open(&folder.path().join("made/when/opened")));
}

#[test]
fn links_lead_nowhere_else() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("secret"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("way")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("file")).unwrap();
    let workspace = open(folder.path());
    let failed = |result: Result<(), WorkspaceError>| result.unwrap_err().code();
    assert_eq!(failed(workspace.read("way/secret").map(drop)), "WORKSPACE_IO");
    assert_eq!(failed(workspace.read("file").map(drop)), "WORKSPACE_IO");
    assert_eq!(failed(workspace.write("way/new", b"x")), "WORKSPACE_IO");
    assert_eq!(failed(workspace.write("file", b"x")), "WORKSPACE_IO");
    assert_eq!(failed(workspace.list("way").map(drop)), "WORKSPACE_IO");
    workspace.remove_all("way").unwrap();
    assert!(outside.path().join("secret").exists(), "the link is gone, not what it led to");
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "x");
}

#[test]
fn a_folder_that_cannot_be_is_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let spec = WorkspaceSpec::Folder(folder.path().join("file/below"));
    let error = FolderWorkspaces.open(&AgentId::new("desk"), &spec).unwrap_err();
    assert_eq!(error.code(), "WORKSPACE_UNAVAILABLE");
    assert!(error.to_string().contains("file/below"), "{error}");
}
