//! The studies shipped with the program.

const STUDIES: &[&str] = &[
    include_str!("../../../../studies/antivirus.toml"),
    include_str!("../../../../studies/block-sizes.toml"),
    include_str!("../../../../studies/copies.toml"),
    include_str!("../../../../studies/disk.toml"),
    include_str!("../../../../studies/homefolders-ramp.toml"),
    include_str!("../../../../studies/ini-dialects.toml"),
    include_str!("../../../../studies/launch.toml"),
    include_str!("../../../../studies/logon.toml"),
    include_str!("../../../../studies/netbench-two-servers.toml"),
    include_str!("../../../../studies/power-profile.toml"),
    include_str!("../../../../studies/processor-load.toml"),
    include_str!("../../../../studies/protection.toml"),
];

/// Returns true if the text is that of a shipped study, so its commands are trusted.
pub(super) fn has(text: &str) -> bool {
    STUDIES.contains(&text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn every_study_of_the_repository_is_known() {
        let folder = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies")).expect("it is there");
        let files = folder.map(|entry| entry.expect("it can be listed").path());
        for file in files.filter(|file| file.extension().is_some_and(|ending| ending == "toml")) {
            assert!(super::has(&fs::read_to_string(&file).expect("it can be read")), "{}", file.display());
        }
        assert!(!super::has(""));
    }
}
