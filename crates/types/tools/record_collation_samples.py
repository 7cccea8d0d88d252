#!/usr/bin/env python3
"""Records comparisons and LIKEs of random texts from MySQL 8.0 into testdata/collation.tsv.  usage: ... PORT"""
import os
import random
import struct
import sys

import pymysql

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "testdata", "collation.tsv")
UTF8 = list("abAB cC_%\\!~\t0") + ["é", "É", "ß", "ss", "中", "😀", "\u00a0", "ä", "æ", "ae", "가", "ﬁ", "Ω", "ω", "й", "\u0301", "\x01"]
LATIN1 = list("abAB cC_%\\!~\t0") + ["é", "É", "ß", "ä", "æ", "Å", "€", "ÿ", "þ"]
ASCII = list("abAB cC_%\\!~\t0")
COLLATIONS = {
    "utf8mb4_0900_ai_ci": UTF8, "utf8mb4_general_ci": UTF8, "utf8mb4_unicode_ci": UTF8, "utf8mb4_bin": UTF8,
    "latin1_swedish_ci": LATIN1, "latin1_general_ci": LATIN1, "latin1_bin": LATIN1,
    "ascii_general_ci": ASCII, "ascii_bin": ASCII,
    "latin1_general_cs": LATIN1, "latin1_german1_ci": LATIN1, "latin1_danish_ci": LATIN1, "latin1_spanish_ci": LATIN1,
}
LEVELS = ["utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs"]
# Fewer samples of each of these.
TAILORED = ["esperanto", "estonian", "german2", "hungarian", "icelandic", "latvian", "persian", "polish", "roman", "romanian", "sinhala",
            "slovenian", "spanish", "swedish", "turkish", "vietnamese"]
WIDE = ["%s_%s" % (charset, kind) for charset in ["ucs2", "utf16", "utf32"] for kind in ["general_ci", "bin", "unicode_ci", "unicode_520_ci"]]
WIDE += ["utf16le_general_ci", "utf16le_bin"]
SINGLE_BYTE = """cp1250_croatian_ci cp1250_general_ci cp1250_polish_ci cp1251_bin cp1251_bulgarian_ci cp1251_general_ci cp1251_general_cs
    cp1251_ukrainian_ci cp1256_general_ci cp1257_general_ci cp1257_lithuanian_ci cp850_general_ci cp852_general_ci cp866_general_ci dec8_swedish_ci
    geostd8_general_ci greek_general_ci hebrew_general_ci hp8_english_ci keybcs2_general_ci koi8r_bin koi8r_general_ci koi8u_general_ci
    latin2_croatian_ci latin2_general_ci latin2_hungarian_ci latin5_turkish_ci latin7_estonian_cs latin7_general_ci latin7_general_cs
    macce_general_ci macroman_general_ci""".split()
MULTI_BYTE = """big5_bin big5_chinese_ci cp932_bin cp932_japanese_ci eucjpms_bin eucjpms_japanese_ci euckr_bin euckr_korean_ci gb18030_bin
    gb18030_chinese_ci gb18030_unicode_520_ci gb2312_bin gb2312_chinese_ci gbk_bin gbk_chinese_ci sjis_bin sjis_japanese_ci ujis_bin
    ujis_japanese_ci""".split()
# Of these, each has what it can write: letters of several cases and widths, kana, kanji, Hangul, some whose last bytes look like ASCII. Not é and É, which
# have two bytes and four in gb18030: texts of as many bytes MySQL compares by as many characters as the shorter has.
EAST = list("abYZ~[`_% \t") + list("ＡａＺｚЯяΩωアあｱ亜中国表愛啊丂一丁七가각갂갵힝€é😀𠀀")


def alphabet_of(charset):
    """ASCII and all letters beyond it."""
    with open(os.path.join(HERE, "..", "src", "charset", "tables", charset + ".bin"), "rb") as file:
        return ASCII + [chr(code) for code in struct.unpack("<128H", file.read(256)) if code and chr(code).isalpha()]


def written_in(charset):
    """Those of `EAST` that the character set has; Python's codecs are near enough to MySQL's."""
    codec = {"ujis": "euc_jp", "eucjpms": "euc_jp", "sjis": "shift_jis", "euckr": "cp949"}.get(charset, charset)
    return [c for c in EAST if c.encode(codec, "ignore")]


def letters_of(language):
    """Those whose weights are not those of utf8mb4_unicode_ci, and letters beside them."""
    with open(os.path.join(HERE, "..", "src", "collation", "tables", "uca_0400_%s.bin" % language), "rb") as file:
        words = [word for (word,) in struct.iter_unpack("<H", file.read())]
    letters = list("abcdeijnouvyzAEIOUTZ _%") + ["ae", "ß", "é", "ä", "ż"]
    while words:
        letters.append(chr(words[0]))
        words = words[2 + words[1] :]
    return letters


def main():
    random.seed(20)
    more = {collation: UTF8 for collation in LEVELS}
    more.update((collation, [c for c in UTF8 if not collation.startswith("ucs2") or ord(c[0]) < 0x10000]) for collation in WIDE)
    more.update((collation, alphabet_of(collation.split("_")[0])) for collation in SINGLE_BYTE)
    connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
    cursor = connection.cursor()
    more.update(("utf8mb4_%s_ci" % language, letters_of(language)) for language in TAILORED)
    more.update((collation, written_in(collation.split("_")[0])) for collation in MULTI_BYTE)
    few = SINGLE_BYTE + WIDE + MULTI_BYTE + ["utf8mb4_%s_ci" % language for language in TAILORED]
    lines = []
    for collation, alphabet in list(COLLATIONS.items()) + list(more.items()):
        charset = collation.split("_")[0]

        def text(n):
            return "".join(random.choice(alphabet) for _ in range(random.randint(0, n)))

        def literal(s):
            if charset == "sjis":
                # From Unicode, MySQL makes a character of two bytes of a backslash, which escapes nothing.
                return "convert(x'%s' USING sjis) COLLATE %s" % (s.encode("shift_jis").hex(), collation)
            return "convert(_utf8mb4 x'%s' USING %s) COLLATE %s" % (s.encode().hex(), charset, collation)

        for _ in range(60 if collation in few else 200):
            a = text(4)
            b = random.choice([text(4), a.swapcase() + random.choice(["", " ", "  ", "\t", " a"]), a])
            cursor.execute("SELECT strcmp(%s, %s)" % (literal(a), literal(b)))
            lines.append((collation, "cmp", a, b, cursor.fetchone()[0]))
        for _ in range(30 if collation in few else 120):
            a = text(5)
            p = "".join(random.choice([c, c, "_", "%", "\\" + c, c.swapcase()]) for c in a) if random.random() < 0.7 else text(4)
            cursor.execute("SELECT %s LIKE %s" % (literal(a), literal(p)))
            lines.append((collation, "like", a, p, cursor.fetchone()[0]))
    with open(OUT, "w") as file:
        for collation, operation, a, b, answer in lines:
            file.write("\t".join([collation, operation, a.encode().hex(), b.encode().hex(), str(answer)]) + "\n")


if __name__ == "__main__":
    main()
