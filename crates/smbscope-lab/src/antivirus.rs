//! On-access virus scanner: Samba's virusfilter module with a private ClamAV.
//!
//! The scanner knows one signature, the EICAR test file, so nothing has to be downloaded. A scan then costs the round
//! trip to the scanner and reading the file; a full set of signatures costs more.

use crate::command_for;
use crate::process::{self, LabProcessRole};
use crate::settings::{Antivirus, LabServerSettings};
use crate::{LabError, tools};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Time limit for loading signatures: a full set takes half a minute.
const PATIENCE: Duration = Duration::from_secs(180);

/// MD5 and length of the EICAR test file (eicar.org), in clamd's `.hdb` format.
const SIGNATURE: &str = "44d88612fea8a8f36de82e1278abb02f:68:Eicar-Test-Signature\n";

pub(crate) fn find(smbd: &Path) -> Result<PathBuf, LabError> {
    let missing = |what: &str, package: &str| {
        let text = format!("--antivirus clamav needs {what}: install it (Debian, Ubuntu: apt install {package})");
        Err(LabError::Unavailable(text))
    };
    let Some(clamd) = tools::find("clamd") else { return missing("clamd", "clamav-daemon") };
    let options = tools::run(command_for(smbd).arg("--build-options"), "")?;
    let modules = options.lines().find_map(|line| line.trim().strip_prefix("MODULESDIR:"));
    if !modules.is_some_and(|folder| Path::new(folder.trim()).join("vfs/virusfilter.so").exists()) {
        return missing("Samba's module virusfilter", "samba-vfs-modules");
    }
    Ok(clamd)
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("clamd.sock")
}

pub(crate) fn samba_lines(settings: &LabServerSettings, folder: &Path) -> Vec<String> {
    match settings.antivirus {
        None => Vec::new(),
        Some(Antivirus::ClamAv(_)) => vec![
            "vfs objects = virusfilter".to_owned(),
            "virusfilter:scanner = clamav".to_owned(),
            format!("virusfilter:socket path = {}", socket(folder).display()),
            // By default, Samba scans only on open.
            "virusfilter:scan on close = yes".to_owned(),
        ],
    }
}

pub(crate) fn start(clamd: &Path, signatures: Option<&Path>, folder: &Path) -> Result<Child, LabError> {
    let own = folder.join("signatures");
    let temporary = folder.join("clamd.tmp");
    for made in [&own, &temporary] {
        fs::create_dir(made).map_err(LabError::file("make", made))?;
    }
    let hashes = own.join("eicar.hdb");
    fs::write(&hashes, SIGNATURE).map_err(LabError::file("write", &hashes))?;
    let signatures = signatures.unwrap_or(&own);
    let conf = folder.join("clamd.conf");
    let lines = [
        format!("DatabaseDirectory {}", signatures.display()),
        format!("LocalSocket {}", socket(folder).display()),
        format!("LogFile {}", folder.join("log/clamd.log").display()),
        format!("TemporaryDirectory {}", temporary.display()),
        "LogTime yes".to_owned(),
        "Foreground yes".to_owned(),
        "FixStaleSocket yes".to_owned(),
        "MaxThreads 50".to_owned(),
        "MaxQueue 1000".to_owned(),
        "SelfCheck 0".to_owned(),
    ];
    fs::write(&conf, lines.join("\n") + "\n").map_err(LabError::file("write", &conf))?;

    let log = folder.join("log/clamd.out");
    let output = File::create(&log).map_err(LabError::file("make", &log))?;
    let errors = output.try_clone().map_err(LabError::file("make", &log))?;
    let mut command = command_for(clamd);
    command.arg(format!("--config-file={}", conf.display()));
    command.current_dir("/").stdin(Stdio::null()).stdout(output).stderr(errors);
    process::mark(&mut command, folder, LabProcessRole::Antivirus);
    let failed = |said: String| LabError::Program { program: "clamd".to_owned(), said };
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let patience = Instant::now() + PATIENCE;
    while !answers(&socket(folder)) {
        let ended = child.try_wait().map_err(|error| failed(error.to_string()))?;
        if ended.is_some() || Instant::now() > patience {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let said = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(said.to_owned()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(child)
}

fn answers(socket: &Path) -> bool {
    let ask = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"zPING\0")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with(b"PONG"))
}
