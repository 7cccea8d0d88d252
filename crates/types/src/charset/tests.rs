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

/// Every byte of a single-byte character set that stands for a character is that character's, but where armscii8 has some of ASCII again.
#[test]
fn single_bytes_are_told_apart() {
    for (charset, table) in Charset::ALL.into_iter().filter_map(|charset| Some((charset, charset.single_byte()?))) {
        for byte in 0..=u8::MAX {
            match table.char_of(byte) {
                Some(c) if c.is_ascii() && charset == Charset::Armscii8 => assert_eq!(table.byte_of(c), Some(c as u8)),
                Some(c) => assert_eq!(table.byte_of(c), Some(byte), "{charset:?}"),
                None => assert_eq!(charset.decode(&[b'a', byte]), Err(1), "{charset:?}"),
            }
        }
    }
}

/// FNV-1a over length and bytes of each, as tools/record_multi_byte.py computes it.
fn checksum(strings: impl Iterator<Item = Vec<u8>>) -> String {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for string in strings {
        for byte in std::iter::once(string.len() as u8).chain(string) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        }
    }
    format!("{hash:016x}")
}

/// The bytes and the weight strings of every character of the character sets of several bytes are the recorded ones.
#[test]
fn several_bytes_are_mysqls() {
    let mut count = 0;
    for line in include_str!("tables/checksums.txt").lines() {
        let (name, recorded) = line.split_once(' ').unwrap();
        let collation = crate::Collation::by_name(name);
        let charset = collation.map_or_else(|| Charset::by_name(name).unwrap(), |collation| collation.charset);
        let texts = (0..=u32::from(char::MAX)).filter_map(char::from_u32).filter(|c| charset.can_encode(*c)).map(String::from);
        let found = match collation {
            Some(collation) => checksum(texts.map(|text| collation.weight_string(text.as_bytes()))),
            None => checksum(texts.map(|text| charset.encode(&text).into_owned())),
        };
        assert_eq!(found, recorded, "{name}");
        count += 1;
    }
    assert_eq!(count, 9 + 19);
}

/// Whatever stands for a character is read as it, and all else is found where it is.
#[test]
fn several_bytes_come_back() {
    for charset in Charset::ALL.into_iter().filter(|charset| charset.multi_byte().is_some()) {
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32).filter(|c| charset.can_encode(*c)) {
            let bytes = charset.encode(c.encode_utf8(&mut [0; 4])).into_owned();
            assert_eq!(charset.decode(&bytes).as_deref(), Ok(&*c.to_string()), "{charset:?}");
            assert!(bytes.len() <= charset.max_bytes() && charset.is_well_formed(&bytes));
            if c > '\x7F' {
                assert!(charset.char_len(&[&bytes[..], b"a"].concat()) == bytes.len() && charset.can_encode(c), "{charset:?}");
            }
        }
        for lead in 0x80..=u8::MAX {
            for trail in 0..=u8::MAX {
                let bytes = [b'a', lead, trail];
                match charset.decode(&bytes) {
                    Ok(text) => assert_eq!(charset.decode_lossy(&bytes), text),
                    Err(at) => assert!((1..3).contains(&at), "{charset:?} {bytes:X?}"),
                }
            }
        }
    }
}

/// Which bytes beyond ASCII's stand for one of its characters: a statement's literals must not end at them.
#[test]
fn bytes_that_are_ascii_again() {
    for charset in Charset::ALL.into_iter().filter(|charset| charset.single_byte().is_some() || charset.multi_byte().is_some()) {
        let mut found = 0;
        for lead in 0x80..=u8::MAX {
            let mut count = |bytes: &[u8]| {
                if charset.char_len(bytes) == bytes.len() && charset.decode(bytes).is_ok_and(|text| text.is_ascii()) {
                    assert!(charset.is_ascii_again(bytes), "{charset:?} {bytes:X?}");
                    found += 1;
                }
            };
            count(&[lead]);
            if charset.max_bytes() > 1 {
                (0..=u8::MAX).for_each(|trail| count(&[lead, trail]));
            }
            if charset.max_bytes() == 3 {
                (0x80..=u8::MAX).for_each(|trail| (0x80..=u8::MAX).for_each(|last| count(&[lead, trail, last])));
            }
        }
        assert_eq!(found > 0, charset.repeats_ascii(), "{charset:?}");
    }
}

/// Answers of MySQL: what bytes are, and that what stands for nothing is one question mark, what is none of its bytes one each.
#[test]
fn bytes_that_are_no_text() {
    assert_eq!(Charset::Gbk.decode(b"a\xB0\xA1").as_deref(), Ok("a啊"));
    assert_eq!(Charset::Gbk.decode(b"a\xFE\xFE"), Err(1));
    assert_eq!(Charset::Gbk.decode_lossy(b"a\xFE\xFEb"), "a?b");
    assert_eq!(Charset::Gbk.decode_lossy(b"a\xFF\xFFb"), "a??b");
    assert!(Charset::Gbk.is_well_formed(b"a\xFE\xFEb") && !Charset::Gbk.is_well_formed(b"a\xFE"));
    assert_eq!((Charset::Gbk.char_len(b"\x95\x5C'"), Charset::Gbk.char_len(b"\x95'"), Charset::Gbk.char_len(b"'")), (2, 1, 1));
    assert_eq!((Charset::Sjis.char_len(b"\xB1\x5C"), Charset::Sjis.char_len(b"\x95\x5C")), (1, 2));
    assert_eq!(Charset::Gb18030.char_len(b"\x81\x30\x81\x30"), 4);
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
        (Charset::Gbk, "a啊é中", &b"a\xB0\xA1\xA8\xA6\xD6\xD0"[..]),
        (Charset::Gb18030, "€é😀", &b"\xA2\xE3\xA8\xA6\x94\x39\xFC\x36"[..]),
        (Charset::Ujis, "ｱ亜丂", &b"\x8E\xB1\xB0\xA1\x8F\xB0\xA1"[..]),
        (Charset::Cp932, "ｱ表①é", &b"\xB1\x95\x5C\x87\x40?"[..]),
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
