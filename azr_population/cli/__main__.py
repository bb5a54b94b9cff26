"""`python -m azr_population.cli`."""

import sys

from azr_population.cli import main

sys.exit(main())
