"""Fetch the JavaScript that draws the charts of prade's pages; `python scripts/vega.py` needs npm.

It takes Vega, Vega-Lite and Vega-Embed, minified, from the npm registry, checks each package against the hash below,
collects the licences of these packages and of those that are built into them, and writes all of it to
src/prade/reporting/page/vega. For another version, change it here; the script then says which hash to enter.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src/prade/reporting/page/vega"
LARGEST = 1_000_000  # bytes of all files together: each page has them

SCRIPTS = {  # version, and SHA-256 of the package; in the order in which a page runs them
    "vega": ("6.2.0", "aa98ba8c2141f60123e98cdac229303450b1401e5c20f4434a18431e9a9a344d"),
    "vega-lite": ("6.4.1", "7226845c140626b2bf2dae3dd7372d6e2dbdf65380d857c70da8e487ca6cf15e"),
    "vega-embed": ("7.0.2", "8322f1dbe349ff275436f9edcf8c5ee87525a088c95dc85ba555289dde7c7c79"),
}
BUILT_IN = {  # whose licences ask to be shown
    "d3-array": ("3.2.4", "6dbf3f2be39e48f86775be6e166a5d3e5a585ca7144453cd6ad1912f5ae4417f"),
    "d3-delaunay": ("6.0.4", "935113ffa78d545505c8f1accf95be0e48594737eab34db8f50c9d6319907971"),
    "d3-geo": ("3.1.1", "fe1f2dd81a87d942790c5a7786f4aab03df2b357d46d8af56b613fb8a1bb9be5"),
    "d3-geo-projection": ("4.0.0", "ee0ed9071b6bd4921f9e2c18d04a283248fa3d13ff558bc936f585a2b09bf99a"),
    "d3-hierarchy": ("3.1.2", "7681875f06440c088afda1fd834d853dd560166c945e731382ee0c636332360b"),
    "d3-interpolate": ("3.0.1", "7e8df78d233cd102a0bb518658dc0b7d5c38442b6f2dbc8b95ffc14ba87c7c33"),
    "delaunator": ("5.0.1", "6b30e6cf0aa49bf7882a3fb6dd2b5d3c33478d3693356d8a74a88f65df411f55"),
    "topojson-client": ("3.1.0", "889fadb422f6236d0f8337a236ce6499f258b75e44b81733b13bd971067322bf"),
    "fast-json-patch": ("3.1.1", "928a1fc52f0ab766ab8406bf9798afebb5c4d24eb1bc8652c36a6850831e6dee"),
    "json-stringify-pretty-compact": ("4.0.0", "f15336163c9de2e2d9b820516be061235f4eed93a0a4d5bc9593700799c25f4f"),
    "semver": ("7.7.1", "0f1bba66dfcd37f52c62a33a5124e2f2f71c96dbc80207b830ffcbc8cd5b5de5"),
}


def package(name: str, version: str, expected: str, folder: str) -> dict[str, bytes]:
    """The files of a package of the registry, by their paths inside it."""
    command = ["npm", "pack", f"{name}@{version}", "--silent", "--pack-destination", folder]
    archive = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout.split()[-1]
    content = (Path(folder) / archive).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected:
        sys.exit(f"{name} {version} has the SHA-256 {digest}, not {expected}")
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        return {each.name.partition("/")[2]: files.extractfile(each).read() for each in files if each.isfile()}


def licence(files: dict[str, bytes]) -> str:
    """The text of a package's licence."""
    return next(content.decode().strip() for path, content in files.items() if path.upper().startswith("LICENSE"))


def script(name: str, version: str, files: dict[str, bytes]) -> str:
    """A package's minified script, with its name and licence before it and without the address of its source map."""
    lines = files[f"build/{name}.min.js"].decode().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("//# sourceMappingURL="))
    if "</script" in text.lower():
        sys.exit(f"{name} {version} would end the page's script element")
    return f"/*! {name} {version}, BSD-3-Clause, https://vega.github.io */\n{text}\n"


def main() -> None:
    """Write the scripts and the licences."""
    written = {}
    licences = ["The licences of the scripts in this folder, and of the packages that are built into them."]
    with tempfile.TemporaryDirectory() as folder:
        for name, (version, digest) in {**SCRIPTS, **BUILT_IN}.items():
            files = package(name, version, digest, folder)
            licences.append(f"{name} {version}\n\n{licence(files)}")
            if name in SCRIPTS:
                written[f"{name}.min.js"] = script(name, version, files)
    if sum(len(text.encode()) for text in written.values()) > LARGEST:
        sys.exit(f"the scripts have more than {LARGEST:,} bytes")
    TARGET.mkdir(exist_ok=True)
    rule = "\n\n" + 80 * "-" + "\n\n"
    for name, text in {**written, "LICENSES.txt": rule.join(licences) + "\n"}.items():
        (TARGET / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
