//! Serialised form of a workload for load generators on other hosts, which parse it again.

use super::loadfile::Loadfile;
use super::{Workload, WorkloadDefinition, WorkloadError, WorkloadKind, WorkloadSource, builtin, read, recorded};
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Travelling {
    text: WorkloadText,
    /// Name and description on the sending host.
    name: String,
    description: String,
    source: WorkloadSource,
    thinking: Option<f64>,
    sha256: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum WorkloadText {
    Table(String, String),
    Lines(String),
    BuiltIn,
}

impl Workload {
    pub fn travelling(&self) -> Result<Travelling, WorkloadError> {
        let about = &self.about;
        let text = match (&about.toml, &about.source) {
            (Some((file, text)), _) => WorkloadText::Table(file.clone(), text.clone()),
            (None, WorkloadSource::BuiltIn) => WorkloadText::BuiltIn,
            (None, WorkloadSource::File(path)) => {
                let (_, bytes) = read(Path::new(path))?;
                WorkloadText::Lines(String::from_utf8_lossy(&bytes).into_owned())
            }
        };
        let sha256 = about.definition.sha256.clone();
        if let WorkloadText::Lines(lines) = &text
            && WorkloadDefinition::new(lines).sha256 != sha256
        {
            return Err(changed(&about.name));
        }
        let (name, description, source) = (about.name.clone(), about.description.clone(), about.source.clone());
        Ok(Travelling { text, name, description, source, thinking: self.thinking, sha256 })
    }
}

impl Travelling {
    /// Restores the workload. Returns an error if its hash differs.
    pub fn arrived(self) -> Result<Workload, WorkloadError> {
        let Travelling { text, name, description, source, thinking, sha256 } = self;
        let workload = match text {
            WorkloadText::Table(file, text) => Workload::toml(&file, &text, source)?,
            WorkloadText::BuiltIn => builtin::get(&name)?,
            WorkloadText::Lines(text) if recorded::is_one(&text) => recorded::parse(&name, &text, source)?,
            WorkloadText::Lines(text) => {
                let loadfile = Loadfile::parse(&name, &text)?;
                Workload::of_loadfile(name.clone(), description, source, &text, loadfile)
            }
        };
        if workload.definition().sha256 != sha256 {
            return Err(changed(&name));
        }
        Ok(match (thinking, &workload.kind) {
            (Some(by), WorkloadKind::Loadfile(_)) => workload.thinking(by),
            _ => workload,
        })
    }
}

fn changed(name: &str) -> WorkloadError {
    WorkloadError::Parameter {
        what: format!("the workload {name} is not the one that was read before"),
        hint: "leave its file as it is during a run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NetbenchLike, Script, UserSeat};
    use super::*;
    use smbscope_model::travel::{from_bytes, to_bytes};

    fn steps(workload: &Workload) -> Vec<String> {
        let seat = UserSeat { number: 3, of: 8, seed: 7, directory: "bench".to_owned() };
        let mut script = workload.script(&seat);
        (0..500).map_while(|_| script.next().map(|step| format!("{step:?}"))).collect()
    }

    fn travelled(workload: &Workload) -> Workload {
        let bytes = to_bytes(&workload.travelling().unwrap());
        from_bytes::<Travelling>(&bytes).unwrap().arrived().unwrap()
    }

    #[test]
    fn users_of_another_host_do_the_same_steps() {
        for (name, _) in Workload::built_in() {
            let workload = Workload::builtin(name).unwrap();
            assert_eq!(steps(&travelled(&workload)), steps(&workload), "{name}");
        }
        let set = Workload::builtin("copy-small").unwrap().set(&[("files".to_owned(), "7".to_owned())]).unwrap();
        assert_eq!(steps(&travelled(&set)), steps(&set));
    }

    #[test]
    fn a_loadfile_is_read_again_and_must_be_the_same() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), Workload::builtin_text("netbench-like").unwrap()).unwrap();
        let workload = Workload::loadfile(file.path()).unwrap().thinking(0.5);
        assert_eq!(steps(&travelled(&workload)), steps(&workload));
        std::fs::write(file.path(), "Sleep 5 SUCCESS\n").unwrap();
        assert!(workload.travelling().unwrap_err().to_string().contains("not the one that was read before"));
        // A mix generated with other settings has no name that identifies it.
        let other = Workload::netbench_like(NetbenchLike { seed: 9, ..NetbenchLike::default() }).unwrap();
        assert!(other.travelling().unwrap().arrived().is_err());
    }
}
