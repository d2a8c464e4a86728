from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from streaming_jobs.spark_session import remove_stale_checkpoints, scratch_checkpoint


def test_a_checkpoint_goes_with_its_query() -> None:
    with scratch_checkpoint() as folder:
        assert folder.is_dir()
        remove_stale_checkpoints(folder.parent)
        assert folder.is_dir()
    assert not folder.exists()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    names = [f"odf-checkpoint-{gone.pid}-abc", f"odf-checkpoint-{os.getpid()}-abc", "odf-checkpoint-abc", "other"]
    for name in names:
        (tmp_path / name / "offsets").mkdir(parents=True)
    remove_stale_checkpoints(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])
