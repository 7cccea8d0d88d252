#!/usr/bin/env python3
"""Records collation weights and single-byte character sets from a running MySQL 8.0 and writes src/collation/tables and
src/charset/tables.

usage: record_collations.py PORT      (needs PyMySQL; the server is only asked for SELECTs; about seven minutes)

CHARSET.bin: the code points of the bytes 0x80..0xFF, u16 little-endian, 0 for a byte that stands for none; then the byte of the upper
case and that of the lower case of each of the 256 bytes.
Collation of a single-byte character set: the weight of each byte.
Weights of several levels are told apart by units of 0; utf8mb4_0900_as_cs has the primary weights of
utf8mb4_0900_ai_ci, and its other two levels have a table file each.

uca_0400_LANGUAGE.bin, u16 little-endian: each code point whose weights are not those of utf8mb4_unicode_ci, their number, and they.

Table file of a Unicode collation, all u16 little-endian:
  0      page numbers of code points 0x0000, 0x0100 .. 0x10FF00 (4352 entries); 0xFFFF: the whole page is implicit
  8704   pages of 256 entries: 0 ignorable, 1..0x7FFF the one weight, 0x8000+i expansion i, 0xFFFF implicit
  then   expansions: count, count+1 offsets, weights
  The number of pages is the largest page number plus one.
"""
import os
import struct
import sys

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = os.path.join(HERE, "..", "src", "collation", "tables")
CHARSET_TABLES = os.path.join(HERE, "..", "src", "charset", "tables")
UNICODE = ["utf8mb4_0900_ai_ci", "utf8mb4_general_ci", "utf8mb4_unicode_520_ci", "utf8mb4_unicode_ci"]
# UCA 4.0.0 with some letters elsewhere. MySQL's other languages have contractions, which are not ours.
TAILORED = ["esperanto", "estonian", "german2", "hungarian", "icelandic", "latvian", "persian", "polish", "roman", "romanian", "sinhala",
            "slovenian", "spanish", "swedish", "turkish", "vietnamese"]
LEVELS = ["uca_0900_secondary", "uca_0900_tertiary"]
CHARSETS = ["armscii8", "ascii", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek", "hebrew", "hp8", "keybcs2",
            "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman"]
# Several weights for one character.
NOT_SIMPLE = ["cp1250_czech_cs", "latin1_german2_ci", "latin2_czech_cs"]


def code_points():
    return [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def record(cursor, collation):
    """Weight string of every code point."""
    weights = {}
    points = code_points()
    for i in range(0, len(points), 2000):
        some = points[i : i + 2000]
        cursor.execute("SELECT " + ",".join(
            "weight_string(_utf8mb4 x'%s' COLLATE %s)" % (chr(c).encode().hex(), collation) for c in some))
        weights.update(zip(some, map(bytes, cursor.fetchone())))
    return weights


def pair(base, c):
    return struct.pack(">HH", base + (c >> 15), (c & 0x7FFF) | 0x8000)


def implicit(collation, weights):
    """The rule for code points without weights of their own; the tables hold only what differs from it."""
    def uca9(c):
        if 0xAC00 <= c <= 0xD7A3:
            s = c - 0xAC00
            trail = weights[0x11A7 + s % 28] if s % 28 else b""
            return weights[0x1100 + s // 588] + weights[0x1161 + s % 588 // 28] + trail
        if 0x17000 <= c <= 0x18AFF:
            return struct.pack(">HH", 0xFB00, (c - 0x17000) | 0x8000)
        if any(a <= c <= b for a, b in [(0x3400, 0x4DB5), (0x20000, 0x2A6D6), (0x2A700, 0x2B734), (0x2B740, 0x2B81D),
                                        (0x2B820, 0x2CEA1)]):
            return pair(0xFB80, c)
        return pair(0xFB40 if 0x4E00 <= c <= 0x9FD5 or 0xFA0E <= c <= 0xFA29 else 0xFBC0, c)

    def uca520(c):
        return pair(0xFB80 if 0x3400 <= c <= 0x4DB5 else 0xFB40 if 0x4E00 <= c <= 0x9FA5 else 0xFBC0, c)

    def uca4(c):
        return b"\xff\xfd" if c > 0xFFFF else uca520(c)

    def general(c):
        return struct.pack(">H", c if c <= 0xFFFF else 0xFFFD)

    def level(default):
        def rule(c):
            return struct.pack(">H", default) * (len(uca9(c)) // 2 if 0xAC00 <= c <= 0xD7A3 else 1)
        return rule

    rules = {"uca_0900_secondary": level(0x20), "uca_0900_tertiary": level(2), "utf8mb4_0900_ai_ci": uca9, "utf8mb4_unicode_520_ci": uca520, "utf8mb4_unicode_ci": uca4, "utf8mb4_general_ci": general}
    return rules[collation]


def write_table(collation, weights, primary=None):
    """`primary`: what tells how many weights a Hangul syllable has."""
    rule = implicit(collation, primary or weights)
    explicit = {c: w for c, w in weights.items() if w != rule(c)}
    expansions, pages, numbers = {}, [], []
    for page in range(0x1100):
        if not any(page * 256 + i in explicit for i in range(256)):
            numbers.append(0xFFFF)
            continue
        numbers.append(len(pages))
        entries = []
        for c in range(page * 256, page * 256 + 256):
            units = struct.unpack(">%dH" % (len(explicit.get(c, b"")) // 2), explicit.get(c, b""))
            if c not in explicit:
                entries.append(0xFFFF)
            elif not units:
                entries.append(0)
            elif len(units) == 1 and 0 < units[0] < 0x8000:
                entries.append(units[0])
            else:
                entries.append(0x8000 + expansions.setdefault(units, len(expansions)))
        pages.append(entries)
    out = struct.pack("<%dH" % len(numbers), *numbers)
    for entries in pages:
        out += struct.pack("<256H", *entries)
    offsets, flat = [0], []
    for units in expansions:
        flat += units
        offsets.append(len(flat))
    out += struct.pack("<H", len(expansions)) + struct.pack("<%dH" % len(offsets), *offsets)
    out += struct.pack("<%dH" % len(flat), *flat)
    with open(os.path.join(TABLES, collation + ".bin"), "wb") as file:
        file.write(out)


def checksum(strings):
    """FNV-1a over length and bytes of each weight string; the crate's test computes the same."""
    h = 0xCBF29CE484222325
    for w in strings:
        for byte in bytes([len(w)]) + w:
            h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def record_levels(cursor, primary):
    """The secondary and the tertiary weights of every code point."""
    levels = [{}, {}]
    accents = record(cursor, "utf8mb4_0900_as_ci")
    for c, string in record(cursor, "utf8mb4_0900_as_cs").items():
        units = list(struct.unpack(">%dH" % (len(string) // 2), string))
        first = units.index(0)
        second = units.index(0, first + 1)
        parts = [struct.pack(">%dH" % len(part), *part) for part in (units[:first], units[first + 1 : second], units[second + 1 :])]
        assert parts[0] == primary[c] and b"\0\0".join(parts[:2]) == accents[c], hex(c)
        levels[0][c], levels[1][c] = parts[1:]
    return levels


def record_tailored(cursor, language, base):
    """Writes what differs from `base`, and gives back all weights."""
    weights = record(cursor, "utf8mb4_%s_ci" % language)
    with open(os.path.join(TABLES, "uca_0400_%s.bin" % language), "wb") as file:
        for c in code_points():
            if weights[c] != base[c]:
                units = struct.unpack(">%dH" % (len(weights[c]) // 2), weights[c])
                file.write(struct.pack("<%dH" % (2 + len(units)), c, len(units), *units))
    return weights


def record_charset(cursor, charset):
    cursor.execute("SELECT " + ",".join("CONVERT(CONVERT(x'%02x' USING %s) USING utf32)" % (b, charset) for b in range(256)))
    codes = [ord(text) for text in cursor.fetchone()]
    # A byte that stands for nothing comes out as a question mark.
    codes = [0 if b >= 0x80 and c == 0x3F else c for b, c in enumerate(codes)]
    assert codes[:0x80] == list(range(0x80)), charset
    cases = b""
    for case in "UPPER", "LOWER":
        cursor.execute("SELECT " + ",".join("CAST(%s(CONVERT(x'%02x' USING %s)) AS BINARY)" % (case, b, charset) for b in range(256)))
        cases += b"".join(map(bytes, cursor.fetchone()))
    assert len(cases) == 512, charset
    assert len(set(codes[0x80:]) - {0}) == sum(c > 0 for c in codes[0x80:]), charset
    with open(os.path.join(CHARSET_TABLES, charset + ".bin"), "wb") as file:
        file.write(struct.pack("<128H", *codes[0x80:]) + cases)


def main():
    connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
    cursor = connection.cursor()
    cursor.execute("SET sql_mode = ''")
    sums = []
    for collation in UNICODE:
        weights = record(cursor, collation)
        write_table(collation, weights)
        sums.append((collation, checksum(weights[c] for c in code_points())))
        if collation == "utf8mb4_0900_ai_ci":
            for name, level in zip(LEVELS, record_levels(cursor, weights)):
                write_table(name, level, weights)
                sums.append((name, checksum(level[c] for c in code_points())))
        if collation == "utf8mb4_unicode_ci":
            for language in TAILORED:
                tailored = record_tailored(cursor, language, weights)
                sums.append(("utf8mb4_%s_ci" % language, checksum(tailored[c] for c in code_points())))
    for charset in CHARSETS:
        record_charset(cursor, charset)
        cursor.execute("SELECT COLLATION_NAME FROM information_schema.COLLATIONS WHERE CHARACTER_SET_NAME = %s", (charset,))
        for (collation,) in cursor.fetchall():
            if collation in NOT_SIMPLE:
                continue
            cursor.execute("SELECT " + ",".join(
                "weight_string(convert(x'%02x' USING %s) COLLATE %s)" % (b, charset, collation) for b in range(256)))
            weights = b"".join(map(bytes, cursor.fetchone()))
            assert len(weights) == 256, collation
            if collation.endswith("_bin"):
                assert list(weights) == list(range(256)), collation
                continue
            with open(os.path.join(TABLES, collation + ".bin"), "wb") as file:
                file.write(weights)
    with open(os.path.join(TABLES, "checksums.txt"), "w") as file:
        for collation, h in sums:
            file.write("%s %016x\n" % (collation, h))


if __name__ == "__main__":
    main()
