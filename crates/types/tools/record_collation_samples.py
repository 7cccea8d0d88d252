#!/usr/bin/env python3
"""Records comparisons and LIKEs of random texts from MySQL 8.0 into testdata/collation.tsv.  usage: ... PORT"""
import os
import random
import sys

import pymysql

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testdata", "collation.tsv")
UTF8 = list("abAB cC_%\\!~\t0") + ["é", "É", "ß", "ss", "中", "😀", "\u00a0", "ä", "æ", "ae", "가", "ﬁ", "Ω", "ω", "й", "\u0301", "\x01"]
LATIN1 = list("abAB cC_%\\!~\t0") + ["é", "É", "ß", "ä", "æ", "Å", "€", "ÿ", "þ"]
ASCII = list("abAB cC_%\\!~\t0")
COLLATIONS = {
    "utf8mb4_0900_ai_ci": UTF8, "utf8mb4_general_ci": UTF8, "utf8mb4_unicode_ci": UTF8, "utf8mb4_bin": UTF8,
    "latin1_swedish_ci": LATIN1, "latin1_general_ci": LATIN1, "latin1_bin": LATIN1,
    "ascii_general_ci": ASCII, "ascii_bin": ASCII,
    "latin1_general_cs": LATIN1, "latin1_german1_ci": LATIN1, "latin1_danish_ci": LATIN1, "latin1_spanish_ci": LATIN1,
}


def main():
    random.seed(20)
    connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="root", charset="utf8mb4")
    cursor = connection.cursor()
    lines = []
    for collation, alphabet in COLLATIONS.items():
        charset = collation.split("_")[0]

        def text(n):
            return "".join(random.choice(alphabet) for _ in range(random.randint(0, n)))

        def literal(s):
            return "convert(_utf8mb4 x'%s' USING %s) COLLATE %s" % (s.encode().hex(), charset, collation)

        for _ in range(200):
            a = text(4)
            b = random.choice([text(4), a.swapcase() + random.choice(["", " ", "  ", "\t", " a"]), a])
            cursor.execute("SELECT strcmp(%s, %s)" % (literal(a), literal(b)))
            lines.append((collation, "cmp", a, b, cursor.fetchone()[0]))
        for _ in range(120):
            a = text(5)
            p = "".join(random.choice([c, c, "_", "%", "\\" + c, c.swapcase()]) for c in a) if random.random() < 0.7 else text(4)
            cursor.execute("SELECT %s LIKE %s" % (literal(a), literal(p)))
            lines.append((collation, "like", a, p, cursor.fetchone()[0]))
    with open(OUT, "w") as file:
        for collation, operation, a, b, answer in lines:
            file.write("\t".join([collation, operation, a.encode().hex(), b.encode().hex(), str(answer)]) + "\n")


if __name__ == "__main__":
    main()
