"""`python -m remanence.cli`."""

import sys

from remanence.cli import main

sys.exit(main())
