"""The notebook runs from top to bottom, in a kernel of its own."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_run.ipynb"


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install -e '.[test]'")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install -e '.[test]'")
    pytest.importorskip("ipykernel", reason="needs ipykernel: pip install -e '.[test]'")
    # The kernel's own files, beside nobody's settings; threads of its own would crowd the machine.
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=600, startup_timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    assert last.outputs[0]["data"]["text/plain"] == "True"
