"""`python -m remanence`."""

import sys

from remanence.cli import main

sys.exit(main())
