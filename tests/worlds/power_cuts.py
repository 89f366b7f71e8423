"""A file system that forgets: which states of a folder a power cut may leave, by what was synced before it.

The promise of a file system is small. What a file holds is sure to be there once the file was synced; that a name leads
to it, once its folder was. All else may be there or not, in any mixture. `Recorder` follows a run that really happens
and keeps, at every cut, the states that may be found afterwards:

    names     of each folder those that were synced, and besides none, all, or any single one of the later changes
    contents  of each file what was synced, or nothing; or what was written last

SQLite is trusted to have a transaction on the disk after a commit with ``synchronous = EXTRA`` and a rollback journal.
With any weaker setting it is lost here.
"""

import os
import sqlite3
import stat
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

EXTRA = 3
TOUCHES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "prade.step")

State = dict[str, bytes | None]  # contents by path, None for folders


class Cut(NamedTuple):
    """A state that a power cut may leave, and the steps that were announced before it."""

    steps: tuple[str, ...]
    state: State


class Recorder:
    """Follows what happens in a folder, which it takes to be durable as it is; there is one in a process, for good."""

    def __init__(self, home):
        self.home = home
        self.cuts = []
        self.steps = []
        self._names = {}  # of each folder, by inode: what was synced
        self._contents = {}  # of each file
        self._held = {}  # while a file is open, no other gets its inode
        self._looking = False
        for folder, _, files in os.walk(home):
            for name in (".", *files):
                self._sync(os.open(Path(folder, name), os.O_RDONLY))
        self._real = os.fsync, sqlite3.connect
        os.fsync = self._fsync
        sqlite3.connect = partial(sqlite3.connect, factory=self._connection())
        sys.addaudithook(self._hear)

    def stop(self):
        """Look away from now on."""
        self._looking = True
        os.fsync, sqlite3.connect = self._real

    def _hear(self, event, values):
        if self._looking or event not in TOUCHES:
            return
        if event == "prade.step":
            self.steps.append(values[0])
        elif not any(str(self.home) in str(value) for value in values):
            return
        self.cut()

    def _fsync(self, handle):
        self.cut()
        self._real[0](handle)
        self._sync(os.dup(handle))
        self.cut()

    def _sync(self, handle):
        """What the open file or folder holds now is durable; the handle is kept."""
        inode = os.fstat(handle).st_ino
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            self._names[inode] = self._listing(handle)
        else:
            self._contents[inode] = os.pread(handle, os.fstat(handle).st_size, 0)
        self._held[inode] = handle

    def _listing(self, handle):
        """Names in a folder and their inodes; SQLite's journals are its own business."""
        self._looking = True
        try:
            found = {}
            for entry in os.scandir(handle):
                if not entry.name.endswith("-journal"):
                    found[entry.name] = entry.stat(follow_symlinks=False).st_ino
                    if isinstance(handle, int) and found[entry.name] not in self._held:
                        self._held[found[entry.name]] = os.open(entry.name, os.O_RDONLY, dir_fd=handle)
            return found
        finally:
            self._looking = False

    def _connection(recorder):
        class Connection(sqlite3.Connection):
            def execute(self, statement, *values):
                done = super().execute(statement, *values)
                if statement.strip().upper().startswith(("COMMIT", "END")):
                    recorder._committed(self)
                return done

            def commit(self):
                super().commit()
                recorder._committed(self)

        return Connection

    def _committed(self, connection):
        """A transaction is on the disk if SQLite was told to see to it."""
        level, mode = (
            sqlite3.Connection.execute(connection, f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode")
        )
        if level == EXTRA and mode in ("delete", "truncate", "persist"):
            path = Path(sqlite3.Connection.execute(connection, "PRAGMA database_list").fetchone()[2])
            self._looking = True
            handle = os.open(path, os.O_RDONLY)
            self._looking = False
            self._sync(handle)
            # SQLite syncs the folder too. Releases may be in another one, so that is not counted on for other names.
            self._names.setdefault(path.parent.stat().st_ino, {})[path.name] = os.fstat(handle).st_ino
        self.cut()

    def cut(self):
        """Keep the states that the power could leave now."""
        self._looking = True
        try:
            self.cuts += [Cut(tuple(self.steps), state) for state in self._states()]
        finally:
            self._looking = False

    def _states(self):
        now = {
            os.stat(folder).st_ino: {
                name: os.stat(Path(folder, name)).st_ino for name in (*folders, *files) if not name.endswith("-journal")
            }
            for folder, folders, files in os.walk(self.home)
        }
        written = {
            os.stat(Path(folder, name)).st_ino: Path(folder, name).read_bytes()
            for folder, _, files in os.walk(self.home)
            for name in files
        }
        contents = [self._contents, {**self._contents, **written, **self._databases()}]
        for changed in ({}, now, *self._single_changes(now)):
            names = {**{folder: {} for folder in now}, **self._names, **changed}
            for known in contents:
                yield dict(self._walk(os.stat(self.home).st_ino, "", names, known))

    def _databases(self):
        """SQLite's files are whole transactions, the last that is on the disk."""
        return {inode: held for inode, held in self._contents.items() if held.startswith(b"SQLite format 3")}

    def _single_changes(self, now):
        """One folder with one of the changes after its sync, all others as they are now; a renaming is one change."""
        for folder, names in now.items():
            synced = self._names.get(folder, {})
            changes = defaultdict(dict)  # by what was made, moved or removed
            for name in names.keys() | synced.keys():
                if names.get(name) != synced.get(name):
                    changes[names.get(name, synced.get(name, 0))][name] = names.get(name)
            for change in changes.values():
                mixed = {**synced, **change}
                yield {**now, folder: {name: inode for name, inode in mixed.items() if inode is not None}}

    def _walk(self, folder, path, names, contents):
        for name, inode in sorted(names.get(folder, {}).items()):
            inside = f"{path}{name}"
            if inode in names:
                yield inside, None
                yield from self._walk(inode, f"{inside}/", names, contents)
            else:
                yield inside, contents.get(inode, b"")


def materialise(state, home):
    """The folder as a state has it."""
    home.mkdir()
    for path, content in state.items():
        if content is None:
            (home / path).mkdir()
        else:
            (home / path).write_bytes(content)
