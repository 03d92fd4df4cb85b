"""Every branch of `decide` is taken by its scenes. This is the command that shows it: run it with -s for the table."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RULES = ",".join(f"mind_body/self_run/{name}.py" for name in ("decide", "conditions", "ladder"))


def run_coverage(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COVERAGE_FILE": str(data)}
    return subprocess.run(
        [sys.executable, "-m", "coverage", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )


def test_the_scenes_take_every_branch_of_decide(tmp_path: Path) -> None:
    data = tmp_path / "coverage"
    pytest_argv = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_decide.py")
    played = run_coverage("run", "--branch", f"--include={RULES}", *pytest_argv, data=data)
    assert played.returncode == 0, played.stdout + played.stderr
    report = run_coverage("report", "--show-missing", "--fail-under=100", data=data)
    print(report.stdout)
    assert report.returncode == 0, report.stdout + report.stderr
    assert report.stdout.count("100%") == len(RULES.split(",")) + 1
