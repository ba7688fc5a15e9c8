//! Programs of Samba that a server needs.

use crate::LabError;
use crate::child::command_for;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folders of system programs that may be missing from PATH.
const FURTHER: [&str; 5] = ["/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/local/samba/sbin", "/usr/local/samba/bin"];

/// Checks that Samba can be started here. The error is one line and says what to do.
pub fn available() -> Result<(), String> {
    Tools::find().and_then(|_| crate::accounts::SystemAccounts::read()).map(drop).map_err(|error| error.to_string())
}

/// Returns the version of the Samba used for private servers, e.g. `4.17.12-Debian`.
pub fn version() -> Option<String> {
    let said = run(command_for(Tools::find().ok()?.smbd).arg("--version"), "").ok()?;
    Some(said.trim().strip_prefix("Version ")?.to_owned())
}

/// Paths of the programs.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) smbd: PathBuf,
    pub(crate) pdbedit: PathBuf,
    /// Optional: checks smb.conf.
    pub(crate) testparm: Option<PathBuf>,
}

impl Tools {
    /// Searches PATH and the usual folders of distributions.
    pub(crate) fn find() -> Result<Tools, LabError> {
        if !Path::new("/proc/self/stat").exists() {
            let text = "a lab server needs Linux with /proc mounted: that is how its processes are found again";
            return Err(LabError::Unavailable(text.to_owned()));
        }
        let needed = |name: &str| {
            find(name).ok_or_else(|| {
                let text = format!("Samba's {name} is not installed: install it (Debian, Ubuntu: apt install samba)");
                LabError::Unavailable(text)
            })
        };
        Ok(Tools { smbd: needed("smbd")?, pdbedit: needed("pdbedit")?, testparm: find("testparm") })
    }
}

impl Tools {
    /// Returns true if this version of Samba has the parameter. False without testparm(1).
    pub(crate) fn knows(&self, parameter: &str) -> bool {
        let Some(testparm) = &self.testparm else { return false };
        let name = format!("--parameter-name={parameter}");
        run(command_for(testparm).args(["--suppress-prompt", &name, "/dev/null"]), "").is_ok()
    }
}

/// Searches PATH and the further folders for a program.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FURTHER.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Runs a program with this standard input. Returns its standard output followed by its standard error.
pub(crate) fn run(command: &mut Command, input: &str) -> Result<String, LabError> {
    use std::io::Write;
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |said: String| LabError::Program { program: program.clone(), said };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading explains itself on standard error.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        return Ok(text);
    }
    let said = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Err(failed(said.map_or_else(|| output.status.to_string(), str::to_owned)))
}
