use super::*;

const TEXTS: [&str; 6] = ["", "plain", "Привет", "été", "中", "a😀"];

#[test]
fn names() {
    for charset in Charset::ALL {
        assert_eq!(Charset::by_name(&charset.name().to_uppercase()), Some(charset));
    }
    assert_eq!(Charset::by_name("utf8mb3"), Some(Charset::Utf8mb3));
    assert_eq!(Charset::by_name("klingon"), None);
}

/// What can be encoded comes back, and lengths are those of the bytes.
#[test]
fn there_and_back() {
    for charset in Charset::ALL {
        for text in TEXTS {
            let bytes = charset.encode(text);
            if charset.first_invalid(text).is_none() || !charset.is_utf8() {
                assert_eq!(charset.encoded_len(text), bytes.len(), "{text} in {charset:?}");
            }
            let mut appended = b"x".to_vec();
            charset.encode_into(text, &mut appended);
            assert_eq!(appended[1..], *bytes);
            if charset.first_invalid(text).is_none() {
                assert_eq!(charset.decode(&bytes).as_deref(), Ok(text), "{charset:?}");
                assert_eq!(charset.decode_lossy(&bytes), text);
            } else {
                assert!(charset.decode_lossy(&bytes).contains('?'), "{text} in {charset:?}");
            }
        }
    }
}

/// Every byte of a single-byte character set that stands for a character is that character's.
#[test]
fn single_bytes_are_told_apart() {
    for (charset, table) in Charset::ALL.into_iter().filter_map(|charset| Some((charset, charset.single_byte()?))) {
        for byte in 0..=u8::MAX {
            match table.char_of(byte) {
                Some(c) => assert_eq!(table.byte_of(c), Some(byte), "{charset:?}"),
                None => assert_eq!(charset.decode(&[b'a', byte]), Err(1), "{charset:?}"),
            }
        }
    }
}

/// Bytes that MySQL gives.
#[test]
fn recorded_bytes() {
    for (charset, text, bytes) in [
        (Charset::Utf16, "aя😀", &b"\0a\x04\x4F\xD8\x3D\xDE\0"[..]),
        (Charset::Utf16le, "aя😀", &b"a\0\x4F\x04\x3D\xD8\0\xDE"[..]),
        (Charset::Utf32, "aя😀", &b"\0\0\0a\0\0\x04\x4F\0\x01\xF6\0"[..]),
        (Charset::Ucs2, "aя😀", &b"\0a\x04\x4F\0?"[..]),
        (Charset::Koi8r, "aя😀", &b"a\xD1?"[..]),
        (Charset::Cp1251, "Привет", &b"\xCF\xF0\xE8\xE2\xE5\xF2"[..]),
        (Charset::Latin1, "€é", &b"\x80\xE9"[..]),
    ] {
        assert_eq!(*charset.encode(text), *bytes, "{charset:?}");
    }
}

/// Zeros fill up the first unit; half a pair is no text.
#[test]
fn wide_units() {
    assert_eq!(Charset::Utf16.decode(b"abc").as_deref(), Ok("a扣"));
    assert_eq!(Charset::Utf32.decode(b"\x01\x41").as_deref(), Ok("Ł"));
    assert_eq!(Charset::Utf16.decode(b"\0a\xD8\0\0A"), Err(2));
    assert_eq!(Charset::Ucs2.decode(b"\xD8\0"), Err(0));
    assert_eq!(Charset::Utf32.decode(b"\0\x11\0\0"), Err(0));
    assert_eq!(Charset::Utf16.decode_lossy(b"\xDC\0\0a"), "?a");
}
