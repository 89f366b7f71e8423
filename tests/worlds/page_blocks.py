"""The blocks of a page, run as a reader would: from the top, in one folder, Python and shell by turns.

* ```python: run; with `>>>`, what it shows must come out.
* ```bash: run, and must end well. A ```text block right below it is what it prints, `...` for what varies.
* ```toml: a schema, a plan or a file of targets, and must load.
* ```text otherwise: something to look at.

`<!-- needs: NAME -->` above a block names something that not every machine has; without it the block is left out.
Rehearsals get no effort, so they rehearse one plan. All else is run as it is written.
"""

import doctest
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from prade import Plan, Schema
from prade.planning.task import targets_of_file

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHELL_SECONDS = 120
BLOCK = re.compile(
    r"^(?:<!-- needs: (?P<needs>\w+) -->\n\s*)?```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```\s*$"
    r"(?:\n*^```text\n(?P<shown>.*?)^```\s*$)?",
    re.MULTILINE | re.DOTALL,
)
REHEARSAL = re.compile(r"(--effort |\beffort=)[0-9]+")
LANGUAGES = ("python", "bash", "toml", "text")


@dataclass(frozen=True)
class Block:
    """A fenced block, what is shown below it, and the line it starts at."""

    language: str
    code: str
    line: int = 1
    shown: str | None = None
    needs: str | None = None

    def run(self, namespace, page, environment=None):
        """Run it in the current folder; an AssertionError or the block's own error says where it failed."""
        assert self.language in LANGUAGES, f"{page}:{self.line}: a block of {self.language or 'no language'}"
        if self.language == "python":
            self._run_python(namespace, page)
        elif self.language == "bash":
            self._run_shell(page, environment or {})
        elif self.language == "toml":
            self._load()

    def _run_python(self, namespace, page):
        if ">>> " not in self.code:
            # the empty lines make a traceback name the page's own line
            exec(compile("\n" * self.line + self.code, page, "exec"), namespace)
            return
        test = doctest.DocTestParser().get_doctest(self.code, namespace, f"{page}:{self.line}", page, self.line)
        report = []
        failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False).failed
        namespace.update(test.globs)
        assert not failed, "".join(report)

    def _run_shell(self, page, environment):
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.code],
            env={**os.environ, "PATH": programs, "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SHELL_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{page}:{self.line} ended with {done.returncode}:\n{self.code}\n{done.stdout}"
        if self.shown is not None:
            assert doctest.OutputChecker().check_output(self.shown, done.stdout, FLAGS), (
                f"{page}:{self.line} shows\n{self.shown}\nbut prints\n{done.stdout}"
            )

    def _load(self):
        found = tomllib.loads(self.code)
        if "dataset" in found or "target" in found:
            Path("page.toml").write_text(self.code, encoding="utf-8")
            Plan.load("page.toml") if "dataset" in found else targets_of_file("page.toml")
        else:
            Schema.from_toml(self.code)


def blocks(text):
    """The fenced blocks of a page, from top to bottom."""
    for match in BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 1
        shown = match["shown"] if match["language"] == "bash" else None
        yield Block(match["language"], REHEARSAL.sub(r"\g<1>0", match["body"]), line, shown, match["needs"])


def run_page(text, page, has=(), environment=None):
    """Run all blocks in the current folder; the needs for which some were left out."""
    namespace = {"__name__": "__page__"}
    left_out = []
    for block in blocks(text):
        if block.needs is None or block.needs in has:
            block.run(namespace, page, environment)
        else:
            left_out.append(block.needs)
    return left_out
