"""The weight-space operators; importing this registers those of every file in here."""

from azr_population.registry import import_modules

import_modules(__name__)
