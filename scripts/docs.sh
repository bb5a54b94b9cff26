#!/usr/bin/env bash
# Builds the documentation site into site/; a name in api.md that leads nowhere is an error. Links are
# checked by tests/test_docs.py.
set -euo pipefail
. "$(dirname "$0")/env.sh"
"$venv/bin/python" -c 'import mkdocs, material, mkdocstrings' 2>/dev/null ||
    pip install --constraint "$constraints" --editable '.[docs]'
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --quiet --strict --site-dir "${1:-site}"
