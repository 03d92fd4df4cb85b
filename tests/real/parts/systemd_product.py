"""Wiring: the product in a bed: a virtual environment under /opt as an administrator would make it, and the verbs that he calls.

What is installed is a copy of this tree at that moment; the packages that it needs are shown from the tests' own environment.
"""

import json
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from tests.parts_present import PARTS, ROOT
from tests.real.parts.systemd_bed import Bed

PREFIX = "/opt/mind-body"
MIND = f"{PREFIX}/bin/mind"
PYTHON = f"{PREFIX}/bin/python"
BASE = "/opt/python"
"""Where the interpreter of the tests is shown: its own place may be a home, which units do not see."""
NEEDED = f"{PREFIX}/needed"
CLAUDE = "/opt/claude"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
SCRIPT = f"""#!{PYTHON}
import sys
from mind_body.cli.main import main
if __name__ == "__main__":
    sys.exit(main())
"""
WITNESS = """
import json, sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, timeout=10)
db.row_factory = sqlite3.Row
print(json.dumps([dict(row) for row in db.execute(sys.argv[2], json.loads(sys.argv[3]))]))
"""


def shown() -> dict[str, str]:
    """What of this host a bed with the product has to show."""
    claude = PARTS["claude"].find()
    return {
        sysconfig.get_path("purelib"): NEEDED,
        **({} if sys.base_prefix == "/usr" else {sys.base_prefix: BASE}),
        **({str(Path(claude).parent): CLAUDE} if claude else {}),
    }


def put_product(bed: Bed) -> None:
    """Make the environment."""
    packages = bed.path(f"{PREFIX}/lib/{VERSION}/site-packages")
    shutil.copytree(ROOT / "mind_body", packages / "mind_body")
    for data in ("config", "units"):
        shutil.copytree(ROOT / data, packages / "mind_body" / "_data" / data)
    (packages / "needed.pth").write_text(f"{NEEDED}\n")
    base = "/usr" if sys.base_prefix == "/usr" else BASE
    bed.write(f"{PREFIX}/pyvenv.cfg", f"home = {base}/bin\ninclude-system-site-packages = false\n")
    bed.write(MIND, SCRIPT, 0o755)
    bed.path(PYTHON).symlink_to(f"{base}/bin/{VERSION}")
    if base == BASE:
        bed.write("/etc/ld.so.conf.d/python.conf", f"{BASE}/lib\n")
        bed.run("ldconfig")


class Product:
    """What an operator does with it, and what a witness sees."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed

    def mind(self, *words: str, text: str = "", user: str = "", check: bool = True, timeout_s: float = 60.0) -> str:
        return self.bed.run(MIND, *words, text=text, user=user, check=check, timeout_s=timeout_s).stdout

    def rows(self, name: str, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Her mind, read from inside."""
        db = f"/var/lib/mind/{name}/mind.db"
        told = self.bed.run(PYTHON, "-IS", "-c", WITNESS, db, sql, json.dumps(values)).stdout
        return list(json.loads(told))
