"""Rows that hold secrets, and records that no CSV writer writes."""

from prade import Column, Schema

SCHEMA = Schema(
    [
        Column("AGE", "numeric", edges=(18, 65), missing=True),
        Column("SEX", "categorical", values=("f", "m"), missing=True),
        Column("CODE", "categorical", values=(1, 2, 6)),
    ]
)
SECRET = "hush-zulu"  # nothing that a hash in hexadecimal could spell by chance
HUGE = 8_675_309_867_530_912_345
HONEST = [(3, "f", "1", "a", 1), (70, "m", "x", "b", 1), (None, None, "2", "c", 2), (64, "f", "2", "a", 3)]
SECRETS = [
    (HUGE, SECRET, SECRET, "a", 4),  # a rare category, a huge number, text where numbers belong
    (70, "m", str(HUGE), SECRET, HUGE),  # a place that is not listed, a person with a long number
]
MALFORMED = [
    b"70",
    f"70,{SECRET}".encode(),
    f"70,m,1,a,5,{SECRET},{HUGE}".encode(),
    b"\xff" + SECRET.encode() + b"\xfe,m,1,a,6",
    b"7\x000," + SECRET.encode() + b"\x00,1,a,7",
    b"70,m," + SECRET.encode() + b"\r,a,8",
    b'70,m,"' + SECRET.encode() + b"\n" + SECRET.encode() + b'",a,9',
    b'70,m,"' + SECRET.encode() + b'"' + SECRET.encode() + b",a,9",
    b"\xef\xbb\xbf70,m,1,a,10",
    b"70,m," + SECRET.encode() * 300_000 + b",a,11",
]


def csv_of(rows):
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    return "\n".join(["AGE,SEX,CODE,PLACE,ID", *lines, ""]).encode()
