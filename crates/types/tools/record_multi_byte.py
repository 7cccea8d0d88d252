#!/usr/bin/env python3
"""Records the character sets of several bytes a character, and their collations, from a running MySQL 8.0 and writes src/charset/tables and
src/collation/tables.

usage: record_multi_byte.py PORT      (needs PyMySQL; the server is only asked for SELECTs; about three minutes)

CHARSET.bin, all u16 little-endian:
  the character of each two bytes of the character set's shape (`Shape` in src/charset/multi_byte.rs), first bytes first, 0 where they stand for
  none; for ujis and eucjpms the same of those behind 0x8F
  a number, and so many codes: what their characters are written as that have several codes, where that is not the first (behind 0x8F: the last
  byte without its highest bit)
  twice, for the upper and the lower case: a number, and so many runs of characters that have one: the first (2 words), what to add (2), how many,
  their distance
Half-width katakana and the four bytes of gb18030 follow rules, which this script checks.

checksums.txt of src/charset/tables: FNV-1a of the bytes of each character, and `COLLATION` lines with that of the weight strings.

gbk_chinese_ci.bin: 128 weights of ASCII, then those of each two bytes, u16 little-endian.
gb2312_chinese_ci.bin: 128 weights of ASCII; two bytes weigh what they are.
big5_chinese_ci.bin: 128 weights of ASCII; then the weight strings of each two bytes as u16 little-endian: how many in a row, and what they have.
gb18030_chinese_ci.bin, u16 little-endian: the number of runs of characters in the order of pinyin; of each run how many characters it is behind the
  one before, and its length; then the place of each character in that order, 0 for none.
"""
import os
import struct
import sys

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = os.path.join(HERE, "..", "src", "collation", "tables")
CHARSET_TABLES = os.path.join(HERE, "..", "src", "charset", "tables")
GBK = ([(0x81, 0xFE)], [(0x40, 0x7E), (0x80, 0xFE)])
SJIS = ([(0x81, 0x9F), (0xE0, 0xFC)], [(0x40, 0x7E), (0x80, 0xFC)])
EUC = ([(0xA1, 0xFE)], [(0xA1, 0xFE)])
# First and second bytes.
SHAPES = {
    "big5": ([(0xA1, 0xF9)], [(0x40, 0x7E), (0xA1, 0xFE)]),
    "cp932": SJIS,
    "eucjpms": EUC,
    "euckr": ([(0x81, 0xFE)], [(0x41, 0x5A), (0x61, 0x7A), (0x81, 0xFE)]),
    "gb18030": GBK,
    "gb2312": ([(0xA1, 0xF7)], [(0xA1, 0xFE)]),
    "gbk": GBK,
    "sjis": SJIS,
    "ujis": EUC,
}


def bytes_of(ranges):
    return [byte for first, last in ranges for byte in range(first, last + 1)]


def ask(cursor, question, items):
    """The answers to `question` about each of `items`, in bytes."""
    answers = []
    for at in range(0, len(items), 2000):
        cursor.execute("SELECT " + ",".join("CAST(%s AS BINARY)" % (question % item) for item in items[at : at + 2000]))
        answers += [None if answer is None else bytes(answer) for answer in cursor.fetchone()]
    return answers


def two_byte_codes(charset):
    leads, trails = SHAPES[charset]
    prefixes = [b"", b"\x8f"] if leads is EUC[0] else [b""]
    return [prefix + bytes([lead, trail]) for prefix in prefixes for lead in bytes_of(leads) for trail in bytes_of(trails)]


def linear(code):
    """The number of four bytes of gb18030."""
    return ((code[0] - 0x81) * 10 + code[1] - 0x30) * 1260 + (code[2] - 0x81) * 10 + code[3] - 0x30


def check_shape(cursor, charset):
    """Which bytes are a character, whether it stands for something or not."""
    some = [bytes([byte]) for byte in range(256)] + [bytes([lead, trail]) for lead in range(0x80, 256) for trail in range(0x20, 256)]
    found = {code for code, length in zip(some, ask(cursor, "CHAR_LENGTH(CONVERT(x'%%s' USING %s))" % charset, [code.hex() for code in some])) if length == b"1"}
    wanted = {bytes([byte]) for byte in range(0x80)} | {code for code in two_byte_codes(charset) if len(code) == 2}
    if charset in ("sjis", "cp932"):
        wanted |= {bytes([byte]) for byte in range(0xA1, 0xE0)}
    if charset in ("ujis", "eucjpms"):
        wanted |= {bytes([0x8E, byte]) for byte in range(0xA1, 0xE0)}
    if charset == "eucjpms":
        # MySQL takes a first byte that nothing follows.
        found -= {bytes([byte]) for byte in range(0x80, 256)}
    assert found == wanted, (charset, sorted(found ^ wanted)[:20])


def characters(cursor, charset, codes):
    """The character of each of `codes`, for which there are characters."""
    question = "CONVERT(CONVERT(x'%%s' USING %s) USING utf32)" % charset
    points = [int.from_bytes(answer, "big") for answer in ask(cursor, question, [code.hex() for code in codes])]
    return {code: point for code, point in zip(codes, points) if point != 0x3F or code == b"?"}


def runs_of(cases):
    """(first, what to add, how many, distance) of a map."""
    runs, left = [], dict(cases)
    while left:
        first = min(left)
        add = left[first] - first

        def length(step):
            count = 1
            while left.get(first + count * step) == first + count * step + add:
                count += 1
            return count

        step = max((1, 2), key=length)
        count = length(step)
        runs.append((first, add, count, step))
        for index in range(count):
            del left[first + index * step]
    return runs


def record_charset(cursor, charset):
    """Writes the table; gives back the bytes of each character."""
    check_shape(cursor, charset)
    codes = two_byte_codes(charset)
    ascii_codes = [bytes([byte]) for byte in range(0x80)]
    point_of = characters(cursor, charset, ascii_codes + codes)
    assert all(point_of[code] == code[0] for code in ascii_codes)
    kana = [bytes([byte]) if charset in ("sjis", "cp932") else bytes([0x8E, byte]) for byte in range(0xA1, 0xE0)]
    if charset in ("sjis", "cp932", "ujis", "eucjpms"):
        point_of.update(characters(cursor, charset, kana))
        assert all(point_of[code] == 0xFF61 + at for at, code in enumerate(kana))
    points = [p for p in range(0x80, 0x110000 if charset == "gb18030" else 0x10000) if not 0xD800 <= p < 0xE000]
    code_of = {point: bytes([point]) for point in range(0x80)}
    code_of.update((p, code) for p, code in zip(points, ask(cursor, "CONVERT(_utf32 x'%%08x' USING %s)" % charset, points)) if code != b"?")
    if charset == "gb18030":
        two = {point for code, point in point_of.items() if len(code) == 2}
        # U+E7C7 stands where U+1E3F would.
        rest = [0xE7C7 if p == 0x1E3F else p for p in range(0x80, 0x10000) if not 0xD800 <= p < 0xE000 and p != 0xE7C7 and (p not in two or p == 0x1E3F)]
        assert all(linear(code_of[p]) == at for at, p in enumerate(rest)) and len(rest) == 39420
        assert all(linear(code_of[p]) == 189000 + p - 0x10000 for p in range(0x10000, 0x110000))
        point_of.update((code_of[p], p) for p in rest)
        point_of.update((code_of[p], p) for p in range(0x10000, 0x110000))
    # MySQL writes U+6661 in cp932 as another character.
    code_of = {p: code for p, code in code_of.items() if point_of.get(code) == p}
    assert set(code_of) == set(point_of.values())
    words = [point_of.get(code, 0) for code in codes]
    first = {}
    for code in codes:
        first.setdefault(point_of.get(code), code)
    others = [code for p, code in code_of.items() if p >= 0x80 and len(code) in (2, 3) and code not in kana and first[p] != code]
    words += [len(others)] + [code[0] << 8 | code[1] if len(code) == 2 else code[1] << 8 | code[2] & 0x7F for code in others]
    chosen = sorted(code_of.items())
    for case in "UPPER", "LOWER":
        answers = ask(cursor, "%s(CONVERT(x'%%s' USING %s))" % (case, charset), [code.hex() for _, code in chosen])
        changed = {p: point_of[answer] for (p, code), answer in zip(chosen, answers) if answer != code and answer in point_of}
        assert {p: q for p, q in changed.items() if p < 0x80} == {ord(c): ord(getattr(c, case.lower())()) for c in map(chr, range(0x80)) if getattr(c, case.lower())() != c}
        runs = runs_of(changed)
        words.append(len(runs))
        for start, add, count, step in runs:
            words += [start & 0xFFFF, start >> 16, add & 0xFFFF, add >> 16 & 0xFFFF, count, step]
    with open(os.path.join(CHARSET_TABLES, charset + ".bin"), "wb") as file:
        file.write(struct.pack("<%dH" % len(words), *words))
    return code_of


def upper_ascii():
    return [ord(chr(byte).upper()) for byte in range(0x80)]


def record_collation(cursor, charset, collation, code_of):
    """Writes the table of a collation that is not a rule, and gives back the weight strings of all characters."""
    items = sorted(code_of.items())
    question = "WEIGHT_STRING(CONVERT(x'%%s' USING %s) COLLATE %s)" % (charset, collation)
    weights = dict(zip([p for p, _ in items], ask(cursor, question, [code.hex() for _, code in items])))
    plain = list(b"".join(weights[p][:1] for p in range(0x80)))
    path = os.path.join(TABLES, collation + ".bin")
    if collation.endswith("_bin"):
        assert weights == code_of, collation
    elif collation == "gbk_chinese_ci":
        codes = two_byte_codes(charset)
        answers = ask(cursor, question, [code.hex() for code in codes])
        with open(path, "wb") as file:
            file.write(bytes(plain) + b"".join(struct.pack("<H", int.from_bytes(answer, "big")) for answer in answers))
    elif collation == "gb2312_chinese_ci":
        assert all(weights[p] == code for p, code in items if p >= 0x80)
        with open(path, "wb") as file:
            file.write(bytes(plain))
    elif collation == "big5_chinese_ci":
        runs = []
        for answer in ask(cursor, question, [code.hex() for code in two_byte_codes(charset)]):
            weight = int.from_bytes(answer, "big")
            if runs and runs[-1][1] == weight:
                runs[-1][0] += 1
            else:
                runs.append([1, weight])
        with open(path, "wb") as file:
            file.write(bytes(plain) + b"".join(struct.pack("<HH", *run) for run in runs))
    elif collation == "gb18030_chinese_ci":
        assert plain == upper_ascii()
        uppers = ask(cursor, "UPPER(CONVERT(x'%%s' USING %s))" % charset, [code.hex() for _, code in items])
        places = {}
        for (p, code), upper in zip(items, uppers):
            if weights[p][:2] == b"\xff\xa0":
                places[p] = int.from_bytes(weights[p][2:], "big")
            else:
                assert weights[p] == (upper if len(upper) < 4 else struct.pack(">I", 0xFF000000 + linear(upper))), hex(p)
        runs, flat, end = [], [], 0
        for p in sorted(places):
            if runs and p - end <= 2:
                missing = p - end
                flat += [0] * missing
                runs[-1][1] += missing + 1
            else:
                while p - end > 0xFFFF:
                    runs.append([0xFFFF, 0])
                    end += 0xFFFF
                runs.append([p - end, 1])
            flat.append(places[p])
            end = p + 1
        words = [len(runs)] + [word for run in runs for word in run] + flat
        with open(path, "wb") as file:
            file.write(struct.pack("<%dH" % len(words), *words))
    elif collation != "gb18030_unicode_520_ci":
        assert plain == upper_ascii(), collation
        assert all(weights[p] == code for p, code in items if p >= 0x80), collation
    return weights


def checksum(strings):
    """FNV-1a over length and bytes of each; the crate's test computes the same."""
    h = 0xCBF29CE484222325
    for string in strings:
        for byte in bytes([len(string)]) + string:
            h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def main():
    connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
    cursor = connection.cursor()
    sums = []
    for charset in SHAPES:
        code_of = record_charset(cursor, charset)
        sums.append((charset, checksum(code_of[p] for p in sorted(code_of))))
        cursor.execute("SELECT COLLATION_NAME FROM information_schema.COLLATIONS WHERE CHARACTER_SET_NAME = %s ORDER BY COLLATION_NAME", (charset,))
        for (collation,) in cursor.fetchall():
            weights = record_collation(cursor, charset, collation, code_of)
            sums.append((collation, checksum(weights[p] for p in sorted(weights))))
    with open(os.path.join(CHARSET_TABLES, "checksums.txt"), "w") as file:
        for name, h in sums:
            file.write("%s %016x\n" % (name, h))


if __name__ == "__main__":
    main()
