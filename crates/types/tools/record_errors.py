#!/usr/bin/env python3
"""Prints MySQL's error table (code, symbol, SQLSTATE, message) out of a mysqld 8.0 executable that is not
position-independent, for keeping src/errors/table.rs.  usage: record_errors.py MYSQLD"""
import re
import struct
import subprocess
import sys


def main():
    path = sys.argv[1]
    image = open(path, "rb").read()
    sections = []
    for line in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout.splitlines():
        found = re.match(r"\s*\[\s*\d+\]\s+(\.rodata|\.data\S*)\s+\S+\s+(\w+)\s+(\w+)\s+(\w+)", line)
        if found:
            sections.append([int(found.group(i), 16) for i in (2, 3, 4)])

    def offset(address):
        return next((address - a + o for a, o, size in sections if a <= address < a + size), None)

    def text(address):
        at = offset(address)
        return None if at is None else image[at : image.index(b"\0", at)].decode("latin1")

    # An entry: name, code, message, ODBC state, JDBC state, index; found by the address of one known name.
    name = image.index(b"\0ER_DUP_ENTRY\0") + 1
    address = next(name - o + a for a, o, size in sections if o <= name < o + size)
    at = next(m.start() for m in re.finditer(re.escape(struct.pack("<QI", address, 1062)), image))

    def entry(at):
        return struct.unpack("<QI4xQQ", image[at : at + 32])

    while 999 < entry(at - 48)[1] < 14000 and offset(entry(at - 48)[0]) is not None:
        at -= 48
    while 999 < entry(at)[1] < 14000 and offset(entry(at)[0]) is not None:
        symbol, code, message, state = entry(at)
        print(code, text(symbol), text(state) or "HY000", text(message), sep="\t")
        at += 48


if __name__ == "__main__":
    main()
