"""Linters, types and shell files are tests, so that one command checks everything (mkosi's tests/test_linters.py)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts_present import require_part

ROOT = Path(__file__).parents[2]
SHEBANG = ("#!/usr/bin/env bash", "#!/bin/sh", "#!/bin/bash")


def _run(*argv: str) -> None:
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout}{done.stderr}"


def _tracked() -> list[Path]:
    """Every file of the project, found without git: a source archive has none."""
    skip = {".git", ".venv", ".npm", ".demo", ".deb", "dist", "__pycache__"}
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not any(part in skip or part.endswith("_cache") for part in path.relative_to(ROOT).parts)
    ]


def _is_shell(path: Path) -> bool:
    if path.suffix == ".sh":
        return True
    with path.open("rb") as file:
        return file.readline(40).decode(errors="replace").strip() in SHEBANG


def test_ruff_finds_nothing() -> None:
    _run(sys.executable, "-m", "ruff", "check", "mind_body", "tests", "probes")


def test_every_file_is_formatted() -> None:
    _run(sys.executable, "-m", "ruff", "format", "--check", "mind_body", "tests", "probes")


def test_types_hold_in_the_package_the_tests_and_the_probes() -> None:
    _run(sys.executable, "-m", "mypy")


GROUPED = """
import os, pytest
pytestmark = pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(6))
def test_one(number):
    with open("workers", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_tests_of_one_group_have_one_worker(tmp_path: Path) -> None:
    """What is dear to start, as a host with systemd, is started once for its group."""
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    argv = ("-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", "--rootdir", ".", "test_grouped.py")
    subprocess.run([sys.executable, *argv], cwd=tmp_path, capture_output=True, check=True)
    workers = (tmp_path / "workers").read_text().split()
    assert len(workers) == 6
    assert len(set(workers)) == 1


def test_shell_files_are_sound() -> None:
    shellcheck = require_part("shellcheck")
    scripts = [str(path.relative_to(ROOT)) for path in _tracked() if _is_shell(path)]
    assert ".ci/setup" in scripts
    _run(shellcheck, *scripts)


@pytest.mark.parametrize("target", ["venv", "demo", "test", "test-unit", "test-long", "probes", "deb", "clean"])
def test_the_makefile_knows_its_targets(target: str) -> None:
    _run("make", "--dry-run", "--always-make", target, "SAY=hello")


def test_the_demo_without_a_terminal_and_without_words_is_one_sentence() -> None:
    done = subprocess.run(["make", "demo"], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    first, *rest = done.stderr.strip().splitlines()
    assert done.returncode != 0
    assert first == 'There is no terminal to chat in: say something with make demo SAY="hello".'
    assert all(line.startswith("make") for line in rest)


def test_words_for_the_demo_reach_it_as_they_were_typed() -> None:
    words = """It's $5 for "you" `id` $(shell id) & more"""
    script = "include Makefile\nshow:\n\t@printf '%s' \"$$SAY\"\n"
    done = subprocess.run(
        ["make", "--silent", "-f", "-", "show", f"SAY={words}"], cwd=ROOT, input=script, capture_output=True, text=True, check=False
    )
    assert done.stdout == words


@pytest.mark.parametrize(
    ("fake", "body", "sentence"),
    [
        ("uname", 'case "$1" in -s) echo Linux;; *) echo riscv64;; esac', "The processor here is riscv64"),
        ("uname", 'case "$1" in -s) echo Darwin;; *) echo arm64;; esac', "mind-body runs on Linux; this is Darwin"),
        ("python3", 'case "$*" in *version_info*) exit 0;; *) exit 1;; esac', "Python's venv module is missing here"),
        ("python3", "exit 1", "Python 3.11 or newer is needed"),
    ],
)
def test_a_machine_that_cannot_carry_it_is_told_in_one_sentence(tmp_path: Path, fake: str, body: str, sentence: str) -> None:
    done = _setup_with(tmp_path, fake, body)
    assert done.returncode == 1
    assert done.stderr.startswith(sentence)
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_first_run_without_network_is_told_in_one_sentence(tmp_path: Path) -> None:
    # A virtual environment whose pip says what pip says without a network.
    body = 'case "$*" in *install*) echo "NewConnectionError: Temporary failure in name resolution"; exit 1;; esac'
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    _write_program(tmp_path / ".venv" / "bin" / "python", body)
    done = _setup_with(tmp_path, "true", "")
    assert done.returncode == 1
    assert "the package registry cannot be reached" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def _setup_with(home: Path, fake: str, body: str) -> subprocess.CompletedProcess[str]:
    """`.ci/setup demo` in a copy of the tree, with one program replaced and no newer Python to fall back on."""
    (home / ".ci").mkdir()
    (home / ".ci" / "setup").write_bytes((ROOT / ".ci" / "setup").read_bytes())
    (home / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    programs = home / "programs"
    programs.mkdir()
    for name in ("bash", "uname", "dirname", "mkdir", "grep", "tail", "python3", "env"):
        found = subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True, text=True, check=True).stdout.strip()
        (programs / name).symlink_to(found)
    (programs / fake).unlink(missing_ok=True)
    _write_program(programs / fake, body)
    return subprocess.run(
        ["bash", str(home / ".ci" / "setup"), "demo"], env={"PATH": str(programs)}, capture_output=True, text=True, check=False
    )


def _write_program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
