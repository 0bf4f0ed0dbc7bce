//! The guest's root: an archive in the format that the kernel unpacks into memory (cpio "newc",
//! Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;

/// An archive in the making.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    inode: u32,
}

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    /// A folder and those above it; `path` without a slash in front.
    pub fn folder(&mut self, path: &str) {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for folder in ends.map(|end| &path[..end]) {
            if !folder.is_empty() && self.folders.insert(folder.into()) {
                self.entry(folder, FOLDER, &[]);
            }
        }
    }

    /// A file.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.add(path, FILE, content);
    }

    /// A file that can be executed.
    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.add(path, PROGRAM, content);
    }

    fn add(&mut self, path: &str, mode: u32, content: &[u8]) {
        let path = path.trim_start_matches('/');
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        self.entry(path, mode, content);
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.inode += 1;
        let (length, name_length) = (content.len() as u32, name.len() as u32 + 1);
        // inode, mode, user, group, links, time, size, device and special device (major, minor each), name, check.
        let numbers = [self.inode, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name_length, 0];
        self.bytes.extend(b"070701");
        for number in numbers {
            self.bytes.extend(format!("{number:08x}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.inode = 0;
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_by_the_book() {
        let mut archive = Archive::default();
        archive.program("/bin/x/init", b"12345");
        archive.file("bin/y", b"");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        let (mut at, mut entries) = (0, Vec::new());
        while at < bytes.len() {
            assert_eq!(&text[at..at + 6], "070701", "at {at}");
            let number = |n: usize| {
                let start = at + 6 + 8 * n;
                usize::from_str_radix(&text[start..start + 8], 16).unwrap()
            };
            let (mode, length, name_length) = (number(1), number(6), number(11));
            let name = text[at + 110..at + 110 + name_length - 1].to_string();
            let content = (at + 110 + name_length).next_multiple_of(4);
            entries.push((name, mode, text[content..content + length].to_string()));
            at = (content + length).next_multiple_of(4);
        }
        let entry = |name: &str, mode, text: &str| (name.to_string(), mode, text.to_string());
        let expected = [
            entry("bin", 0o040_755, ""),
            entry("bin/x", 0o040_755, ""),
            entry("bin/x/init", 0o100_755, "12345"),
            entry("bin/y", 0o100_644, ""),
            entry("TRAILER!!!", 0, ""),
        ];
        assert_eq!(entries, expected);
    }
}
