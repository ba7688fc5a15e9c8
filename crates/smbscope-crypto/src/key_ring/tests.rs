use super::*;

fn bits(hexadecimal: &str) -> CipherKey {
    cipher_key(&hex(hexadecimal).unwrap()).unwrap()
}

/// Wireshark reads the server-to-client key before the client-to-server key.
#[test]
fn a_log_of_samba_becomes_lines_of_wireshark() {
    let log = include_str!("../../../../tests/data/encrypted/samba_ciphers.log");
    let lines = lines_of_samba_log(log.as_bytes());
    assert_eq!(lines.lines().count(), 6);
    let [id, session_key] = ["3f5b1b7600000000", "452ea7f2c5ffc38d28de626094e48b8b"];
    let [from_server, to_server] = ["e3da73e501f4aa490331248b841e2221", "be9820159dd6efe1078ab28031d285c8"];
    let first = [id, session_key, from_server, to_server].join(",");
    assert_eq!(lines.lines().next(), Some(first.as_str()));
    let (by_log, by_lines) = (ring(log).expect("keys"), ring(&lines).expect("keys"));
    let secrets = |ring: &KeyRing| {
        let secrets = &ring.session(0x761b_5b3f)[0];
        let mut keys: Vec<Vec<u8>> = secrets.cipher_keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        keys.sort();
        (secrets.session_key.clone(), keys)
    };
    assert_eq!(secrets(&by_lines), secrets(&by_log));
    assert_eq!(lines_of_samba_log(b"no keys").as_str(), "");
}

fn ring(content: &str) -> Result<KeyRing, KeyFileError> {
    let mut ring = KeyRing::default();
    ring.add_keys(content.as_bytes()).map(|_| ring)
}

const SESSION_KEY: &str = "c163f0a95319d15d142c8845688ca717";
const TO_CLIENT: &str = "531f18de029b8397f571c79377f2ab30";
const TO_SERVER: &str = "f53d20ead1c578b88d262f4a6a4df684";
/// On the wire: 66 64 00 df 00 00 00 00.
const ID: u64 = 0xdf00_6466;

fn is_known(ring: &KeyRing) {
    let [secrets] = ring.session(ID) else { panic!("one set of keys") };
    assert_eq!(secrets.session_key.as_deref(), hex(SESSION_KEY).as_deref());
    let mut keys = secrets.cipher_keys.clone();
    keys.sort_by_key(|key| key.as_bytes().to_vec());
    assert!(keys == [bits(TO_CLIENT), bits(TO_SERVER)]);
}

#[test]
fn lines_of_wireshark_have_the_session_id_as_on_the_wire() {
    is_known(&ring(&format!("666400df00000000,{SESSION_KEY},{TO_CLIENT},{TO_SERVER}")).unwrap());
    let others = format!(
        "# comment\r\n\r\nuat:smb2_seskey_list:666400df00000000,\"{SESSION_KEY}\",{TO_CLIENT}, {TO_SERVER}\r\n\
         0100000000000000,{SESSION_KEY},,\n0200000000000000,,{TO_CLIENT},{TO_SERVER}\n0300000000000000,{SESSION_KEY}"
    );
    let ring = ring(&others).unwrap();
    is_known(&ring);
    assert_eq!(ring.session(2)[0].session_key, None);
    assert!(ring.session(1)[0].cipher_keys.is_empty() && ring.session(3).len() == 1 && ring.session(4).is_empty());
}

#[test]
fn a_malformed_line_is_named_without_its_content() {
    let second =
        |line: &str| ring(&format!("0100000000000000,{SESSION_KEY}\n{line}")).map(|_| ()).unwrap_err().to_string();
    assert_eq!(second("0102,00"), "line 2: expected a session id of 8 bytes");
    assert_eq!(second("0100000000000000,xy"), "line 2: expected a session key of 1 to 64 bytes");
    assert_eq!(second("0100000000000000,,0011"), "line 2: expected a decryption key of 16 or 32 bytes");
    assert_eq!(second("0100000000000000,,,"), "line 2: expected a session key or a decryption key");
    assert_eq!(
        second("0100000000000000,00,,,00"),
        "line 2: expected session id, session key, server-to-client key, client-to-server key"
    );
}

/// Lines of Samba 4.17 with `debug encryption = yes`, except for names.
#[test]
fn a_log_of_samba_gives_its_sessions() {
    let log = "\
[2026/11/26 18:28:56.582065,  5] ../../source3/smbd/smb2_sesssetup.c:300(x)
  debug encryption: dumping generated session keys
  Session Id    [0000] 66 64 00 DF 00 00 00 00                             fd......\x20
  Session Key   [0000] C1 63 F0 A9 53 19 D1 5D   14 2C 88 45 68 8C A7 17   .c..S..] .,.Eh...
  Signing Algo: 2
  Signing Key   [0000] 6F 10 2A 74 FA 6C 2F 6E   0E E3 1E C2 88 A3 EA A1   o.*t.l/n ........
  App Key       [0000] 6F 10 2A 74 FA 6C 2F 6E   0E E3 1E C2 88 A3 EA A1   o.*t.l/n ........
  Cipher Algo: 2
  ServerIn Key  [0000] F5 3D 20 EA D1 C5 78 B8   8D 26 2F 4A 6A 4D F6 84   .= ...x. .&/JjM..
  ServerOut Key [0000] 53 1F 18 DE 02 9B 83 97   F5 71 C7 93 77 F2 AB 30   S....... .q..w..0
[2026/11/26 18:28:56.582065,  5] ../../source3/lib/username.c:182(Get_Pwnam_alloc)
  Finding user root with session key be
  Session Id    [0000] 07 00 00 00 00 00 00 00                             ........\x20
  Session Key   [0000] C1 63 F0 A9 53 19 D1 5D   14 2C 88 45 68 8C A7 17   .c..S..] .,.Eh...
  ServerIn Key  [0000] F5 3D 20 EA D1 C5 78 B8   8D 26 2F 4A 6A 4D F6 84   .= ...x. .&/JjM..
[0010] F5 3D 20 EA D1 C5 78 B8   8D 26 2F 4A 6A 4D F6 84   .= ...x. .&/JjM..
";
    let ring = ring(log).unwrap();
    is_known(&ring);
    assert!(ring.session(7)[0].cipher_keys == [bits(&TO_SERVER.repeat(2))], "a key of 32 bytes takes two lines");
}

/// Labels of `fs/smb/client/smb2transport.c` and of `smbinfo keys`, which prints the same structure.
#[test]
fn output_of_linux_clients_gives_its_sessions() {
    let spaced = |bytes: &str| {
        bytes.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap()).collect::<Vec<_>>().join(" ")
    };
    let [session_key, to_server, to_client] = [SESSION_KEY, TO_SERVER, TO_CLIENT].map(spaced);
    let kernel = format!(
        "[  134.420911] CIFS: VFS: Session Id    66 64 00 df 00 00 00 00\n[  134.420914] CIFS: VFS: Cipher type   1\n\
         [  134.420917] CIFS: VFS: Session Key   {session_key}\n[  134.420920] CIFS: VFS: Signing Key   {session_key}\n\
         [  134.420923] CIFS: VFS: ServerIn Key  {to_server}\n[  134.420926] CIFS: VFS: ServerOut Key {to_client}\n"
    );
    is_known(&ring(&kernel).unwrap());
    let smbinfo = format!(
        "CCM encryption\nSession Id: 66 64 00 df 00 00 00 00\nSession Key: {session_key}\n\
         Server Encryption Key: {to_server}\nServer Decryption Key: {to_client}\n"
    );
    is_known(&ring(&smbinfo).unwrap());
}

#[test]
fn other_files_are_refused_for_a_reason() {
    let error = |content: &[u8]| KeyRing::default().add_keys(content).unwrap_err();
    assert_eq!(error(b""), KeyFileError::Unknown);
    assert_eq!(error(b"secret\n"), KeyFileError::Unknown);
    assert_eq!(error(&[0xff, 0xfe, 0, 0]), KeyFileError::NotText);
    assert_eq!(error(b"Session Id 66 64 00 df 00 00 00 00\n"), KeyFileError::NoKeys);
}

#[test]
fn the_same_keys_count_once_and_others_of_the_same_session_are_kept() {
    let line = format!("666400df00000000,{SESSION_KEY}\n");
    let mut ring = ring(&format!("{line}{line}666400df00000000,{TO_CLIENT}\n")).unwrap();
    assert_eq!(ring.session(ID).len(), 2);
    let many: String = (0..17).map(|i| format!("666400df00000000,{SESSION_KEY}{i:02x}\n")).collect();
    assert_eq!(ring.add_keys(many.as_bytes()), Err(KeyFileError::TooMany(KEYS_OF_SESSION_MAX)));
}

#[test]
fn a_password_file_has_a_password_or_credentials() {
    let parsed = |content: &str| {
        let mut ring = KeyRing::default();
        ring.add_passwords(content.as_bytes()).map(|()| ring.passwords)
    };
    let [only] = &parsed(" se cret \nignored\n").unwrap()[..] else { panic!("one password") };
    assert_eq!((only.user.as_deref(), only.text.as_str()), (None, " se cret "));
    assert!(only.may_belong_to("anyone", "anywhere"));
    let of_users = parsed("username = ann\npassword = a=b\ndomain = CORP\n\nusername=bob\npassword=c\n").unwrap();
    let [ann, bob] = &of_users[..] else { panic!("two users") };
    assert_eq!((ann.text.as_str(), bob.text.as_str()), ("a=b", "c"));
    assert!(
        ann.may_belong_to("ANN", "corp") && !ann.may_belong_to("ann", "other") && !ann.may_belong_to("bob", "corp")
    );
    assert!(bob.may_belong_to("bob", "other"));
    assert!(parsed("\n").is_err());
    assert_eq!(parsed("password").unwrap()[0].text.as_str(), "password");
}

#[test]
fn nothing_prints_its_secrets() {
    let mut ring = ring(&format!("0100000000000000,{SESSION_KEY}")).unwrap();
    ring.add_passwords(b"hunter2").unwrap();
    let printed = format!("{ring:?} {:?} {:?}", ring.session(1), ring.passwords());
    assert!(!printed.contains("c163") && !printed.contains("hunter2") && !printed.contains("193"), "{printed}");
}

#[test]
fn a_written_line_is_read_back() {
    let keys = SessionKeys { signing: [1; 16], encryption: bits(TO_SERVER), decryption: bits(TO_CLIENT) };
    let line = session_line(ID, &hex(SESSION_KEY).unwrap(), &keys);
    assert_eq!(line.as_str(), format!("666400df00000000,{SESSION_KEY},{TO_CLIENT},{TO_SERVER}\n"));
    is_known(&ring(&line).unwrap());
}
