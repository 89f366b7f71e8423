"""Labels of values: the keys of a column's table of labels, and what the table may contain.

A key is the text of a value, as a TOML file has it, or "missing". A column that lists the value "missing" cannot label
its missing cells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from prade.core.documents import writable
from prade.core.errors import SchemaError
from prade.data.values import Value, plain_value, some_of, value_text

MISSING = "missing"
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # line breaks among them


def label_key(value: Any) -> str:
    """The key of a value's label: its text, as a TOML file has it. None stands for missing.

    >>> [label_key(value) for value in (2, 1.0, True, "a", None)]
    ['2', '1', 'true', 'a', 'missing']
    """
    value = plain_value(value)
    if value is None:
        return MISSING
    return str(value).lower() if isinstance(value, bool) else value_text(value)


def check_words(words: Mapping[str, Any]) -> None:
    """Refuse what cannot be shown in one line: `words` has texts by what they are."""
    for what, text in words.items():
        if not isinstance(text, str):
            raise SchemaError(f"{what} is {str(text)[:40]!r}; write a text")
        if not writable(text):
            raise SchemaError(f"{what} contains half a character (an unpaired surrogate); correct it")
        if CONTROLS.search(text):
            raise SchemaError(f"{what} {text[:40]!a} has a line break or a control character; write it in one line")


def settled_labels(labels: Any, kind: str, values: Sequence[Value], missing: bool) -> dict[str, str]:
    """The table of a column's labels with texts as keys; labels of values that the column does not have are refused."""
    if not isinstance(labels, Mapping):
        raise SchemaError(f'labels is {str(labels)[:40]!r}; write a table such as {{1 = "male", 2 = "female"}}')
    listed = dict.fromkeys(label_key(value) for value in values)
    if None in labels and MISSING in listed:
        raise SchemaError(f'its missing cells cannot have a label, because it also lists the value "{MISSING}"')
    known = {*listed, MISSING} if missing else listed
    unlisted = kind == "group" and not values  # the list of groups has them
    found: dict[str, str] = {}
    for value, label in labels.items():
        key = label_key(value)
        if key not in known and not unlisted:
            raise _unknown(key, kind, values)
        what = f'the label of "{key[:40]}"'
        check_words({what: label})
        if not label.strip():
            raise SchemaError(f"{what} is empty; leave it out")
        if found.setdefault(key, label) != label:
            raise SchemaError(f"{what} is given twice; remove one")
    return {key: found[key] for key in (*listed, MISSING) if key in found} | found  # in the order of the codes


def _unknown(key: str, kind: str, values: Sequence[Value]) -> SchemaError:
    if key == MISSING:
        return SchemaError("there is a label for missing cells, which needs missing = true")
    if kind == "numeric":
        return SchemaError(f'there is a label for "{key[:40]}", but bins have no labels: only missing may have one')
    return SchemaError(f'there is a label for "{key[:40]}"; the values are {some_of(values)}')
