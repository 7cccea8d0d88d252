#!/usr/bin/env python3
"""Records collation weights from a running MySQL 8.0 and writes src/collation/tables.

usage: record_collations.py PORT      (needs PyMySQL; the server is only asked for SELECTs; about seven minutes)

Table file, all u16 little-endian:
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
UNICODE = ["utf8mb4_0900_ai_ci", "utf8mb4_general_ci", "utf8mb4_unicode_520_ci", "utf8mb4_unicode_ci"]
EIGHT_BIT = ["latin1_swedish_ci", "latin1_general_ci", "latin1_general_cs", "latin1_german1_ci", "latin1_danish_ci",
             "latin1_spanish_ci", "latin1_bin", "ascii_general_ci", "ascii_bin"]


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

    rules = {"utf8mb4_0900_ai_ci": uca9, "utf8mb4_unicode_520_ci": uca520, "utf8mb4_unicode_ci": uca4, "utf8mb4_general_ci": general}
    return rules[collation]


def write_table(collation, weights):
    rule = implicit(collation, weights)
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


def main():
    connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
    cursor = connection.cursor()
    cursor.execute("SET sql_mode = ''")
    sums = []
    for collation in UNICODE:
        weights = record(cursor, collation)
        write_table(collation, weights)
        sums.append((collation, checksum(weights[c] for c in code_points())))
    for collation in EIGHT_BIT:
        charset = collation.split("_")[0]
        byte = "_latin1 x'%02x'" if charset == "latin1" else "convert(_latin1 x'%02x' USING ascii)"
        cursor.execute("SELECT " + ",".join(
            "weight_string(" + byte % b + " COLLATE %s)" % collation for b in range(256)))
        with open(os.path.join(TABLES, collation + ".bin"), "wb") as file:
            file.write(b"".join(map(bytes, cursor.fetchone())))
    with open(os.path.join(TABLES, "checksums.txt"), "w") as file:
        for collation, h in sums:
            file.write("%s %016x\n" % (collation, h))


if __name__ == "__main__":
    main()
